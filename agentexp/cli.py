"""Start and end of every command: `main` is the console script. The commands themselves are in `cli_app.py`.

Importing this module must take no time: only then can Ctrl-C in the first second end the process quietly.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as type checkers know it; `typing` itself takes ten milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Errors meant for the user become one sentence on stderr and exit code 2.

    Args:
        argv: the arguments; None: those of the process, which is then this command's alone.
    """
    if argv is None:
        # Until a run has handlers of its own nothing needs an orderly end, and an exception could be raised in the middle of an
        # import or a destructor, where it is printed or swallowed.
        signal.signal(signal.SIGINT, _leave)
    try:
        code = _run(argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _leave(number: int, frame: object) -> NoReturn:
    """End at once: workers and engines see that their parent is gone, files are replaced in one step."""
    os._exit(INTERRUPTED)


def _run(argv: Sequence[str] | None) -> int | str | None:
    from agentexp.errors import FatalError, UserError
    from agentexp.output import guarded

    code: int | str | None = 0
    with guarded() as out:
        from agentexp.cli_app import app

        try:
            app(args=list(argv) if argv is not None else None)
        except SystemExit as end:
            code = end.code
        except UserError as error:
            code = _failed(str(error), 2)
        except FatalError as error:
            code = _failed(str(error), 1)
        out.flush()
        if out.lost:
            code = _failed(f"The output cannot be written: {out.lost}.", code or 1)
    return code


def _failed(message: str, code: int | str) -> int | str:
    sys.stderr.write(f"Error: {message}\n")
    return code


if __name__ == "__main__":
    main()
