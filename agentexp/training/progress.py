"""What a training shows: a live line on a terminal, plain lines elsewhere, its result and folder at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentexp.progress import PLAIN_SECONDS, PLAIN_SHARE, Mode, duration

SHOWN = 6  # numbers of a step that fit into a line


class TrainProgress:
    """Shows the newest step, between `__enter__` and `__exit__`.

    Args:
        title: what runs, for the start of each line.
        mode: "auto" is "rich" where stderr is a terminal and "plain" elsewhere.
    """

    def __init__(self, title: str, mode: Mode = "auto") -> None:
        self.title, self.line = title, "starting"
        self.console = Console(stderr=True, soft_wrap=True)
        live = self.console.is_terminal and not self.console.is_dumb_terminal
        self.mode = mode if mode != "auto" else "rich" if live else "plain"
        self._live: Live | None = None
        self._started, self._first = time.monotonic(), 0
        self._said_at, self._said_share, self._said = 0.0, 0.0, ""

    def __enter__(self) -> TrainProgress:
        self._started = self._said_at = time.monotonic()
        if self.mode == "rich":
            self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=2, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        elif self.mode == "plain" and self._said != self.line != "starting":
            self._write(self.line)

    def step(self, line: Mapping[str, float], planned: int | None) -> None:
        """A step ended with these numbers."""
        step, now = int(line["step"]), time.monotonic()
        self._first = self._first or step
        share = step / planned if planned else 0.0
        self.line = self._text(line, planned, now)
        if self.mode == "plain" and (share - self._said_share >= PLAIN_SHARE or now - self._said_at >= PLAIN_SECONDS):
            self._said_share, self._said_at = share, now
            self._write(self.line)

    def say(self, text: str) -> None:
        """One line of its own."""
        if self._live is not None:
            self.console.print(f"{self.title}: {text}", markup=False, highlight=False)
        elif self.mode != "off":
            self._write(text)

    def _text(self, line: Mapping[str, float], planned: int | None, now: float) -> str:
        step = int(line["step"])
        parts = [f"step {step}" + (f"/{planned}" if planned else "")]
        numbers = [(key, value) for key, value in line.items() if key not in ("step", "seconds") and value is not None]
        parts += [f"{key} {value:.4g}" for key, value in numbers[:SHOWN]]
        done = step - self._first
        if planned and done > 0 and step < planned:
            parts.append(f"ETA {duration((planned - step) * (now - self._started) / (done + 1))}")
        return " · ".join(parts)

    def _write(self, text: str) -> None:
        self._said = text
        sys.stderr.write(f"{self.title}: {text}\n")
        sys.stderr.flush()

    def _render(self) -> Text:
        return Text.assemble((f"{self.title} ", "bold"), self.line)


def show_result(summary: Mapping[str, Any], folder: Path, *, table: bool = True) -> None:
    """The final table, and the run folder as the last line of stdout."""
    if table:
        shown = Table(title=f"{summary['command']} · {summary['base']}, {summary['status']}", show_header=False)
        shown.add_column(style="bold")
        shown.add_column()
        for key, value in summary.items():
            if key not in ("command", "base", "status") and isinstance(value, (int, float, str)):
                shown.add_row(key.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
        Console(file=sys.stdout).print(shown)
    sys.stdout.write(f"{folder}\n")
    sys.stdout.flush()
