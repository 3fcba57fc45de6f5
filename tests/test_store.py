from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest

import agentexp.store as store
from agentexp.core import Episode, Task
from agentexp.errors import FatalError, UserError
from agentexp.records import episode_to_json
from agentexp.store import FolderBusy, RunFolder, index, read_episodes, read_json, write_json


def line(name: str, status: str = "ok", *, success: bool = False) -> bytes:
    task = Task(name, "w", "test")
    reason = "won" if success else "env_error" if status == "error" else "lost"
    return episode_to_json(Episode(task, "plain", "go", status=status, end_reason=reason, success=success))  # type: ignore[arg-type]


def ids(folder: Path) -> list[str]:
    return [record["task"]["id"] for record in read_episodes(folder)]


def test_append_and_read(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.append(line("a"))
        folder.append(line("b", success=True))
    assert ids(tmp_path / "run") == ["a", "b"]
    assert index(tmp_path / "run")["w/test/b#seed0.0"].success


def test_last_ok_wins_over_errors_and_over_older_ok(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        for item in (line("a", "error"), line("a"), line("a", success=True), line("a", "error"), line("b", "error")):
            folder.append(item)
    records = {record["task"]["id"]: record for record in read_episodes(tmp_path)}
    assert records["a"]["status"] == "ok"
    assert records["a"]["success"]
    assert records["b"]["status"] == "error"
    assert len(records) == 2


@pytest.mark.parametrize("cut", [1, 5, 40, 10_000])
def test_a_torn_last_line_is_skipped_by_readers_and_cut_off_by_the_next_writer(tmp_path: Path, cut: int) -> None:
    with RunFolder(tmp_path) as folder:
        for name in ("a", "b", "c"):
            folder.append(line(name))
    file = tmp_path / "episodes.jsonl"
    whole = file.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    torn = whole[: len(whole) - min(cut, len(last) - 1)]
    file.write_bytes(torn)
    assert ids(tmp_path) == (["a", "b", "c"] if cut == 1 else ["a", "b"])  # cut == 1: only the newline is missing
    with RunFolder(tmp_path) as folder:
        folder.append(line("d"))
    assert ids(tmp_path) == (["a", "b", "c", "d"] if cut == 1 else ["a", "b", "d"])
    assert all(json.loads(text) for text in file.read_text().splitlines())


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    write_json(tmp_path / "summary.json", {"whole": True})
    for pid in (1, 2):
        (tmp_path / f".summary.json.{pid}.tmp").write_text('{"who')
    with RunFolder(tmp_path, shard=(0, 2)):
        assert len(list(tmp_path.glob(".*.tmp"))) == 2  # may be another shard's
    with RunFolder(tmp_path):
        assert not list(tmp_path.glob(".*.tmp"))
    assert read_json(tmp_path / "summary.json") == {"whole": True}


def test_a_torn_line_longer_than_the_repair_block(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.append(line("a"))
    with (tmp_path / "episodes.jsonl").open("ab") as file:
        file.write(b'{"schema":1,"goal":"' + b"x" * 200_000)
    with RunFolder(tmp_path) as folder:
        folder.append(line("b"))
    assert ids(tmp_path) == ["a", "b"]


def test_a_damaged_line_in_the_middle_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "episodes.jsonl").write_bytes(line("a") + b"\n\x00\x00garbage\n[1]\n" + line("b") + b"\n")
    assert ids(tmp_path) == ["a", "b"]
    assert "not a record" in caplog.text


def test_a_write_that_fails_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunFolder(tmp_path) as folder:
        folder.append(line("a"))
        size = (tmp_path / "episodes.jsonl").stat().st_size
        with monkeypatch.context() as patched:
            calls = iter([full_disk, lambda *_: full_disk(-1, b"")])
            patched.setattr(store.os, "write", lambda *a: next(calls)(*a))
            with pytest.raises(OSError, match="No space"):
                folder.append(line("b"))
        assert (tmp_path / "episodes.jsonl").stat().st_size == size
        folder.append(line("c"))
    assert ids(tmp_path) == ["a", "c"]


def _hold(folder: Path, ready: object, release: object) -> None:
    with RunFolder(folder):
        ready.set()  # type: ignore[attr-defined]
        release.wait(30)  # type: ignore[attr-defined]


def test_two_processes_cannot_write_one_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(tmp_path, ready, release))
    process.start()
    assert ready.wait(30)
    with pytest.raises(FolderBusy, match=f"process {process.pid} on"), RunFolder(tmp_path):
        pass
    with pytest.raises(FolderBusy), RunFolder(tmp_path, (0, 2)):
        pass
    release.set()
    process.join()
    with RunFolder(tmp_path):
        pass


def test_shards_write_side_by_side_and_are_read_as_one(tmp_path: Path) -> None:
    with RunFolder(tmp_path, (0, 2)) as first, RunFolder(tmp_path, (1, 2)) as second:
        first.append(line("a", "error"))
        second.append(line("b"))
        second.append(line("a"))
        with pytest.raises(FolderBusy), RunFolder(tmp_path):
            pass
        with pytest.raises(FolderBusy), RunFolder(tmp_path, (1, 2)):
            pass
    assert {p.name for p in tmp_path.glob("*.jsonl")} == {"episodes-0of2.jsonl", "episodes-1of2.jsonl"}
    assert {record["task"]["id"]: record["status"] for record in read_episodes(tmp_path)} == {"a": "ok", "b": "ok"}


def test_reading_follows_the_plan(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        for name in ("c", "a", "b"):
            folder.append(line(name))
    assert ids(tmp_path) == ["c", "a", "b"]
    write_json(tmp_path / "manifest.json", {"planned": [f"w/test/{name}#seed0.0" for name in ("a", "b", "z")]})
    assert ids(tmp_path) == ["a", "b"]


def test_json_files_are_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x" / "summary.json"
    write_json(path, {"a": 1})
    write_json(path, {"text": "李 \ud800", "nan": float("nan")})
    assert read_json(path) == {"text": "李 \ud800", "nan": None}
    assert "李" in path.read_text()
    assert [p.name for p in path.parent.iterdir()] == ["summary.json"]
    assert read_json(tmp_path / "absent.json") is None
    path.write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read_json(path)


def test_a_disk_that_refuses_gets_one_sentence_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunFolder(tmp_path) as folder:
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(FatalError, match=r"summary\.json cannot be written: No space left"):
            folder.write_json("summary.json", {})
    assert not list(tmp_path.glob("*.tmp")) + list(tmp_path.glob(".*.tmp"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="output_root"):
        RunFolder(tmp_path / "file" / "run").__enter__()


def test_lines_that_are_no_whole_records_are_skipped(tmp_path: Path) -> None:
    odd = [b"garbage", b'{"a":1}', b'{"task":1,"status":"ok"}', b'{"task":{},"status":"ok"}', b"\0" * 50, line("b")[:150]]
    (tmp_path / "episodes.jsonl").write_bytes(b"\n".join([line("a"), *odd, line("c")]) + b"\n")
    assert ids(tmp_path) == ["a", "c"]
    assert [found.status for found in index(tmp_path).values()] == ["ok", "ok"]
