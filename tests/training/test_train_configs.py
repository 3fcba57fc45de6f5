"""Every config of the training commands composes, and those of the paper hold the paper's values."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from agentexp.config import Overrides, build
from agentexp.launch import conf_dir
from agentexp.training.command import aliased, make_job
from agentexp.training.sft import SftTrainer
from agentexp.training.sft_data import Demo, Saved

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("AGENTEXP_SHARED", ROOT.parent / "shared"))


def composed(*overrides, name="train-sft"):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        node = compose(name, overrides=list(overrides))
    chosen = [key for key in node if key not in ("budget", "paradigm", "stopping", "explore", "evaluation", "env", "model")]
    return OmegaConf.to_container(OmegaConf.masked_copy(node, chosen), resolve=True)


def published(key):
    prose = yaml.safe_load((ROOT / "agentexp" / "reports" / "published.yaml").read_text())["000_MAP"]["prose"]
    return next(entry["value"] for entry in prose if entry["key"] == key)


def test_the_defaults_are_the_constructors_and_the_papers():
    config = composed("trainer.data.path=x")
    given = {key: value for key, value in config["trainer"].items() if key not in ("_target_", "base", "data")}
    import inspect

    defaults = {name: p.default for name, p in inspect.signature(SftTrainer).parameters.items() if name not in ("base", "data")}
    assert given == defaults
    assert (given["lr"], given["epochs"], given["full"]) == (published("sft.lr"), published("sft.epochs"), True)


def test_the_defaults_are_those_of_the_specification():
    file = SHARED / "spec" / "defaults.yaml"
    if not file.is_file():
        pytest.skip("needs the specification beside the repository")
    spec = {name: entry["v"] for name, entry in yaml.safe_load(file.read_text())["map"]["sft"].items()}
    ours = composed("trainer.data.path=x")["trainer"]
    names = {"warmup_ratio": "warmup", "full_parameter": "full"}
    for name in ("lr", "epochs", "global_batch", "warmup_ratio", "schedule", "max_len", "weight_decay", "full_parameter"):
        assert ours[names.get(name, name)] == spec[name], name


@pytest.mark.parametrize("name", ["sft_map4b_paper", "sft_act4b_paper"])
@pytest.mark.parametrize("accelerate", ["zero2", "zero3"])
def test_the_8_gpu_configs_hold_the_published_values(name, accelerate):
    config = composed(f"+experiment={name}", "trainer.data.path=x")
    trainer, launch = config["trainer"], yaml.safe_load((conf_dir() / "accelerate" / f"{accelerate}.yaml").read_text())
    assert (trainer["lr"], trainer["epochs"], trainer["full"]) == (published("sft.lr"), published("sft.epochs"), True)
    assert "Qwen3-4B-Thinking" in config["base"]["path"]
    assert f"{launch['num_processes']}x" == published("sft.gpus").split()[0]
    assert launch["deepspeed_config"]["zero_stage"] == int(accelerate[-1])
    assert launch["distributed_type"] == "DEEPSPEED" and launch["mixed_precision"] == trainer["precision"] == "bf16"
    assert trainer["global_batch"] % (trainer["micro_batch"] * launch["num_processes"]) == 0
    assert isinstance(build(config["trainer"], "trainer", Overrides()), SftTrainer)


def test_map_and_act_differ_in_their_data_alone():
    pair = [composed(f"+experiment=sft_{name}4b_paper", "trainer.data.path=x") for name in ("map", "act")]
    assert pair[0] == pair[1]


def test_the_accelerate_configs_are_read_by_accelerate():
    config_args = pytest.importorskip("accelerate.commands.config.config_args", reason="needs accelerate")
    for stage in (2, 3):
        loaded = config_args.load_config_from_file(str(conf_dir() / "accelerate" / f"zero{stage}.yaml"))
        assert (loaded.num_processes, loaded.deepspeed_config["zero_stage"]) == (8, stage)


def test_smoke_takes_other_data_and_leaves_nothing_of_the_default():
    assert aliased("train-sft", ["+experiment=smoke", "seed=1"]) == ["+experiment=smoke_sft", "seed=1"]
    config = composed("+experiment=smoke_sft")
    assert config["base"]["path"] == "tiny" and "path" not in config["trainer"]["data"]
    trainer = build(config["trainer"], "trainer", Overrides())
    assert isinstance(trainer.data, Demo)
    assert isinstance(build(composed("trainer.data.path=x")["trainer"], "trainer", Overrides()).data, Saved)


def test_the_folder_depends_on_what_changes_the_result():
    def folder(*overrides):
        return make_job(composed("trainer.data.path=x", *overrides), Overrides()).folder

    base = folder()
    assert base.parts[:2] == ("outputs", "train-sft") and base.name.startswith("SmolLM2-135M-Instruct")
    same = ("threads=1", "trainer.micro_batch=2", "trainer.save_every=7", "progress=off")
    for override in ("trainer.lr=1", "seed=1", "base.path=tiny", "trainer.data.limit=3"):
        assert folder(override) != base
    for override in same:
        assert folder(override) == base


def run(*arguments, cwd, **environment):
    given = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-m", "agentexp", *arguments]
    return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, timeout=280, check=False)


def test_help_lists_what_training_has(tmp_path):
    out = run("train-sft", "--help", cwd=tmp_path).stdout
    assert "base=" in out and "trainer=" in out and "+experiment=" in out and "smoke" in out
    assert "method=" not in out and "accelerate=" not in out
    assert "trainer=" not in run("eval", "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.lrr=1", "Did you mean trainer.lr?"),
        ("trainer.lr=fast", "trainer.lr=fast is not valid: it must be a number"),
        ("trainer.schedule=linear", "trainer.schedule=linear is not valid"),
        ("treads=1", "'treads' is not a setting"),
        ("trainer._target_=agentexp.tracking.NoLogger", "is not a trainer: it has no train()"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, override, message):
    done = run("train-sft", "trainer.data.path=x", override, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_data_must_be_named(tmp_path):
    done = run("train-sft", cwd=tmp_path)
    assert done.returncode == 2 and "trainer.data.path has no value. Set trainer.data.path=..." in done.stderr


def test_without_torch_there_is_one_clear_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
    )
    done = run("train-sft", "+experiment=smoke", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "train-sft needs torch, which is not installed: pip install torch==2.13.0 and then" in done.stderr
    assert not (tmp_path / "outputs").exists()
