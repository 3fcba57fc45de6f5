"""What a running experiment shows: a live line on a terminal, plain lines elsewhere, a table at the end.

Everything goes to stderr, except the final table and the run folder's path, the very last line of stdout.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentexp.core import Episode, Usage

Mode = Literal["auto", "rich", "plain", "off"]

PLAIN_SECONDS = 30.0
PLAIN_SHARE = 0.1


@dataclass(slots=True)
class Tally:
    """Counts of a run while it goes on. `done`, `won` and `errors` include earlier processes, the rest is of this one.

    Attributes:
        done: planned episodes with a result of their own (status "ok").
        errors: planned episodes whose newest record is a harness error.
        scored: False when episodes have no success criterion (exploring, mapping).
    """

    planned: int
    done: int = 0
    won: int = 0
    errors: int = 0
    session: int = 0
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    started: float = field(default_factory=time.monotonic)
    scored: bool = True

    def add(self, episode: Episode, *, was_error: bool) -> None:
        """Count a finished episode; `was_error`: an earlier process had recorded an error for it."""
        self.session += 1
        self.usage += episode.usage
        self.errors -= was_error
        self.scored = self.scored and episode.end_reason != "completed"
        if episode.status == "ok":
            self.done += 1
            self.won += episode.success
        else:
            self.errors += 1

    @property
    def seconds(self) -> float:
        """Since the start of this process' share, never 0."""
        return max(time.monotonic() - self.started, 1e-6)

    def line(self) -> str:
        """The counts in one line."""
        from agentexp.metrics.stats import wilson

        parts = [f"{self.done}/{self.planned} episodes"]
        if self.done and self.scored:
            low, high = wilson(self.won, self.done)
            parts.append(f"success {self.won / self.done:.1%} [{low:.1%}, {high:.1%}]")
        parts.append(f"{self.steps / self.seconds:.1f} steps/s")
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        parts.append(f"{compact(tokens)} tokens")
        if self.usage.cost is not None:
            parts.append(f"${self.usage.cost:.2f}")
        if self.errors:
            parts.append(f"{self.errors} harness error{'s' * (self.errors > 1)}")
        left = self.planned - self.done - self.errors
        if self.session and left > 0:
            parts.append(f"ETA {duration(left * self.seconds / self.session)}")
        return " · ".join(parts)


class Progress:
    """Shows a `Tally` from `__enter__` to `__exit__`.

    Args:
        tally: the counts, updated by `finished` and `step`.
        title: what runs, for the start of each line.
        mode: "auto" is "rich" where stderr is a terminal and "plain" elsewhere.
    """

    def __init__(self, tally: Tally, title: str, mode: Mode = "auto") -> None:
        self.tally, self.title = tally, title
        self.console = Console(stderr=True, soft_wrap=True)
        self.mode = (
            mode if mode != "auto" else "rich" if self.console.is_terminal and not self.console.is_dumb_terminal else "plain"
        )
        self._live: Live | None = None
        self._said_at, self._said_share, self._said = 0.0, 0.0, (-1, -1)

    def __enter__(self) -> Progress:
        self.tally.started, self.tally.steps = time.monotonic(), 0
        if self.mode == "rich":
            self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=2, transient=True)
            self._live.start()
        elif self.mode == "plain":
            self._said_at, self._said_share = time.monotonic(), self.tally.done / max(self.tally.planned, 1)
            self._say()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        elif self.mode == "plain" and self._said != (self.tally.done, self.tally.errors):
            self._say()

    def finished(self, episode: Episode, *, was_error: bool) -> None:
        """An episode ended."""
        self.tally.add(episode, was_error=was_error)
        self._tick()

    def step(self, count: int = 1) -> None:
        """An engine made a step, or several at once."""
        self.tally.steps += count
        if self.mode == "plain" and (count > 1 or self.tally.steps % 16 == 0):
            self._tick()

    def _tick(self) -> None:
        if self.mode != "plain":
            return
        share, now = self.tally.done / max(self.tally.planned, 1), time.monotonic()
        if share - self._said_share >= PLAIN_SHARE or now - self._said_at >= PLAIN_SECONDS:
            self._said_share, self._said_at = share, now
            self._say()

    def _say(self) -> None:
        self._said = (self.tally.done, self.tally.errors)
        sys.stderr.write(f"{self.title}: {self.tally.line()}\n")
        sys.stderr.flush()

    def _render(self) -> Text:
        share = self.tally.done / max(self.tally.planned, 1)
        bar = "█" * round(20 * share)
        return Text.assemble((f"{self.title} ", "bold"), (f"{bar:░<20} ", "green"), self.tally.line())


def show_result(summary: Mapping[str, Any], folder: Path, *, table: bool = True) -> None:
    """The final table, and the run folder as the last line of stdout."""
    if table:
        Console(file=sys.stdout).print(result_table(summary))
    sys.stdout.write(f"{folder}\n")
    sys.stdout.flush()


def result_table(summary: Mapping[str, Any]) -> Table:
    """Summary of one run for people."""
    partial = f", partial: {summary['finished']}/{summary['planned']}" if summary.get("partial") else ""
    table = Table(title=f"{summary['paradigm']} · {summary['env']} · {summary['model']}{partial}", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in result_rows(summary):
        table.add_row(name, text)
    return table


def result_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of the final table."""
    tokens, cost = summary.get("tokens"), summary.get("cost")
    total = sum(v for k, v in tokens.items() if k in ("prompt", "completion")) if isinstance(tokens, Mapping) else tokens
    rows = [("episodes", f"{summary['finished']} of {summary['planned']}"), ("success rate", _rate(summary))]
    for key, name, form in (
        ("mean_score", "mean score", "{:.3f}"),
        ("mean_steps", "mean steps", "{:.1f}"),
        ("invalid_rate", "invalid replies", "{:.1%}"),
        ("truncated_rate", "truncated replies", "{:.1%}"),
    ):
        if summary.get(key) is not None:
            rows.append((name, form.format(summary[key])))
    if asked := summary.get("map_qa"):
        rows.append(("map QA", f"{asked['accuracy']:.1%} of {asked['questions']} questions, unknown {asked['unknown']:.1%}"))
    if summary.get("coverage") is not None:
        rows.append(("map seen", f"{summary['coverage']:.1%}"))
        rows += [(f"  after {mark} steps", f"{share:.1%}") for mark, share in summary["coverage_at"].items()]
        rows += [(name, "not by all" if summary[name] is None else f"{summary[name]:.0f} steps") for name in ("t90", "t99")]
    if total is not None:
        rows.append(("tokens", compact(total) + (f" (${cost:.2f})" if cost is not None else "")))
    rows.append(("harness errors", str(summary["harness_errors"])))
    if summary.get("end_reasons"):
        rows.append(("end reasons", ", ".join(f"{reason} {n}" for reason, n in summary["end_reasons"].items())))
    return rows


def _rate(summary: Mapping[str, Any]) -> str:
    if summary.get("success_rate") is None:
        return "-"
    low, high = summary["success_interval"]
    return f"{summary['success_rate']:.1%} [{low:.1%}, {high:.1%}]"


def compact(number: float) -> str:
    """1234567 -> "1.2M"."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, the two largest."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
