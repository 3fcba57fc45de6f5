"""The configs of `train-thinker` compose, and hold the specification's values."""

import inspect
import os
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from agentexp.config import Overrides
from agentexp.launch import conf_dir
from agentexp.training.command import aliased, make_job
from agentexp.training.thinker.coldstart import ColdStart
from agentexp.training.thinker.data import Division
from agentexp.training.thinker.trainer import ThinkerTrainer

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))


def composed(*overrides):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        node = compose("train-thinker", overrides=list(overrides))
    return OmegaConf.to_container(node, resolve=True)


def test_the_defaults_are_the_constructors():
    config = composed("trainer.strong.paths=[x]")["trainer"]
    parts = (("base", "strong", "division", "rollout", "coldstart"), ("_target_",))
    for cls, given in ((ThinkerTrainer, config), (Division, config["division"]), (ColdStart, config["coldstart"])):
        defaults = {name: p.default for name, p in inspect.signature(cls).parameters.items() if name not in parts[0]}
        assert {key: value for key, value in given.items() if key not in (*parts[0], *parts[1])} == defaults


@pytest.mark.skipif(not (SHARED / "spec" / "defaults.yaml").is_file(), reason="the specification is not beside the checkout")
def test_the_defaults_are_those_of_the_specification():
    spec = yaml.safe_load((SHARED / "spec" / "defaults.yaml").read_text())["ttx"]
    ours = composed("trainer.strong.paths=[x]")["trainer"]
    rl = spec["rl"]
    assert (ours["lr"], ours["beta"], ours["thoughts"], ours["reward"]) == (
        rl["lr"],
        rl["beta_kl"],
        rl["m_thoughts"]["v"],
        rl["reward"]["v"],
    )
    assert (ours["coldstart"]["lr"], ours["coldstart"]["epochs"]) == (spec["sft"]["lr"]["v"], spec["sft"]["epochs"]["v"])
    assert (ours["division"]["tries"], ours["division"]["easy_above"], ours["division"]["max_mistakes"]) == (4, 0.5, 6)


@pytest.mark.parametrize(
    "overrides",
    [
        ("+experiment=smoke_thinker",),
        ("+experiment=thinker_small",),
        ("+experiment=thinker_paper", "trainer.strong.paths=[x]", "model.name=a", "roles.thinker.name=b"),
    ],
)
def test_every_preset_makes_a_job(overrides, tmp_path):
    config = composed(*overrides, f"output_root={tmp_path}")
    job = make_job(config, Overrides())
    assert isinstance(job.trainer, ThinkerTrainer) and job.folder.parent.name == "train-thinker"
    assert job.trainer.plan()[0].startswith("Nodes: 4 tries")


def test_the_paper_preset_is_the_papers_model():
    config = composed("+experiment=thinker_paper", "trainer.strong.paths=[x]", "model.name=a", "roles.thinker.name=b")
    assert config["base"]["path"].startswith("Qwen/Qwen2.5-7B") and config["model"]["temperature"] == 0.0


def test_smoke_is_the_commands_own():
    assert aliased("train-thinker", ["+experiment=smoke"]) == ["+experiment=smoke_thinker"]
