"""`agentexp doctor`: what this machine has and lacks, and what to do about it. Starts no engine, shows no key."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from agentexp import inventory
from agentexp.errors import AgentExpError, MissingDependency

OLDEST_JAVA = 8
"""ScienceWorld's jar, and Minecraft behind MineRL, are compiled for it."""

KEYS = {
    "OPENAI_API_KEY": "model=openai (export it, or model.api_key_file=FILE)",
    "ARC_API_KEY": "env=arc_agi3 env.source=online",
    "WANDB_API_KEY": "logger=wandb logger.mode=online",
    "HF_TOKEN": "models of the hub that ask for one",
}
"""Variables that may hold a key, and what asks for it."""

DATA = {
    "ALFWORLD_DATA": "official ALFWorld games, as alfworld-download fetches them, for env.data=; without: generated games",
    "MINESTUDIO_DIR": "MineStudio's engine and models",
}
"""Variables that name a folder of data."""

FREE_GIB = 2.0

Level = Literal["ok", "note", "missing", "wrong"]


class Finding(NamedTuple):
    """One line of the report."""

    level: Level
    text: str


def doctor() -> tuple[list[Finding], bool]:
    """Everything that was found, in the order of the report, and whether the main job can run."""
    findings = [*python(), *packages(), *parts(), *java(), *data(), *keys(), *disk()]
    stops = any(finding.level == "wrong" for finding in findings)
    main_job = inventory.missing(inventory.WORLDS[0]) + inventory.missing(inventory.BACKENDS[0])
    return findings, not (main_job or stops)


def python() -> Iterator[Finding]:
    """The interpreter."""
    level: Level = "ok" if sys.version_info >= (3, 11) else "wrong"
    yield Finding(level, f"Python {platform.python_version()} (3.11 or newer)")


def packages(distribution: str = "agentexp") -> Iterator[Finding]:
    """Installed packages against what this version was made for. A checkout that is not installed has nothing to compare."""
    from packaging.requirements import Requirement

    try:
        required = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        yield Finding("note", "agentexp is not installed as a package: versions are not checked")
        return
    good = 0
    for line in required:
        need = Requirement(line)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(need.marker or ""))
        if need.marker and not need.marker.evaluate({"extra": extra[1] if extra else ""}):
            continue
        try:
            found = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            if not extra:
                yield Finding("wrong", f"{need.name} is not installed: pip install '{need.name}{need.specifier}'")
            continue
        if need.specifier.contains(found, prereleases=True):
            good += not extra
            continue
        what = f"{need.name} {found} is installed; {f'agentexp[{extra[1]}]' if extra else 'agentexp'} needs {need.specifier}"
        yield Finding("note" if extra else "wrong", f"{what}: pip install '{need.name}{need.specifier}'")
    yield Finding("ok", f"{good} packages of the base install have versions that agentexp is made for")


def parts() -> Iterator[Finding]:
    """Worlds, models and extras, with the command that installs what is missing."""
    for part in (*inventory.WORLDS, *inventory.WISE_WORLDS, *inventory.BACKENDS, *inventory.EXTRAS):
        lacking = inventory.missing(part)
        yield Finding("missing", f"{part.name}: {', '.join(lacking)} - {part.install}") if lacking else Finding("ok", part.name)


def java() -> Iterator[Finding]:
    """The Java that ScienceWorld would use."""
    from agentexp.envs.scienceworld.engine import find_java

    if os.environ.get("JAVA_HOME") and not (Path(os.environ["JAVA_HOME"]) / "bin" / "java").is_file():
        yield Finding("note", "JAVA_HOME names no Java and is not used: correct it, or unset it")
    try:
        program = find_java()
    except MissingDependency as error:
        yield Finding("missing", f"Java: {error}")
        return
    try:
        answer = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("wrong", f"Java: {program} does not start ({error}); install another one, or set JAVA_HOME")
        return
    text = (answer.stderr or answer.stdout).strip()
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    first = text.splitlines()[0] if text else "says nothing"
    if answer.returncode or version is None:
        yield Finding("missing", f"Java: {program} -version: {first}; install a Java runtime (17 or newer)")
    elif int(version[1]) < OLDEST_JAVA:
        yield Finding("missing", f"Java: {first} is too old for env=scienceworld; install 17 or newer, or set JAVA_HOME")
    else:
        yield Finding("ok", f"Java: {first}")


def data() -> Iterator[Finding]:
    """The weights of the default model, and folders of data that variables name."""
    from agentexp.models.weights import locate

    try:
        yield Finding("ok", f"weights of model=embedded: {locate(None).name}, checksum as expected")
    except AgentExpError as error:
        yield Finding("missing", " ".join(str(error).split("\n")[:1]))
    for variable, what in DATA.items():
        folder = os.environ.get(variable)
        if folder and not Path(folder).expanduser().is_dir():
            yield Finding("missing", f"{variable} names no folder: correct it, or unset it ({what})")
        else:
            yield Finding("ok" if folder else "note", f"{variable} is {'a folder' if folder else 'not set'}: {what}")


def keys() -> Iterator[Finding]:
    """Whether keys are there; never what they are."""
    for key, what in KEYS.items():
        yield Finding(
            "ok" if os.environ.get(key) else "note", f"{key} is {'set' if os.environ.get(key) else 'not set'}: {what}"
        )


def disk() -> Iterator[Finding]:
    """Room and rights where runs and temporary files go, and what the machine has."""
    for what, folder, setting in (
        ("this folder", os.getcwd(), "change to another folder, or set output_root=FOLDER"),
        ("temporary files", tempfile.gettempdir(), "set TMPDIR to another folder"),
    ):
        free = shutil.disk_usage(folder).free / 2**30
        if not os.access(folder, os.W_OK):
            yield Finding("missing", f"{what}: {folder} cannot be written; {setting}")
        elif free < FREE_GIB:
            yield Finding("missing", f"{what}: {free:.1f} GiB free, runs need about {FREE_GIB:.0f}; make room, or {setting}")
        else:
            yield Finding("ok", f"{what}: {free:.0f} GiB free")
    import psutil

    yield Finding("note", f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB of memory")
