"""What is shipped: the lock file covers what pyproject.toml asks for, and the wheel runs from any folder."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKED_EXTRAS = ("all", "dev", "docs", "train")
PYTHONS = ("3.11", "3.12")
GPU = re.compile(r"nvidia|cuda|cublas|cudnn|triton|rocm", re.IGNORECASE)

if not (ROOT / "pyproject.toml").is_file():
    pytest.skip("not a checkout", allow_module_level=True)
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lock() -> list[Requirement]:
    lines = (ROOT / "requirements-lock.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def direct(names: tuple[str, ...]) -> Iterator[Requirement]:
    """Requirements of the base install and of extras, those of extras that name other extras included."""
    todo, seen = list(PROJECT["dependencies"]), set(names)
    for name in names:
        todo += PROJECT["optional-dependencies"][name]
    while todo:
        need = Requirement(todo.pop())
        if need.name != PROJECT["name"]:
            yield need
            continue
        for extra in need.extras - seen:
            seen.add(extra)
            todo += PROJECT["optional-dependencies"][extra]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_names_every_direct_dependency_in_a_version_that_is_asked_for(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux", "extra": ""}
    pins: dict[str, list[Version]] = {}
    for pin in lock():
        if pin.marker is None or pin.marker.evaluate(environment):
            pins.setdefault(canonicalize_name(pin.name), []).append(Version(str(pin.specifier).removeprefix("==")))
    assert [name for name, versions in pins.items() if len(versions) > 1] == []
    wrong = []
    for need in direct(LOCKED_EXTRAS):
        if need.marker is not None and not need.marker.evaluate(environment):
            continue
        found = pins.get(canonicalize_name(need.name))
        if not found or not need.specifier.contains(found[0], prereleases=True):
            wrong.append(f"{need} -> {found} (make lock)")
    assert wrong == []


def test_the_lock_names_versions_only() -> None:
    text = (ROOT / "requirements-lock.txt").read_text(encoding="utf-8")
    assert "://" not in text and " @ " not in text and "--" not in text
    for pin in lock():
        assert re.fullmatch(r"==[0-9][^,*+]*", str(pin.specifier)), pin
    assert [str(pin) for pin in lock() if GPU.search(pin.name)] == []


def test_what_all_asks_for_brings_no_gpu() -> None:
    """torch comes with CUDA from the usual index; whoever wants it names an extra that needs it."""
    names = {canonicalize_name(need.name) for need in direct(("all",))}
    assert not names & {"torch", "vllm", "transformers", "trl", "deepspeed"}


def test_every_extra_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in PROJECT["optional-dependencies"] if f"`{name}`" not in text and f"[{name}]" not in text] == []


@pytest.mark.slow
def test_the_wheel_holds_what_a_run_needs_and_runs_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    try:
        built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.skip("the build backend could not be installed in time")
    if built.returncode:
        assert "hatchling" in built.stderr, built.stderr
        pytest.skip("the build backend (hatchling) cannot be installed here")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    tracked = subprocess.run(["git", "ls-files", "conf", "agentexp"], cwd=ROOT, capture_output=True, text=True, check=False)
    expected = {re.sub(r"^conf/", "agentexp/conf/", name) for name in tracked.stdout.splitlines() if (ROOT / name).is_file()}
    assert sorted(expected - names) == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for line in (
        "--help",
        "eval env=toy model=scripted paradigm=map env.limit=2 logger=none progress=off",
        "report runs outputs",
        "eval -m +experiment=table1_small env=toy env.limit=1 logger=none progress=off",
        "report table1 outputs --out tables",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "agentexp", *line.split()],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={"PATH": "/usr/bin:/bin", "HOME": str(elsewhere), "PYTHONPATH": str(tmp_path / "site"), "PYTHONUTF8": "1"},
        )
        assert done.returncode == 0, line + done.stderr
    where = [sys.executable, "-c", "import agentexp; print(agentexp.__file__)"]
    site = subprocess.run(
        where, cwd=elsewhere, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert site.stdout.startswith(str(tmp_path))  # and not the checkout, which may be installed as well
