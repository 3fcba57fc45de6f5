"""The trainer on a tiny random model: whole trainings, resuming, evaluation, refusals."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("accelerate", reason="train-grpo needs accelerate")

from grpo_kit import RunStub, config, trainer  # noqa: E402

from agentexp.errors import FatalError, UserError  # noqa: E402
from agentexp.training.core import Interrupted  # noqa: E402
from agentexp.training.grpo.evaluation import HeldOut  # noqa: E402
from agentexp.training.grpo.interleave import Ratio, exploration_groups  # noqa: E402
from agentexp.training.grpo.rewards import Coverage, Success  # noqa: E402
from agentexp.training.tiny import make_tiny  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny(tmp_path_factory.mktemp("tiny")))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def tensors(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def drawn(run: RunStub) -> list[tuple[Any, ...]]:
    told = ("step", "group", "kind", "task", "rewards")
    return [tuple(line[key] for key in told) for line in lines(run.folder / "rollouts.jsonl")]


@pytest.fixture(scope="module")
def whole(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStub, dict[str, Any]]:
    """A training of four steps without interruption."""
    run = RunStub(tmp_path_factory.mktemp("whole"), config())
    held_out = HeldOut(tasks=2, explorations=1, every=2)
    result = trainer(tiny, max_steps=4, groups=3, ratio="2:1", save_every=2, evaluation=held_out).train(run)
    return run, dict(result)


def test_a_training_writes_what_it_did(whole: tuple[RunStub, dict[str, Any]], tiny: str) -> None:
    run, result = whole
    assert sorted(run.recorded) == [0, 1, 2, 3, 4] and run.planned_steps == result["steps"] == 4
    for step in range(1, 5):
        told = run.recorded[step]
        assert told["rollouts"] == 6 and told["harness_errors"] == 0
        assert told["grad_norm"] > 0 and told["updated"] == 1.0 and 0 < told["task/reward"] < 1
        assert told["logprob_diff_max"] < 1e-3
        assert {"kl", "entropy", "clip_share", "truncated", "frac_zero_adv", "tokens_per_s", "rollout_seconds"} <= set(told)
        assert {"train_seconds", "sync_seconds", "task/reward_std", "explore/reward", "explore/reward_std"} <= set(told)
        assert all(math.isfinite(value) for value in told.values())
        groups = [line for line in lines(run.folder / "rollouts.jsonl") if line["step"] == step]
        exploring = exploration_groups(step - 1, 3, Ratio(2, 1))
        assert [line["kind"] for line in groups] == ["task"] * (3 - exploring) + ["explore"] * exploring
    assert {step for step in run.recorded if "eval/task/reward" in run.recorded[step]} == {0, 2, 4}
    assert len(lines(run.folder / "evaluation.jsonl")) == 3 * 3
    assert result["rollouts"] == 24 and result["after/eval/task/n"] == 2
    assert not same(tensors(run.folder / "model"), tensors(Path(tiny)))
    assert {"config.json", "tokenizer.json", "chat_template.jinja"} <= {file.name for file in (run.folder / "model").iterdir()}
    text = (run.folder / "samples" / "step-000001.txt").read_text()
    assert "<|im_start|>assistant\n»" in text and "«" in text  # what is trained is marked
    assert sorted(path.name for path in (run.folder / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-4"]


def test_a_stopped_training_goes_on_with_the_same_rollouts_and_ends_with_the_same_weights(
    tiny: str, tmp_path: Path, whole: tuple[RunStub, dict[str, Any]]
) -> None:
    held_out = HeldOut(tasks=2, explorations=1, every=2)
    settings: dict[str, Any] = {"max_steps": 4, "groups": 3, "ratio": "2:1", "save_every": 2, "evaluation": held_out}
    with pytest.raises(Interrupted):
        trainer(tiny, **settings).train(RunStub(tmp_path, config(), stop_at=1))
    second = RunStub(tmp_path, config(), die_at=4)  # dies in step 4, after the checkpoint of step 2
    with pytest.raises(KeyboardInterrupt):
        trainer(tiny, **settings).train(second)
    third = RunStub(tmp_path, config())
    result = trainer(tiny, **settings).train(third)
    assert sorted(second.recorded) == [2, 3] and sorted(third.recorded) == [3, 4]
    assert third.said == ["Going on from step 2 of 4."]
    run, before = whole
    assert drawn(third) == drawn(run)
    assert same(tensors(third.folder / "model"), tensors(run.folder / "model"))
    assert len(lines(tmp_path / "evaluation.jsonl")) == 9
    assert {key: value for key, value in result.items() if "seconds" not in key} == {
        key: value for key, value in before.items() if "seconds" not in key
    }


def test_a_checkpoint_of_which_a_part_is_missing_does_not_count(tiny: str, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        trainer(tiny, max_steps=3).train(RunStub(tmp_path, config(), stop_at=2))
    (tmp_path / "checkpoints" / "checkpoint-2" / "complete.json").unlink()
    run = RunStub(tmp_path, config())
    trainer(tiny, max_steps=3).train(run)
    assert sorted(run.recorded) == [1, 2, 3]


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path, tiny: str) -> None:
    """SIGKILL in the middle, the same command again: every step once, the weights of a training without interruption."""
    command = [sys.executable, "-m", "agentexp", "train-grpo", "+experiment=smoke", f"base.path={tiny}", "threads=1"]
    command += ["trainer.max_steps=8", "trainer.save_every=2", "trainer.evaluation=null", "resume=ignore"]
    environ = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    killed = [*command, f"output_root={tmp_path / 'killed'}"]
    process = subprocess.Popen(killed, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        if any(file.read_bytes().count(b"\n") >= 3 for file in tmp_path.rglob("metrics.jsonl")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (folder,) = (tmp_path / "killed" / "train-grpo").iterdir()
    assert not (folder / "summary.json").exists() and (folder / "checkpoints").is_dir()
    again = subprocess.run(killed, env=environ, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "Going on from step" in again.stderr
    assert [line["step"] for line in lines(folder / "metrics.jsonl")] == list(range(1, 9))
    assert [line["group"] for line in lines(folder / "rollouts.jsonl")] == list(range(24))
    other = subprocess.run([*command, f"output_root={tmp_path / 'other'}"], env=environ, capture_output=True, text=True)
    assert other.returncode == 0, other.stderr
    (fresh,) = (tmp_path / "other" / "train-grpo").iterdir()
    assert same(tensors(fresh / "model"), tensors(folder / "model"))


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path: Path, tiny: str) -> None:
    """gloo on the CPU: each rolls out its share of the groups; numbers and weights are those of one process, up to rounding."""
    command = ["-m", "agentexp", "train-grpo", "+experiment=smoke", f"base.path={tiny}", "trainer.evaluation=null", "threads=1"]
    environ = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    told, models = [], []
    for name, start in (("one", [sys.executable]), ("two", launch)):
        done = subprocess.run(
            [*start, *command, f"output_root={tmp_path / name}"], env=environ, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, done.stderr
        (folder,) = (tmp_path / name / "train-grpo").iterdir()
        told.append(lines(folder / "metrics.jsonl"))
        models.append(tensors(folder / "model"))
        assert [line["group"] for line in lines(folder / "rollouts.jsonl")] == list(range(9))
    for one, two in zip(*told, strict=True):
        for name in ("task/reward", "explore/reward", "loss", "kl", "grad_norm", "entropy", "trained_tokens", "rollouts"):
            assert two[name] == pytest.approx(one[name], rel=1e-3, abs=1e-5), name
    assert all(torch.allclose(models[0][key], models[1][key], atol=1e-4) for key in models[0])


# ------------------------------------------------------------------------------------------------------- case R04, others


def test_a_training_without_signal_speaks_up_or_stops(tiny: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 3, "ratio": "1:0", "task_reward": Success(), "no_signal_steps": 2, "beta": 0.0}
    run = RunStub(tmp_path / "warn", config())
    trainer(tiny, **settings).train(run)
    assert all(told["frac_zero_adv"] == 1.0 and told["updated"] == 0.0 for told in run.recorded.values())
    assert len(run.said) == 1 and "cut" in run.said[0] and "max_tokens" in run.said[0]
    assert same(tensors(run.folder / "model"), tensors(Path(tiny)))
    with pytest.raises(FatalError, match="on_no_signal=stop"):
        trainer(tiny, on_no_signal="stop", **settings).train(RunStub(tmp_path / "stop", config()))


def test_a_harness_that_fails_is_counted_and_the_rest_is_learnt_from(tiny: str, tmp_path: Path) -> None:
    run = RunStub(tmp_path, config("grpo_kit.Doors", broken=["train0", "train1"]))
    trainer(tiny, max_steps=2, ratio="1:0", groups=4).train(run)
    told = run.recorded[1]
    assert told["harness_errors"] == 4 and told["groups_too_small"] == 2 and told["updated"] == 1.0
    line = next(line for line in lines(tmp_path / "rollouts.jsonl") if line["task"] == "train0")
    assert line["fates"] == ["harness", "harness"] and line["rewards"] == [None, None] and "broken" in line["errors"][0]


@pytest.mark.parametrize("more", [{"full": False, "lora_rank": 4}, {"inner_epochs": 2, "old_logprobs": "sampler"}])
def test_other_ways_to_train(tiny: str, tmp_path: Path, more: dict[str, Any]) -> None:
    if not more.get("full", True):
        pytest.importorskip("peft", reason="LoRA needs peft")
    run = RunStub(tmp_path, config())
    trainer(tiny, max_steps=2, ratio="1:1", loss_agg="sum", gradient_checkpointing=True, **more).train(run)
    assert run.recorded[2]["kl"] > 0
    assert not same(tensors(run.folder / "model"), tensors(Path(tiny)))
    assert (tmp_path / "adapter").is_dir() == ("full" in more)


def test_explorations_are_rewarded_with_ecc_and_maps_can_be_trained(tiny: str, tmp_path: Path) -> None:
    from agentexp.paradigms.map import MapThenAct, NoStopping

    made = trainer(tiny, max_steps=1, explore_reward=Coverage(), map_steps=2)
    made.task = MapThenAct(stage1=False, style="compact", stopping=NoStopping(), map_tokens=12)
    run = RunStub(tmp_path, config())
    made.train(run)
    assert run.recorded[1]["explore/reward"] == 0.0  # noise covers nothing
    assert run.recorded[1]["task/steps"] == 4.0  # two of mapping, two of acting
    assert run.recorded[1]["trained_rows"] > 4  # several conversations in one rollout


def test_what_cannot_work_is_refused_in_a_sentence(tiny: str, tmp_path: Path) -> None:
    run = RunStub(tmp_path, {})
    with pytest.raises(UserError, match="env has no value"):
        trainer(tiny).train(run)
    with pytest.raises(UserError, match="no checkpoints"):
        trainer(tiny, explore_reward=Coverage()).train(RunStub(tmp_path, config("grpo_kit.Doors")))
    with pytest.raises(UserError, match="not a split"):
        trainer(tiny).train(RunStub(tmp_path, config() | {"env": {**config()["env"], "split": "nowhere"}}))
    for settings, word in (
        ({"group_size": 1}, "group_size"),
        ({"ratio": "5"}, "ratio"),
        ({"clip": 1.5}, "clip"),
        ({"lr": 0.0}, "lr"),
        ({"groups": 0}, "groups"),
        ({"beta": -0.1}, "beta"),
        ({"rollout": {"temperature": 0.0}}, "temperature"),
        ({"rollout": {"attempts": 0}}, "attempts"),
    ):
        with pytest.raises(UserError, match=word):
            trainer(tiny, **settings)


def test_vllm_is_optional(tiny: str, tmp_path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("vllm") is not None:
        pytest.skip("vllm is installed here")
    with pytest.raises(UserError, match=r"agentexp\[train,vllm\]"):
        trainer(tiny, rollout={"engine": "vllm"}).train(RunStub(tmp_path, config()))
