"""The presets compose, and the command line makes data sets out of their runs."""

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from typer.testing import CliRunner

from agentexp.cli_app import app
from agentexp.commands import make_run
from agentexp.config import Overrides
from agentexp.launch import conf_dir
from agentexp.training.collect.dataset import COLUMNS, read_rows

PRESETS = ("map2k_small", "map2k_paper", "act_small", "act_paper")


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_runs_on_training_tasks(preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    GlobalHydra.instance().clear()
    needed = ["model.name=teacher-model"] if preset == "map2k_paper" else []
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        for env in ("alfworld", "textcraft", "scienceworld"):
            config = compose("eval", [f"+experiment={preset}", f"env={env}", *needed, f"output_root={tmp_path}"])
            run = make_run(dict(OmegaConf.to_container(config, resolve=True)), Overrides())  # type: ignore[arg-type]
            assert run.split == "train" and run.paradigm.name == ("map2k" if "map2k" in preset else "react")
            style = config["paradigm"]["style"]
            assert style == ("compact" if preset.endswith("_small") else "full")


def test_from_the_command_line_to_a_data_set(tmp_path: Path) -> None:
    from agentexp.commands import run_job
    from agentexp.launch import HydraFlags, launch

    shared = ["env=textcraft", "env.limit=6", f"output_root={tmp_path / 'out'}", "progress=off"]
    for preset in ("map2k_small", "act_small"):
        assert launch("eval", [f"+experiment={preset}", *shared], HydraFlags(), run_job()) == 0
    arguments = ["collect", str(tmp_path / "out"), "--out", str(tmp_path / "data"), "--tokenizer", "characters"]
    result = CliRunner().invoke(app, [*arguments, "--match", "tokens", "--stages", "explore,act", "--min-coverage", "0.2"])
    assert result.exit_code == 0, result.output
    folders = [line.removesuffix(" (JSON lines)") for line in result.output.splitlines()[-2:]]
    assert folders == [
        str(tmp_path / "data" / "map"),
        str(tmp_path / "data" / "act"),
    ]
    rows = read_rows(tmp_path / "data" / "map")
    assert {row["stage"] for row in rows} == {"explore", "act"} and tuple(rows[0]) == tuple(COLUMNS)
    facts = json.loads((tmp_path / "data" / "act" / "collect.json").read_text())
    assert facts["worlds"]["textcraft"]["trajectories"] == len({row["key"] for row in rows})
