"""Compile the stories from their sources: `python -m agentexp.envs.jericho.build [--check]`.

Needs the Inform 6 compiler and its library (Debian: `apt install inform6-compiler inform6-library`). The serial number is fixed
in the sources, so equal compilers give equal files. With --check nothing is written; the exit code is 1 if a file differs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agentexp.envs.jericho.stories import FOLDER, STORIES, Story
from agentexp.errors import MissingDependency

LIBRARY = Path("/usr/share/inform6/library")
INSTALL = "apt install inform6-compiler inform6-library"
_VARYING = (slice(0x12, 0x18), slice(0x3C, 0x40))  # serial number, compiler's version


def compiler() -> str:
    """The Inform 6 compiler. Raises `MissingDependency`."""
    found = shutil.which("inform6")
    if found is None or not LIBRARY.is_dir():
        raise MissingDependency(f"Building stories needs the Inform 6 compiler and its library: {INSTALL}.")
    return found


def compile_story(story: Story, target: Path) -> None:
    """Write the story file. Raises `MissingDependency`, or `RuntimeError` with the compiler's words."""
    options = ["-e~S", "$OMIT_UNUSED_ROUTINES=1", f"+include_path=./,{LIBRARY}/"]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / target.name  # the compiler writes a file even where it found errors
        command = [compiler(), *options, story.source.name, str(made)]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode or not made.is_file():
            raise RuntimeError(f"inform6 refused {story.source.name}:\n{done.stdout}{done.stderr}")
        shutil.copyfile(made, target)


def comparable(file: Path) -> bytes:
    """A story file without what tells when and by which compiler it was made (header, section 11.1 of the Standard)."""
    data = bytearray(file.read_bytes())
    for part in _VARYING:
        data[part] = bytes(len(data[part]))
    return bytes(data)


def main(arguments: list[str] | None = None) -> int:
    """Compile all stories, or compare them with what is there."""
    parser = argparse.ArgumentParser(description="Compile the z-machine stories from source.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args(arguments).check
    differing = 0
    for story in STORIES:
        if not check:
            compile_story(story, story.file)
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / story.file.name
            compile_story(story, made)
            if not story.file.is_file() or comparable(made) != comparable(story.file):
                differing += 1
                sys.stderr.write(f"{story.file.name} differs from its source: run without --check.\n")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
