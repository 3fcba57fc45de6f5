"""JSON lines that survive a kill: appended one by one, or replaced all at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from agentexp.errors import FatalError
from agentexp.records import dump
from agentexp.scrub import clean_line


class Lines:
    """A file of JSON lines to append to; a torn last line is cut off first.

    Raises:
        FatalError: the disk refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.is_file():
                content = self._path.read_bytes()
                os.truncate(self._path, content.rfind(b"\n") + 1)
            self._file = self._path.open("ab")
        except OSError as error:
            raise FatalError(f"{self._path} cannot be written: {error.strerror}.") from error
        return self

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line; safe from now on when this process dies."""
        assert self._file is not None
        try:
            self._file.write(clean_line(dump(line)) + b"\n")
            self._file.flush()
        except OSError as error:
            raise FatalError(f"{self._path} cannot be written: {error.strerror}.") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; none where there is no file."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]


def replace_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write a file at once: a reader sees the old or the new content.

    Raises:
        FatalError: the disk refused.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(b"".join(clean_line(dump(line)) + b"\n" for line in lines))
        os.replace(temporary, path)
    except OSError as error:
        raise FatalError(f"{path} cannot be written: {error.strerror}.") from error
