"""A `_target_` of the wrong kind is refused in one sentence, in every group, before anything of it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentexp import launch as launching
from agentexp.commands import make_run
from agentexp.config import Overrides
from agentexp.errors import UserError
from agentexp.tracking import NoLogger

GROUPS = {
    "logger": ("Tracker", "none, wandb"),
    "env": ("Env", "alfworld"),
    "model": ("Model", "embedded, openai"),
    "paradigm": ("Paradigm", "map"),
    "parsing": ("ParseSettings", "default, strict"),
    "paradigm.stopping": ("Stopping", "dual, fixed, none"),
    "roles.extractor": ("Model", "embedded, openai"),
}
WRONG = [
    *("builtins.dict", "builtins.object", "pathlib.Path", "threading.Thread", "agentexp.core.Task", "agentexp.plan.run_folder"),
    *("sys.exit", "os.abort", "os.getcwd", "builtins.print", "agentexp.tracking", "agentexp.tracking.Nothing", "nowhere.Thing"),
    *("", "x", ".", "a..b", "..", "agentexp.tracking.RUN_FILE", "collections.OrderedDict", "agentexp.core.Env"),
]


class Exploding:
    """Like no component; must never be made."""

    def __init__(self) -> None:
        raise RuntimeError("made")


def made_by_a_function() -> NoLogger:
    return NoLogger()


def test_a_function_that_says_what_it_makes_is_welcome() -> None:
    run = make_run({**composed(), "logger": {"_target_": f"{__name__}.made_by_a_function"}}, Overrides())
    assert isinstance(run.logger, NoLogger)


def composed(command: str = "eval", **groups: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(launching.conf_dir()), version_base="1.3"):
        config = compose(command, ["env=toy", "model=scripted", "paradigm=map", "+model@roles.extractor=scripted"])
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


@pytest.mark.parametrize("wrong", [*WRONG, f"{__name__}.Exploding"])
@pytest.mark.parametrize("path", list(GROUPS))
def test_every_group_refuses_what_is_of_another_kind(path: str, wrong: str) -> None:
    config = composed()
    group, _, rest = path.partition(".")
    if rest:
        config[group][rest] = {"_target_": wrong}
    else:
        config[group] = {"_target_": wrong, **({"split": "test"} if group == "env" else {})}
    with pytest.raises(UserError) as caught:
        make_run(config, Overrides())
    said = str(caught.value)
    assert f"{path}._target_={wrong}" in said or f"_target_={wrong}" in said
    assert said.endswith(".") and "\n" not in said


@pytest.mark.parametrize(("path", "words"), GROUPS.items())
def test_the_sentence_names_protocol_and_choices(path: str, words: tuple[str, str]) -> None:
    config = composed()
    group, _, rest = path.partition(".")
    node = {"_target_": "threading.Thread"}
    if rest:
        config[group][rest] = node
    else:
        config[group] = {**node, **({"split": "test"} if group == "env" else {})}
    with pytest.raises(UserError) as caught:
        make_run(config, Overrides())
    for word in (f"{path}._target_=threading.Thread", *words, "Choices of"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "argument", ["logger._target_=builtins.dict", "logger._target_=pathlib.Path", "paradigm._target_=os.getcwd"]
)
def test_on_the_command_line(tmp_path: Path, argument: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentexp", "eval", "env=toy", "model=scripted", argument],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 2 and done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1, done.stderr
    assert not list(tmp_path.rglob("manifest.json"))


def test_weave_is_not_advertised(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    code = (
        "import json, openai, pathlib, sys\nfrom agentexp.tracking import WandbLogger\n"
        f"logger = WandbLogger()\nlogger.start(pathlib.Path({json.dumps(str(tmp_path))}), 'x', {{}})\n"
        "logger.log({'episode': 1})\nlogger.finish({})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert list(tmp_path.glob("wandb/offline-run-*"))
    assert "weave" not in (done.stdout + done.stderr).lower()
