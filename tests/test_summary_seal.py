"""A finished run that is issued again takes its stored summary, but only while that is the summary of these records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_fakes import make_run

from agentexp import runner
from agentexp.run import Run
from agentexp.runner import run_sync
from agentexp.store import read_json
from agentexp.summary import SEAL_FILE


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every summary that is computed."""
    calls: list[str] = []
    compute = runner.summarise_run

    def counting(*args: object, **more: object) -> object:
        calls.append("summary")
        return compute(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "summarise_run", counting)
    return calls


def finished(root: Path) -> Run:
    run = make_run(root, tasks=4)
    run_sync(run)
    return run


def test_nothing_new_means_no_new_summary(tmp_path: Path, computed: list[str]) -> None:
    run = finished(tmp_path)
    before = (run.folder / "summary.json").read_bytes()
    summary, code = run_sync(make_run(tmp_path, tasks=4))
    assert computed == ["summary"] and code == 0
    assert (run.folder / "summary.json").read_bytes() == before
    assert read_json(run.folder / "summary.json") == json.loads(json.dumps(summary))


@pytest.mark.parametrize("change", ["record", "setup", "summary", "no summary", "seal", "no seal", "binary seal"])
def test_any_change_means_a_new_summary(tmp_path: Path, computed: list[str], change: str) -> None:
    run = finished(tmp_path)
    right = (run.folder / "summary.json").read_text()
    if change == "record":  # of an earlier attempt that now counts as wasted
        line = (run.folder / "episodes.jsonl").read_text().splitlines()[0]
        with (run.folder / "episodes.jsonl").open("a") as file:
            file.write(line + "\n")
    elif change == "setup":
        (run.folder / "setup.jsonl").write_text("not a model call\n")
    elif change == "summary":
        (run.folder / "summary.json").write_text(right.replace('"finished": 4', '"finished": 3'))
    elif change == "no summary":
        (run.folder / "summary.json").unlink()
    elif change == "no seal":
        (run.folder / SEAL_FILE).unlink()
    else:
        (run.folder / SEAL_FILE).write_bytes(b"\xff" if change == "binary seal" else b"0")
    summary, code = run_sync(make_run(tmp_path, tasks=4))
    assert computed == ["summary"] * 2
    assert (summary["finished"], code) == (4, 0)
    assert (run.folder / "summary.json").read_text() == right or change == "record"


def test_another_plan_means_a_new_summary(tmp_path: Path, computed: list[str]) -> None:
    finished(tmp_path)
    summary, _ = run_sync(make_run(tmp_path, tasks=4, limit=3))
    assert computed == ["summary"] * 2 and summary["planned"] == 3
