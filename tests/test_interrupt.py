"""S01 and S02 on real processes: kill -9, SIGINT, SIGTERM; nothing finished is lost, nothing is counted twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from run_fakes import make_run

from agentexp.interrupt import GRACE_SECONDS
from agentexp.runner import run_sync
from agentexp.store import read_episodes, read_json

SCRIPT = Path(__file__).with_name("run_fakes.py")


def start(root: Path, **options: Any) -> subprocess.Popen[str]:
    arguments = json.dumps({"root": str(root), **options})
    return subprocess.Popen([sys.executable, str(SCRIPT), arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 200) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def wait_for_lines(root: Path, n: int) -> Path:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        for file in root.rglob("episodes.jsonl"):
            if file.read_bytes().count(b"\n") >= n:
                return file.parent
        time.sleep(0.02)
    raise AssertionError(f"no run folder below {root} got {n} episodes")


def results(folder: Path) -> list[tuple[str, bool, int, float]]:
    return [(r["key"], r["success"], r["steps"], r["score"]) for r in read_episodes(folder)]


def test_kill_9_torn_line_resume_complete_and_limit(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tasks": 6, "seeds": [0, 1], "concurrency": 1}
    code, _, _ = finish(start(tmp_path, kill_after=5, **options))
    assert code == -signal.SIGKILL
    (folder,) = {file.parent for file in tmp_path.rglob("episodes.jsonl")}
    stored = (folder / "episodes.jsonl").read_bytes()
    assert stored.count(b"\n") == 5
    assert not stored.endswith(b"\n")  # half of the sixth episode
    assert len(results(folder)) == 5

    code, out, err = finish(start(tmp_path, **options))
    assert code == 0, err
    assert "calls=18 " in err  # all 12 episodes take 28 calls, the 5 finished ones took 10 of them
    assert out.splitlines()[-1] == str(folder)
    records = [json.loads(text) for text in (folder / "episodes.jsonl").read_text().splitlines()]
    assert len(records) == len({record["key"] for record in records}) == 12

    code, _, err = finish(start(tmp_path, **options))
    assert code == 0
    assert "calls=0 starts=0" in err

    whole = make_run(tmp_path / "uninterrupted", **options)
    summary, _ = run_sync(whole)
    assert results(folder) == results(whole.folder)
    assert _numbers(read_json(folder / "summary.json")) == _numbers(summary)


def _numbers(summary: Any) -> Any:
    return {k: v for k, v in json.loads(json.dumps(summary)).items() if "second" not in k and "time" not in k}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("in_process", [True, False])
def test_a_signal_ends_the_run_cleanly(tmp_path: Path, number: signal.Signals, code: int, in_process: bool) -> None:
    options: dict[str, Any] = {"tasks": 60, "delay": 0.25, "concurrency": 2, "in_process": in_process, "workers": 2}
    process = start(tmp_path, **options)
    folder = wait_for_lines(tmp_path, 5)
    children = psutil.Process(process.pid).children(recursive=True)
    assert in_process or children
    process.send_signal(number)
    got, out, err = finish(process)
    assert got == code, err
    assert "Traceback" not in err
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    summary = read_json(folder / "summary.json")
    assert summary is not None
    finished = len(results(folder))
    assert 5 <= finished < 60
    assert (summary["partial"], summary["planned"], summary["finished"]) == (True, 60, finished)
    assert f"Stopped by {number.name}: {finished} of 60" in err
    assert "same command again" in err
    assert out.splitlines()[-1] == str(folder)
    code, _, err = finish(start(tmp_path, **{**options, "delay": 0}))
    assert code == 0, err
    assert len(results(folder)) == 60
    assert not read_json(folder / "summary.json")["partial"]  # type: ignore[index]


def test_kill_9_keeps_every_finished_episode(tmp_path: Path) -> None:
    process = start(tmp_path, tasks=20, delay=0.1, concurrency=2)
    folder = wait_for_lines(tmp_path, 5)
    process.kill()
    finish(process)
    before = len(results(folder))
    assert before >= 5
    assert read_json(folder / "manifest.json")["planned"][0] == "counting/test/t0#seed0.0"  # type: ignore[index]
    code, _, _ = finish(start(tmp_path, tasks=20))
    assert code == 0
    assert len((folder / "episodes.jsonl").read_bytes().splitlines()) == 20


def test_a_second_ctrl_c_ends_at_once_and_leaves_no_child(tmp_path: Path) -> None:
    process = start(tmp_path, tasks=20, delay=0.2, concurrency=2, hang_on_close=True, in_process=False)
    wait_for_lines(tmp_path, 2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None  # the model does not close
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    code, _, _ = finish(process)
    assert code == 130
    assert time.monotonic() - started < GRACE_SECONDS  # which the first one alone would have been given
    psutil.wait_procs(children, timeout=60)
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def test_two_jobs_cannot_write_one_run_folder(tmp_path: Path) -> None:
    process = start(tmp_path, tasks=20, delay=0.2)
    wait_for_lines(tmp_path, 1)
    code, _, err = finish(start(tmp_path, tasks=20, delay=0))
    assert code != 0
    assert f"is being written by process {process.pid}" in err
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
