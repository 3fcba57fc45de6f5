"""A file of a run folder that is not what it should be: one sentence that names it, or a page without it; never a traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_fakes import make_run

from agentexp import run_files
from agentexp.errors import AgentExpError, UserError
from agentexp.export import Filters, export
from agentexp.reports import compare, report
from agentexp.runner import run_sync
from agentexp.store import read_json
from agentexp.view import write_comparison, write_page

FILES = ("manifest.json", "summary.json", "artefacts.json", "kg.json")
WRONG: dict[str, bytes] = {
    "empty": b"",
    "list": b"[1, 2]",
    "number": b"5",
    "text": b'"x"',
    "null": b"null",
    "cut": b'{"planned": ["a", "b',
    "latin1": '{"env": "\u00e9"}'.encode("latin-1"),
    "binary": bytes(range(256)),
    "utf16": '{"env": "x"}'.encode("utf-16") + b"\x00",
    "deep": b"[" * 200_000,
    "deep object": b'{"a":' * 200_000,
    "long number": b'{"planned": ' + b"9" * 5000 + b"}",
    "no keys": b"{}",
    "other keys": b'{"hello": 1}',
}
SHAPES: list[tuple[str, dict[str, Any]]] = [
    *(("manifest.json", {"planned": value}) for value in (5, "abc", None, [1, 2], {"a": 1}, [None], [["x"]])),
    *(
        ("manifest.json", {"config": value})
        for value in (5, "abc", [1], None, {"paradigm": 5}, {"paradigm": "map", "roles": [1]})
    ),
    *(("manifest.json", {name: 7}) for name in ("env", "paradigm", "model", "split", "command", "seeds", "code")),
    *(("summary.json", {name: "x"}) for name in ("finished", "planned", "harness_errors", "end_reasons", "warnings")),
    *(("artefacts.json", {"k_g": value}) for value in (5, [1], "x", None)),
    *(("kg.json", {"k_g": value}) for value in (5, [1], "x", None)),
]


def users_commands(damaged: Path, good: Path, out: Path) -> dict[str, Callable[[], Any]]:
    return {
        "view": lambda: write_page(damaged, out / "p.html"),
        "view --compare": lambda: write_comparison(good, damaged, out / "c.html"),
        "compare": lambda: compare(damaged, good),
        "report": lambda: report("runs", [damaged]),
        **{
            f"export {form}": lambda form=form: export([damaged], form, out / form, Filters())
            for form in ("jsonl", "csv", "messages", "sharegpt")
        },
        "eval again": lambda: run_sync(make_run(damaged.parent, folder=damaged, limit=3, progress="off")),
    }


def two_runs(root: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        run_sync(make_run(root, folder=root / name, limit=3, progress="off"))
    return root / "a", root / "b"


def each_command(damaged: Path, good: Path, file: str) -> None:
    before = {path: path.read_bytes() for path in damaged.iterdir() if path.is_file()}
    for name, command in users_commands(damaged, good, damaged.parent / "out").items():
        try:
            command()
        except AgentExpError as error:
            assert "Traceback" not in str(error) and str(error).strip().endswith((".", "folder", "=")), (name, str(error))
            assert str(damaged) in str(error), (name, str(error))
        for path, content in before.items():
            path.write_bytes(content)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_file_of_another_kind(tmp_path: Path, file: str, wrong: str) -> None:
    damaged, good = two_runs(tmp_path)
    (damaged / file).write_bytes(WRONG[wrong])
    each_command(damaged, good, file)


@pytest.mark.parametrize(("file", "change"), SHAPES, ids=lambda value: str(value)[:60])
def test_a_value_of_another_kind(tmp_path: Path, file: str, change: dict[str, Any]) -> None:
    damaged, good = two_runs(tmp_path)
    content = json.loads((damaged / file).read_bytes()) if (damaged / file).is_file() else {}
    (damaged / file).write_text(json.dumps({**content, **change}))
    each_command(damaged, good, file)


@pytest.mark.parametrize("wrong", [name for name in WRONG if name not in ("no keys", "other keys")])
def test_the_sentence_names_the_file_and_what_to_do(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "manifest.json").write_bytes(WRONG[wrong])
    with pytest.raises(UserError, match=r"manifest\.json .*(Remove it, or restore it from a copy|cannot be read)"):
        read_json(tmp_path / "manifest.json")


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "manifest.json"
    with file.open("wb") as sparse:
        sparse.truncate(run_files.MOST_BYTES + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read"))
    with pytest.raises(UserError, match="1024 MiB"):
        read_json(file)


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(UserError, match=r"summary\.json cannot be read"):
        read_json(tmp_path / "summary.json")


def test_an_export_of_many_runs_leaves_the_damaged_one_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    two_runs(tmp_path)
    (tmp_path / "a" / "manifest.json").write_bytes(b"[]")
    with caplog.at_level(logging.WARNING):
        _, lines = export([tmp_path], "jsonl", tmp_path / "out", Filters())
    assert any(line.startswith("episodes.jsonl: 3") for line in lines)
    assert "Left out" in caplog.text and str(tmp_path / "a") in caplog.text
