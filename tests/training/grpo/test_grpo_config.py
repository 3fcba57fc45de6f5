"""The configs of train-grpo compose, are the constructors' defaults, and those of the paper hold the paper's values."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from agentexp.config import Overrides, build
from agentexp.launch import conf_dir
from agentexp.training.grpo.engine import RolloutEngine
from agentexp.training.grpo.interleave import TABLE_5
from agentexp.training.grpo.trainer import GrpoTrainer
from agentexp.training.grpo.world import world_of

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("AGENTEXP_SHARED", ROOT.parent / "shared"))
NAMES = ("task_only", "explore_only", "interleaved")
RATIOS = {"task_only": "1:0", "explore_only": "0:1", "interleaved": "5:1"}


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", "data")


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        node = compose("train-grpo", overrides=list(overrides))
    config = OmegaConf.to_container(node, resolve=True)
    assert isinstance(config, dict)
    return {str(key): value for key, value in config.items()}


def published() -> dict[str, Any]:
    """Table 4 of the paper, column Qwen3-4B."""
    tables = yaml.safe_load((ROOT / "agentexp" / "reports" / "published.yaml").read_text())["001_LBYL"]["tables"]
    return {name: str(row["qwen3-4b"]) for name, row in tables["table4"]["rows"].items()}


def built(config: dict[str, Any]) -> GrpoTrainer:
    made = build(config["trainer"], "trainer", Overrides())
    assert isinstance(made, GrpoTrainer)
    return made


def test_the_defaults_of_the_config_are_those_of_the_constructors() -> None:
    config = composed()["trainer"]
    parts = ("base", "task", "explore", "rollout", "evaluation", "task_reward", "explore_reward")
    defaults = {name: p.default for name, p in inspect.signature(GrpoTrainer).parameters.items() if name not in parts}
    assert {key: value for key, value in config.items() if key not in (*parts, "_target_")} == defaults
    engine = {name: p.default for name, p in inspect.signature(RolloutEngine).parameters.items()}
    assert {key: value for key, value in config["rollout"].items() if key != "_target_"} == engine


@pytest.mark.parametrize("name", NAMES)
def test_the_8_gpu_configs_hold_the_published_values(name: str) -> None:
    trainer, table = composed(f"+experiment=grpo_{name}_paper")["trainer"], published()
    assert trainer["lr"] == float(table["Learning Rate"]) and trainer["lr_schedule"] == table["LR Scheduler"]
    assert trainer["group_size"] == int(table["Group Size"]) and trainer["groups"] == int(table["Batch Size"])
    assert trainer["groups"] * trainer["group_size"] == int(table["Rollouts Per Step"])
    assert trainer["max_steps"] == int(table["Max Training Step"])
    assert f"{trainer['max_rollout_tokens'] // 1024}k" == table["Max Rollout Length"]
    assert trainer["ratio"] == RATIOS[name] and trainer["ratio"] in TABLE_5
    launch = yaml.safe_load((conf_dir() / "accelerate" / "zero2.yaml").read_text())
    assert launch["num_processes"] == 8 and trainer["groups"] % 8 == 0
    assert launch["mixed_precision"] == trainer["precision"]


@pytest.mark.parametrize("name", NAMES)
def test_the_three_variants_differ_in_their_ratio_alone(name: str) -> None:
    for scale in ("paper", "small"):
        config, other = composed(f"+experiment=grpo_{name}_{scale}"), composed(f"+experiment=grpo_interleaved_{scale}")
        assert config["trainer"].pop("ratio") == RATIOS[name]
        other["trainer"].pop("ratio")
        assert config == other


def test_the_defaults_are_those_of_the_specification() -> None:
    file = SHARED / "spec" / "defaults.yaml"
    if not file.is_file():
        pytest.skip("needs the specification beside the repository")
    spec = {name: entry["v"] for name, entry in yaml.safe_load(file.read_text())["grpo"].items() if "v" in entry}
    trainer = composed()["trainer"]
    names = {"G": "group_size", "batch_groups": "groups", "ratio_task_explore": "ratio", "beta_kl": "beta"}
    for name in ("lr", "lr_schedule", "max_steps", "max_rollout_tokens", "schedule", "clip", "inner_epochs", "adv_eps"):
        assert trainer[name] == spec[name], name
    for name in ("loss_agg", "explore_steps", *names):
        assert trainer[names.get(name, name)] == spec[name], name
    assert trainer["rollout"]["temperature"] == spec["rollout_temperature"]
    task_steps = yaml.safe_load(file.read_text())["grpo"]["task_steps"]
    for env, world in (("alfworld", "alfworld"), ("textcraft", "textcraft"), ("scienceworld", "sciworld")):
        settings = world_of({"env": composed(f"env={env}")["env"]}).settings
        assert settings.budget is not None and settings.budget.acting == task_steps[world]


@pytest.mark.parametrize("ratio", TABLE_5)
def test_every_ratio_of_table_5_can_be_given(ratio: str) -> None:
    made = built(composed(f"trainer.ratio={ratio}"))
    assert f"{made.shares.task}:{made.shares.explore}" == ratio


def test_exploration_alone_is_what_the_exploration_rollouts_do() -> None:
    made = built(composed())
    explore: Any = made.explore
    assert not explore.acts and not explore.cache and not explore.summary_words and explore.explorer.style == "compact"
    assert made.rollout.sampling.temperature == 1.0 and made.plan()[0].startswith(
        "300 steps of 16 groups x 8 rollouts: 128 per"
    )
    assert "2, 3, 3, 2, 3, 3" in made.plan()[1] and "800 of 4800" in made.plan()[1]


def test_task_rollouts_may_map() -> None:
    made = built(composed("paradigm@trainer.task=map", "+stopping=dual", "trainer.task.stage1=false", "trainer.map_steps=10"))
    assert made.task.name == "map" and made.map_steps == 10


def test_the_command_refuses_and_shows_without_running(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentexp", "train-grpo", f"output_root={tmp_path}"]
    for override, word in (
        ("trainer.ratio=5", "Write T:E"),
        ("trainer.group_size=1", "at least 2"),
        ("trainer.explore.cache=true", "cache must be false"),
        ("trainer.rollout.engin=vllm", "engine"),
        ("trainer.lr=fast", "trainer.lr"),
    ):
        done = subprocess.run([*command, override], capture_output=True, text=True)
        assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr, done.stderr
    done = subprocess.run([*command, "--dry-run"], capture_output=True, text=True)
    assert done.returncode == 0 and "128 per step" in done.stdout
    assert not any(tmp_path.iterdir())
