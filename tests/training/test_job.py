import json
import os
import signal
import subprocess
import sys

import pytest

from agentexp.errors import FatalError, MissingDependency, UserError
from agentexp.tracking import NoLogger
from agentexp.training.core import Interrupted
from agentexp.training.job import Job
from agentexp.training.metrics_file import read_metrics
from agentexp.training.progress import TrainProgress


class Counting:
    """Trains nothing: counts steps, with a checkpoint after every second one."""

    requires: tuple[str, ...] = ()

    def __init__(self, steps=5, act=None, version="1"):
        self.steps, self.act, self.version, self.began = steps, act or {}, version, []

    def versions(self):
        return {"data": self.version}

    def train(self, run):
        saved = run.folder / "checkpoints" / "step"
        first = int(saved.read_text()) if saved.exists() else 0
        self.began.append(first)
        run.planned_steps = self.steps
        for step in range(first + 1, self.steps + 1):
            self.act.get(step, lambda: None)()
            run.metrics(step, {"loss": 1 / step})
            if step % 2 == 0 or run.stopping():
                saved.parent.mkdir(exist_ok=True)
                saved.write_text(str(step))
            if run.stopping():
                raise Interrupted
        return {"steps": self.steps}


def job(folder, trainer, **more):
    settings = {"command": "train-sft", "config": {"seed": 0}, "label": "tiny", "seed": 0, "logger": NoLogger()} | more
    return Job(folder=folder, trainer=trainer, **({"progress": "off"} | settings))


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def fail(error):
    def act():
        raise error

    return act


def test_data_are_looked_at_before_torch_is_imported(tmp_path):
    lines = tmp_path / "x.jsonl"
    for content, message in (
        ('{"messages": "hi"}', "must be a list of {role, content}, not text"),
        ('{"messages": [{"role": "assistant", "content": ""}]}', "a reply of the assistant is empty (the first: 0)"),
    ):
        lines.write_text(content + "\n")
        code = f"""
import sys
sys.argv = ["agentexp", "train-sft", "trainer.data.path={lines}", "base=tiny", "output_root={tmp_path / "out"}"]
import agentexp.training.job as job
job.require = lambda *_: None
try:
    from agentexp.__main__ import main
    main()
finally:
    assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not list((tmp_path / "out").glob("train-sft/*"))  # nothing is left of a training that never began


def test_a_run_folder_has_everything_and_its_path_comes_last(tmp_path, capsys):
    assert job(tmp_path / "run", Counting(), progress="plain").run() == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == str(tmp_path / "run")
    assert "step 5/5" in err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["command"], manifest["model"], manifest["planned"]) == ("train-sft", "tiny", [])
    assert manifest["model_versions"]["trainer"] == {"data": "1"} and manifest["packages"]["agentexp"]
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3, 4, 5]
    found = summary(tmp_path / "run")
    assert (found["status"], found["steps"], found["recorded_steps"]) == ("finished", 5, 5)


def test_a_finished_training_does_nothing_again_and_says_so(tmp_path, capsys):
    job(tmp_path, Counting()).run()
    before = (tmp_path / "summary.json").stat().st_mtime_ns
    again = Counting()
    assert job(tmp_path, again).run() == 0 and again.began == []
    out, err = capsys.readouterr()
    assert "Nothing to do: this training has finished." in err
    assert out.splitlines()[-1] == str(tmp_path)
    assert (tmp_path / "summary.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_a_checkpoint_with_130(tmp_path, capsys, number):
    trainer = Counting(act={3: lambda: os.kill(os.getpid(), number)})
    handler = signal.getsignal(number)
    assert job(tmp_path, trainer).run() == 130
    assert signal.getsignal(number) is handler
    assert summary(tmp_path)["status"] == "interrupted" and summary(tmp_path)["stopped_by"] == signal.Signals(number).name
    out, err = capsys.readouterr()
    assert "Issue the same command again to go on." in err and out.splitlines()[-1] == str(tmp_path)
    again = Counting()
    assert job(tmp_path, again).run() == 0
    assert again.began == [3]
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2, 3, 4, 5]


def test_before_the_first_step_a_signal_stops_at_once(tmp_path):
    trainer = Counting(act={1: lambda: os.kill(os.getpid(), signal.SIGINT)})
    assert job(tmp_path, trainer).run() == 130
    assert read_metrics(tmp_path) == []


def test_after_a_crash_each_step_counts_once_and_seconds_go_on(tmp_path):
    with pytest.raises(FatalError):
        job(tmp_path, Counting(act={4: fail(FatalError("broken"))})).run()
    assert (summary(tmp_path)["status"], summary(tmp_path)["error"]) == ("failed", "broken")
    before = read_metrics(tmp_path)[-1]["seconds"]
    again = Counting()
    assert job(tmp_path, again).run() == 0 and again.began == [2]
    lines = read_metrics(tmp_path)
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5] and lines[-1]["seconds"] >= before


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    inner = []

    def second():
        with pytest.raises(UserError, match="is being written by process"):
            job(tmp_path, Counting()).run()
        inner.append(True)

    assert job(tmp_path, Counting(act={2: second})).run() == 0 and inner


def test_another_training_in_the_folder_is_refused_with_a_diff(tmp_path):
    job(tmp_path, Counting(act={3: lambda: os.kill(os.getpid(), signal.SIGINT)})).run()
    with pytest.raises(UserError, match=r"(?s)another training:.*model_versions.trainer.data: 1 -> 2.*resume=ignore"):
        job(tmp_path, Counting(version="2")).run()
    assert job(tmp_path, Counting(version="2"), resume="ignore").run() == 0
    assert json.loads((tmp_path / "manifest.json").read_text())["history"][0]["changes"]


def test_a_refused_command_leaves_no_folder(tmp_path):
    with pytest.raises(UserError, match="no data"):
        job(tmp_path / "run", Counting(act={1: fail(UserError("no data"))})).run()
    assert not (tmp_path / "run").exists()


def test_other_ranks_train_along_write_nothing_and_print_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    trainer = Counting(act={2: lambda: print("noise")})
    tmp_path.joinpath("checkpoints").mkdir()
    assert job(tmp_path, trainer, progress="plain").run() == 0
    assert trainer.began == [0]
    assert capsys.readouterr() == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints"]
    monkeypatch.delenv("RANK")
    job(tmp_path, Counting()).run()
    monkeypatch.setenv("RANK", "1")
    capsys.readouterr()
    again = Counting()
    assert job(tmp_path, again).run() == 0 and again.began == [] and capsys.readouterr() == ("", "")


def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch):
    trainer = Counting()
    trainer.requires = ("surely_not_installed",)
    with pytest.raises(MissingDependency, match=r"train-sft needs surely_not_installed.*pip install torch==2.13.0 and then"):
        job(tmp_path / "run", trainer).run()
    assert not (tmp_path / "run").exists()


def test_progress_says_little_and_the_end(capsys):
    show = TrainProgress("train-sft tiny", "plain")
    with show:
        for step in range(1, 101):
            show.step({"step": step, "loss": 2.0, "seconds": 1.0}, 100)
        show.say("half of it")
    lines = capsys.readouterr().err.splitlines()
    assert 8 <= len(lines) <= 13
    assert "train-sft tiny: step 100/100 · loss 2" in lines[-2:][0] or "step 100/100" in lines[-1]


class Mirror(NoLogger):
    """Keeps what a tracker would get."""

    def __init__(self):
        self.seen = []

    def start(self, folder, name, config):
        self.seen.append(("start", name))

    def log(self, values):
        self.seen.append(values)

    def finish(self, summary):
        self.seen.append(("finish", summary["status"]))


def test_the_tracker_gets_every_step_on_the_axis_of_training(tmp_path):
    mirror = Mirror()
    job(tmp_path / "run", Counting(steps=2), logger=mirror).run()
    steps = [{"train_step": 1, "train/loss": 1.0}, {"train_step": 2, "train/loss": 0.5}]
    assert mirror.seen == [("start", "run"), *steps, ("finish", "finished")]


def test_a_folder_in_which_nothing_was_trained_yet_is_taken_over(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    job(tmp_path, Counting(act={1: lambda: os.kill(os.getpid(), signal.SIGINT)})).run()
    assert job(tmp_path, Counting(version="2")).run() == 0
