"""stdout and stderr that nothing can break: a reader that leaves, a full disk or a closed descriptor never ends a run.

What is lost is said once at the end. stderr is cleaned of secrets as well, whoever writes there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from agentexp.scrub import clean


class Guarded:
    """A text stream whose writes never raise `OSError`; after the first failure the rest goes nowhere.

    Args:
        stream: the real one.
        cleans: cut secrets out of what is written.

    Attributes:
        lost: why writing failed ("No space left on device"); empty while it works, and where the reader simply left.
    """

    def __init__(self, stream: TextIO, *, cleans: bool = False) -> None:
        self._stream, self._cleans, self.lost = stream, cleans, ""

    def write(self, text: str) -> int:
        """Write, or lose it."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        try:
            self._stream.write(clean(text) if self._cleans else text)
        except OSError as error:
            self._fail(error)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write all."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, or lose what was buffered."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):
            self.lost = self.lost or error.strerror or str(error)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())  # also for what is still in a buffer and for the flush at exit
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """Within the block, both standard streams are guarded. Yields stdout's guard."""
    fill_standard_files()
    before = sys.stdout, sys.stderr
    out, err = Guarded(sys.stdout), Guarded(sys.stderr, cleans=True)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def fill_standard_files() -> None:
    """Put /dev/null in place of a closed stdin, stdout or stderr: else the next file opened gets its number, and the output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)  # takes the lowest free number, this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for the process' whole life
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
