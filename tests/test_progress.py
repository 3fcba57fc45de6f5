from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentexp.core import Episode, Task, Usage
from agentexp.progress import Progress, Tally, compact, duration, result_rows, show_result

SUMMARY = {
    "env": "counting",
    "paradigm": "react",
    "model": "go",
    "planned": 20,
    "finished": 5,
    "harness_errors": 1,
    "success_rate": 0.4,
    "success_interval": [0.1, 0.7],
    "mean_steps": 3.25,
    "invalid_rate": 0.125,
    "truncated_rate": None,
    "tokens": {"prompt": 1000, "completion": 500},
    "cost": 0.5,
    "end_reasons": {"won": 2, "lost": 3},
    "partial": True,
}


def episode(*, success: bool = True, status: str = "ok") -> Episode:
    made = Episode(Task("a", "w", "test"), "react", "go", status=status, success=success)  # type: ignore[arg-type]
    made.usage = Usage(900, 100, 0, 1, 0.01)
    return made


def test_the_line_says_what_people_want_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr("agentexp.progress.time.monotonic", lambda: now)
    tally = Tally(planned=10, started=now - 10)
    for success in (True, True, False):
        tally.add(episode(success=success), was_error=False)
    tally.add(episode(status="error"), was_error=False)
    tally.steps = 50
    line = tally.line()
    for part in ("3/10 episodes", "success 66.7% [", "5.0 steps/s", "4.0k tokens", "$0.04", "1 harness error", "ETA 15s"):
        assert part in line
    tally.add(episode(), was_error=True)
    assert tally.errors == 0


def test_phases_without_success_show_no_rate() -> None:
    tally = Tally(planned=2)
    made = episode(success=False)
    made.end_reason = "completed"
    tally.add(made, was_error=False)
    assert "1/2 episodes" in tally.line()
    assert "success" not in tally.line()


def test_plain_lines_come_at_intervals_not_for_every_episode(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(Tally(1000), "eval", "auto") as progress:
        assert progress.mode == "plain"
        for _ in range(1000):
            progress.finished(episode(), was_error=False)
    lines = capsys.readouterr().err.splitlines()
    assert 10 <= len(lines) <= 13
    assert all(line.startswith("eval: ") for line in lines)
    assert lines[-1].startswith("eval: 1000/1000")


def test_off_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(Tally(1), "eval", "off") as progress:
        progress.finished(episode(), was_error=False)
    assert capsys.readouterr() == ("", "")


def test_rich_leaves_the_terminal_clean(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(Tally(2), "eval", "rich") as progress:
        progress.finished(episode(), was_error=False)
        progress.step()
        assert "1/2 episodes" in progress._render().plain
    assert capsys.readouterr().out == ""


def test_the_table_and_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = dict(result_rows(SUMMARY))
    assert rows["success rate"] == "40.0% [10.0%, 70.0%]"
    assert rows["tokens"] == "1.5k ($0.50)"
    assert rows["harness errors"] == "1"
    assert rows["end reasons"] == "won 2, lost 3"
    assert "truncated replies" not in rows
    folder = Path("outputs") / ("long " * 40)
    show_result(SUMMARY, folder)
    out = capsys.readouterr().out
    assert "partial: 5/20" in out
    assert out.splitlines()[-1] == str(folder)


def test_numbers_for_people() -> None:
    assert [compact(n) for n in (5, 1500, 2_500_000)] == ["5", "1.5k", "2.5M"]
    assert [duration(s) for s in (5, 65, 3700)] == ["5s", "1m05s", "1h01m"]
