"""Sweeps with every launcher: a failed job is shown with its cause, stops no other, and the same line runs what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentexp import sweep as sweep_module

LAUNCHERS = {
    "basic": ("", []),
    "joblib": ("hydra_plugins.hydra_joblib_launcher", ["hydra.launcher.n_jobs=2"]),
    "submitit_local": ("hydra_plugins.hydra_submitit_launcher", ["hydra.launcher.timeout_min=5"]),
    "ray": ("hydra_plugins.hydra_ray_launcher", ["+hydra.launcher.ray.init.num_cpus=2"]),
}
KEY = "zq7Planted1zq7"
BROKEN = """
from agentexp.paradigms.react import ReAct

class Hostile(Exception):
    def __init__(self, text, key):  # can be pickled, but not read back
        super().__init__(f"{text} {key}")

class Mine(ReAct):
    def __init__(self, api_key: str = "", style: str = "full", form: str = "thought_action"):
        super().__init__()
        self.key = api_key

    async def prepare(self, ctx):
        if ctx.config["env"]["rooms"] == 5:
            raise Hostile("no such thing:", self.key)
        return {}
"""
MENDED = BROKEN.replace('["rooms"] == 5', '["rooms"] == 0')


def sweep(launcher: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Four jobs: the first is refused, the third breaks while `mine.py` is broken."""
    line = ["env=toy", "model=scripted", "logger=none", "progress=off", "env.limit=2", "paradigm=mine", "env.rooms=1,4,5,6"]
    line += [f"paradigm.api_key={KEY}", f"hydra/launcher={launcher}", *LAUNCHERS[launcher][1]]
    done = subprocess.run(
        [sys.executable, "-m", "agentexp", "eval", "-m", "--config-dir", "mine", *line],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONUTF8": "1", "PYTHONPATH": str(cwd / "mine")},
    )
    if "timed out during startup" in done.stderr:
        pytest.skip("Ray did not start within its 30 seconds: this machine is too busy")
    return done


def finished(root: Path) -> dict[str, bytes]:
    """Each finished run and its episodes."""
    runs = [file.parent for file in root.glob("outputs/eval/**/summary.json")]
    return {run.name: (run / "episodes.jsonl").read_bytes() for run in runs}


@pytest.mark.parametrize(
    "launcher", [pytest.param(name, marks=pytest.mark.slow) if name == "ray" else name for name in LAUNCHERS]
)
def test_a_failed_job_is_shown_stops_no_other_and_runs_again(launcher: str, tmp_path: Path) -> None:
    plugin, _ = LAUNCHERS[launcher]
    if plugin and not find_spec(plugin):
        pytest.skip(f"pip install 'agentexp[{launcher.partition('_')[0]}]'")
    (tmp_path / "mine" / "paradigm").mkdir(parents=True)
    (tmp_path / "mine" / "paradigm" / "mine.yaml").write_text("_target_: mine.Mine\napi_key: null\n")
    (tmp_path / "mine" / "mine.py").write_text(BROKEN)

    broken = sweep(launcher, tmp_path)
    assert broken.returncode == 2, broken.stderr
    end = broken.stderr[broken.stderr.index("Job 0 (") :]
    first, second = end.split("Job 2 (")
    assert "env.rooms=1 " in first and "Error: env.rooms" in first
    assert "env.rooms=5 " in second and "Hostile: no such thing: [removed]" in second
    assert "2 of 4 jobs failed. The same line again runs only what is missing." in second
    before = finished(tmp_path)
    assert len(before) == 2

    (tmp_path / "mine" / "mine.py").write_text(MENDED)
    mended = sweep(launcher, tmp_path)
    assert mended.returncode == 2, mended.stderr
    assert "1 of 4 jobs failed." in mended.stderr and "Hostile" not in mended.stderr
    after = finished(tmp_path)
    assert len(after) == 3 and before.items() <= after.items()

    holding = [str(file) for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    assert holding == []
    assert KEY not in broken.stdout + broken.stderr + mended.stdout + mended.stderr


@pytest.mark.parametrize(
    ("line", "environment", "added"),
    [
        (["hydra/launcher=ray"], {}, ["+hydra.launcher.ray.init.include_dashboard=false"]),
        (["hydra/launcher=ray", "+hydra.launcher.ray.init.include_dashboard=true"], {}, []),
        (
            ["hydra/launcher=ray", "hydra.launcher.ray.init.address=auto"],
            {},
            ["+hydra.launcher.ray.init.object_store_memory=null"],
        ),
        (["hydra/launcher=ray"], {"RAY_ADDRESS": "auto"}, ["+hydra.launcher.ray.init.object_store_memory=null"]),
        (["hydra/launcher=submitit_slurm"], {}, ["hydra.launcher.submitit_folder=${hydra.sweep.dir}/sweep-1/submitit/%j"]),
        (["hydra/launcher=submitit_slurm", "hydra.launcher.submitit_folder=x"], {}, []),
        (["hydra/launcher=joblib"], {}, []),
        ([], {}, []),
    ],
)
def test_settings_of_launchers(
    line: list[str], environment: dict[str, str], added: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ray of its own listens on this machine only; a cluster that is there is taken as it is."""
    for name in ("RAY_ADDRESS", *sweep_module.LOCAL_RAY):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    callback, *others = sweep_module.settings(line, "sweep-1")
    assert "agentexp.sweep.Begin" in callback
    assert others == added
    local = line[:1] == ["hydra/launcher=ray"] and not environment and "address" not in " ".join(line)
    assert all(os.environ.pop(name, None) == (value if local else None) for name, value in sweep_module.LOCAL_RAY.items())
