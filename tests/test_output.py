"""Output that is lost never ends a run, and Ctrl-C in the first second is quiet: every line here is a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EVAL = "eval env=toy model=scripted paradigm=react logger=none env.limit=4"
AGENTEXP = f"{sys.executable} -m agentexp"


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "COLUMNS": "120"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )


def whole(root: Path) -> bool:
    """The one run below `root` is complete."""
    (file,) = root.rglob("summary.json")
    summary = json.loads(file.read_bytes())
    records = (file.parent / "episodes.jsonl").read_bytes()
    return records.count(b"\n") == summary["planned"] == summary["finished"] and not summary["partial"]


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ("| head -0", 0, ""),
        ("| (exec 0<&-; sleep 0.1)", 0, ""),
        ("> /dev/full", 1, "Error: The output cannot be written: No space left on device."),
        (">&-", 0, ""),
        ("2> /dev/full", 0, ""),
        ("2>&-", 0, ""),
        ("2>&1 >/dev/null | head -0", 0, ""),
        ("0<&- >&- 2>&-", 0, ""),
        ("> /dev/full 2>&1", 1, ""),
    ],
)
def test_lost_output_leaves_a_whole_run_and_no_traceback(tmp_path: Path, where: str, code: int, said: str) -> None:
    done = shell(f"{AGENTEXP} {EVAL} progress=plain {where}", tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert said in done.stderr
    assert whole(tmp_path)


@pytest.mark.parametrize(
    "command", ["--help", "envs", "version", "doctor", f"{EVAL} --dry-run", f"{EVAL} --cfg job", "report runs x"]
)
def test_every_command_stands_a_full_disk_and_a_reader_that_leaves(tmp_path: Path, command: str) -> None:
    (tmp_path / "x").mkdir()
    for where in ("> /dev/full", "| head -0"):
        done = shell(f"{AGENTEXP} {command} {where}", tmp_path)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
        if where.startswith(">"):
            assert done.returncode != 0 and "cannot be written" in done.stderr


def test_a_file_opened_later_does_not_become_stdout(tmp_path: Path) -> None:
    done = shell(f"{AGENTEXP} {EVAL} progress=plain >&- 2>&-", tmp_path)
    assert done.returncode == 0
    for file in tmp_path.rglob("*.json*"):
        assert "success" not in file.read_text() or file.read_text().lstrip().startswith("{")
    assert whole(tmp_path)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0])
def test_ctrl_c_at_any_moment_of_the_start_is_quiet(tmp_path: Path, delay: float) -> None:
    code = "import agentexp.cli as c, os; os.write(1, b'up\\n'); c.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *EVAL.replace("env.limit=4", "repeats=400").split(), "progress=off"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.02 + delay)  # main installs its handler at once
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert re.fullmatch(r"(Stopped by SIGINT: .*\n(Warning: .*\n)*)?", err), err


def test_the_console_script_imports_next_to_nothing_before_ctrl_c_is_safe() -> None:
    code = "import sys; before = set(sys.modules); import agentexp.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert {name for name in done.stdout.split() if name.startswith("agentexp")} == {"agentexp", "agentexp.cli"}
    assert len(done.stdout.split()) < 30
