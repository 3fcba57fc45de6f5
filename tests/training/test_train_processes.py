"""Trainings as processes: killed and started again, with two processes over gloo, and with DeepSpeed on a CPU."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from agentexp.launch import conf_dir
from agentexp.training.metrics_file import read_metrics

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("trl", reason="needs trl")

SMOKE = ["train-sft", "+experiment=smoke", "evaluation.tasks=0", "base.device=cpu", "seed=3"]
ONE = [sys.executable, "-m", "agentexp"]


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **more}


def run(command, cwd, **more):
    done = subprocess.run(command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = cwd / done.stdout.splitlines()[-1]
    return folder, read_metrics(folder), json.loads((folder / "summary.json").read_text()), done


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """Where DeepSpeed compiles to. Of its own: a killed compilation leaves a lock behind, on which later ones wait for ever."""
    return str(tmp_path_factory.mktemp("extensions"))


def losses(lines):
    return [line["loss"] for line in lines]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_smoke_is_a_complete_training(tmp_path):
    started = time.monotonic()
    folder, lines, summary, done = run([*ONE, "train-sft", "+experiment=smoke"], tmp_path)
    assert time.monotonic() - started < 120
    assert summary["status"] == "finished" and summary["trained_tokens"] == lines[-1]["trained_tokens"]
    assert lines[-1]["loss"] < lines[0]["loss"] and "eval_loss" in lines[-1] and "eval/success_rate" in lines[-1]
    made = {path.name for path in (folder / "model").iterdir()}
    assert made >= {"model.safetensors", "tokenizer.json", "chat_template.jinja"}
    again = run([*ONE, "train-sft", "+experiment=smoke"], tmp_path)[3]
    assert "Nothing to do: this training has finished." in again.stderr
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_any_moment_it_goes_on_with_the_same_losses(tmp_path):
    command = [*ONE, *SMOKE, "trainer.save_every=1", "trainer.epochs=4"]
    whole = run([*command, "output_root=whole"], tmp_path)[1]
    kills = 0
    for lines_before_kill in (2, 5):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*command, "output_root=killed"], cwd=tmp_path, env=environment(), **quiet)
        deadline = time.monotonic() + 240
        while process.poll() is None and time.monotonic() < deadline:
            files = list(tmp_path.glob("killed/train-sft/*/metrics.jsonl"))
            if files and files[0].read_bytes().count(b"\n") >= lines_before_kill:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.02)
        process.wait(timeout=60)
    assert kills == 2
    folder, resumed, summary, _ = run([*command, "output_root=killed"], tmp_path)
    assert [line["step"] for line in resumed] == [line["step"] for line in whole]
    assert losses(resumed) == losses(whole)
    assert summary["trained_tokens"] == whole[-1]["trained_tokens"]
    assert all((path / "complete.json").is_file() for path in (folder / "checkpoints").iterdir())


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_two_processes_over_gloo_train_what_one_does(tmp_path):
    one = run([*ONE, *SMOKE, "output_root=one"], tmp_path)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", "-m", "agentexp"]
    two = run([*launch, *SMOKE, "output_root=two"], tmp_path)
    assert two[2]["processes"] == 2
    assert losses(two[1]) == pytest.approx(losses(one[1]), rel=1e-4)
    assert [line["trained_tokens"] for line in two[1]] == [line["trained_tokens"] for line in one[1]]
    assert two[3].stdout.count("train-sft/tiny") == 1  # one process speaks


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_trains_on_a_cpu(tmp_path, extensions, stage):
    if find_spec("deepspeed") is None:
        pytest.skip("needs deepspeed")
    config = yaml.safe_load((conf_dir() / "accelerate" / f"zero{stage}.yaml").read_text())
    config |= {"num_processes": 2, "mixed_precision": "no"}
    (tmp_path / "zero.yaml").write_text(yaml.safe_dump(config))
    launch = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--config_file",
        "zero.yaml",
        "--main_process_port",
        free_port(),
    ]
    more = {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": extensions}
    smoke = [word for word in SMOKE if word != "base.device=cpu"]
    two = run([*launch, "-m", "agentexp", *smoke, "output_root=two"], tmp_path, **more)
    one = run([*ONE, *SMOKE, "output_root=one"], tmp_path)
    assert two[2]["processes"] == 2
    assert losses(two[1]) == pytest.approx(losses(one[1]), rel=1e-3)


def test_without_deepspeed_there_is_one_clear_sentence(tmp_path):
    if find_spec("deepspeed") is not None:
        pytest.skip("deepspeed is installed")
    given = environment(ACCELERATE_USE_DEEPSPEED="true")
    done = subprocess.run([*ONE, *SMOKE], cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "train-sft needs deepspeed, which is not installed: pip install 'agentexp[deepspeed]'" in done.stderr
    assert not Path(tmp_path / "outputs").exists()
