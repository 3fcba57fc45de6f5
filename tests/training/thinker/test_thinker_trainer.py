"""Whole trainings of a tiny random thinker: data, cold start, RL, resuming, refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
for name in ("accelerate", "trl", "datasets"):
    pytest.importorskip(name, reason=f"train-thinker needs {name}")

from thinker_kit import Plays, RunStub, config  # noqa: E402

from agentexp.errors import FatalError, UserError  # noqa: E402
from agentexp.training.base import Base  # noqa: E402
from agentexp.training.core import Interrupted  # noqa: E402
from agentexp.training.grpo.engine import RolloutEngine  # noqa: E402
from agentexp.training.thinker.coldstart import ColdStart  # noqa: E402
from agentexp.training.thinker.data import Division  # noqa: E402
from agentexp.training.thinker.trainer import ThinkerTrainer  # noqa: E402
from agentexp.training.tiny import make_tiny  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny(tmp_path_factory.mktemp("tiny")))


def trainer(base: str, **settings: Any) -> ThinkerTrainer:
    return ThinkerTrainer(
        base=Base(path=base, device="cpu"),
        **{
            "strong": Plays(8),
            "division": Division(tries=2),
            "rollout": RolloutEngine(max_tokens=12, concurrency=8),
            "coldstart": ColdStart(lr=1e-3, epochs=1, global_batch=2, max_len=4096, save_every=1),
            "held_out": 0.5,
            "eval_every": 2,
            "nodes": 2,
            "thoughts": 3,
            "max_steps": 4,
            "max_rollout_tokens": 2048,
            "lr": 1e-3,
            "micro_batch_tokens": 4096,
            "save_every": 2,
            "sample_every": 1,
            **settings,
        },
    )


def settings(**env: Any) -> dict[str, Any]:
    made = config()
    made["env"] |= {"n": 8, **env}
    return made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def same(a: Path, b: Path) -> bool:
    from safetensors.torch import load_file

    one, two = load_file(a / "model.safetensors"), load_file(b / "model.safetensors")
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def drawn(run: RunStub) -> list[tuple[Any, ...]]:
    return [tuple(line[key] for key in ("step", "group", "node", "rewards")) for line in lines(run.folder / "rollouts.jsonl")]


@pytest.fixture(scope="module")
def whole(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStub, dict[str, Any]]:
    run = RunStub(tmp_path_factory.mktemp("whole"), settings())
    return run, dict(trainer(tiny).train(run))


def test_a_training_from_trajectories_to_a_model(whole: tuple[RunStub, dict[str, Any]], tiny: str) -> None:
    run, result = whole
    sft = int(result["sft/steps"])
    assert sft >= 1 and result["steps"] == run.planned_steps == sft + 4
    assert sorted(run.recorded) == list(range(1, sft + 5))
    assert all("sft/loss" in run.recorded[step] for step in range(1, sft + 1))
    told = [run.recorded[sft + step] for step in range(1, 5)]
    assert all({"reward", "frac_skipped", "mismatches", "unreadable", "kl", "entropy", "loss"} <= set(one) for one in told)
    assert all(one["rollouts"] == 6 and one["harness_errors"] == one["mismatches"] == 0 for one in told)
    assert result["rl/nodes"] == 8 and result["rl/rollouts"] == 24
    assert result["rl/skipped_share"] == sum(one["frac_skipped"] for one in told) / 4
    for one in told:
        assert one["updated"] == float(one["frac_skipped"] < 1), "nothing moves where all nodes are skipped"
    assert any(one["updated"] for one in told) and result["rl/after/eval/n"] >= 1
    assert not same(run.folder / "model", Path(tiny)) and not same(run.folder / "model", run.folder / "coldstart" / "model")
    text = (run.folder / "samples" / "step-000001.txt").read_text()
    assert "<|im_start|>assistant\n»" in text
    held_out = {line["node"] for line in lines(run.folder / "evaluation.jsonl")}
    assert held_out and not held_out & {line["node"] for line in lines(run.folder / "rollouts.jsonl")}


def test_a_stopped_training_goes_on_with_the_same_nodes_and_ends_with_the_same_weights(
    whole: tuple[RunStub, dict[str, Any]], tiny: str, tmp_path: Path
) -> None:
    run, before = whole
    sft = int(before["sft/steps"])
    with pytest.raises(Interrupted):  # in the cold start, where it has more than one step
        trainer(tiny).train(RunStub(tmp_path, settings(), stop_at=1))
    with pytest.raises(KeyboardInterrupt):  # dies in RL step 4, after the checkpoint of step 2
        trainer(tiny).train(RunStub(tmp_path, settings(), die_at=sft + 4))
    last = RunStub(tmp_path, settings())
    result = trainer(tiny).train(last)
    assert "Going on from RL step 2 of 4." in last.said
    assert sorted(step for step in last.recorded if step > sft) == [sft + 3, sft + 4]
    assert drawn(last) == drawn(run)
    assert same(tmp_path / "model", run.folder / "model")
    left = {key: value for key, value in before.items() if "seconds" not in key and "tokens" not in key}
    assert {key: result[key] for key in left} == left


def test_nodes_without_signal_move_nothing(tiny: str, tmp_path: Path) -> None:
    made = settings()
    made["model"] = {**made["model"], "luck": False}
    run = RunStub(tmp_path, made)
    result = trainer(tiny, coldstart=None, held_out=0.0, max_steps=1).train(run)
    assert run.recorded[1]["frac_skipped"] == 1.0 and run.recorded[1]["updated"] == 0.0
    assert result["rl/skipped_share"] == 1.0 and same(tmp_path / "model", Path(tiny))
    with pytest.raises(FatalError, match="nothing was learnt"):
        stop = {"no_signal_steps": 1, "on_no_signal": "stop"}
        trainer(tiny, coldstart=None, held_out=0.0, max_steps=1, data=str(tmp_path / "data"), **stop).train(
            RunStub(tmp_path / "again", made)
        )


def test_data_can_be_made_first_and_used_by_others(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"trainer\.stage=data"):
        trainer(tiny, data=str(folder)).train(RunStub(tmp_path / "run", settings()))
    monkeypatch.delenv("WORLD_SIZE")
    result = trainer(tiny, data=str(folder), stage="data").train(RunStub(tmp_path / "first", settings()))
    assert result["steps"] == 0 and result["coldstart/kept"] == result["nodes"] == len(lines(folder / "nodes.jsonl"))
    result = trainer(tiny, data=str(folder), max_steps=0).train(RunStub(tmp_path / "second", settings()))
    assert (tmp_path / "second" / "model" / "model.safetensors").is_file() and result["steps"] >= 1
    with pytest.raises(UserError, match=r"data of other settings \(env\.n\)"):
        trainer(tiny, data=str(folder)).train(RunStub(tmp_path / "third", settings(n=9)))


def test_refusals(tiny: str, tmp_path: Path) -> None:
    def refused(match: str, change: dict[str, Any], **more: Any) -> None:
        with pytest.raises(UserError, match=match):
            trainer(tiny, **more).train(RunStub(tmp_path, {**settings(), **change}))

    refused("roles.thinker has no value", {"roles": {}})
    refused("paradigm must be ttexplore", {"paradigm": {"_target_": "agentexp.paradigms.react.ReAct"}})
    refused("no split to train on", {"env": {**settings()["env"], "split": "test"}})
    refused(r"max_tokens=8 is below paradigm\.thinker_tokens=12", {}, rollout=RolloutEngine(max_tokens=8))
    for wrong in ({"thoughts": 1}, {"nodes": 0}, {"held_out": 1.0}, {"max_steps": 0, "coldstart": None}, {"lr": 0.0}):
        with pytest.raises(UserError, match="trainer"):
            trainer(tiny, **wrong)


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path, tiny: str) -> None:
    """SIGKILL in RL, the same command again: the nodes and the weights of a training without interruption."""
    command = [sys.executable, "-m", "agentexp", "train-thinker", "+experiment=smoke", f"base.path={tiny}", "threads=1"]
    command += ["trainer.save_every=1", "trainer.max_steps=6", "resume=ignore", f"trainer.data={tmp_path / 'data'}"]
    environ = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    killed = [*command, f"output_root={tmp_path / 'killed'}"]
    process = subprocess.Popen(killed, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        if any(file.read_bytes().count(b"\n") >= 6 for file in tmp_path.rglob("rollouts.jsonl")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (folder,) = (tmp_path / "killed" / "train-thinker").iterdir()
    assert not (folder / "summary.json").exists()
    again = subprocess.run(killed, env=environ, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "Going on from RL step" in again.stderr
    whole = subprocess.run([*command, f"output_root={tmp_path / 'whole'}"], env=environ, capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    (other,) = (tmp_path / "whole" / "train-thinker").iterdir()
    assert same(folder / "model", other / "model")
    first, second = (lines(run / "rollouts.jsonl") for run in (folder, other))
    assert [line["node"] for line in first] == [line["node"] for line in second] and len(first) == 18
