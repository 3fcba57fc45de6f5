"""The run folder: `manifest.json`, `episodes.jsonl` (one line per finished episode) and `summary.json`.

A line is appended with one write and fsynced within moments; a `kill -9` at any moment leaves at most one torn last line, which
readers skip and the next writer cuts off. One process writes a file at a time (flock). Shards of a plan write files of their
own, `episodes-<i>of<n>.jsonl`, and reading merges them.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from agentexp.errors import FatalError, UserError
from agentexp.records import Record, dump, slim_record
from agentexp.run_files import read_json as read_json
from agentexp.scrub import clean_line

log = logging.getLogger(__name__)

_HEAD = re.compile(
    rb'\{"schema":\d+,"key":("(?:[^"\\]|\\.)*"),"status":"(ok|error)","end_reason":"\w*","success":(true|false),'
)


class FolderBusy(UserError):
    """Another process is writing the run folder."""


class Found(NamedTuple):
    """Where the record that counts for one task key lies."""

    status: str
    success: bool
    file: Path
    offset: int
    length: int


class RunFolder:
    """One run folder, opened for writing by `with RunFolder(path) as folder:`.

    Args:
        path: the folder; made on entering.
        shard: (i, n) when this process runs the i-th of n parts of the plan (0-based).
    """

    def __init__(self, path: Path, shard: tuple[int, int] | None = None) -> None:
        self.path, self.shard = path, shard
        self.episodes_file = path / ("episodes.jsonl" if shard is None else f"episodes-{shard[0]}of{shard[1]}.jsonl")
        self._locks: list[int] = []
        self._file = -1

    def __enter__(self) -> RunFolder:
        """Lock the folder, repair a torn last line and remove what a killed process left of `write_json`.

        Raises:
            FolderBusy: another process writes it.
            UserError: it cannot be made or written (rights, a file in its place, a full disk).
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # shards share the folder's lock and own their file's; a run without shards owns the folder
            self._lock(".lock", fcntl.LOCK_SH if self.shard else fcntl.LOCK_EX)
            if self.shard:
                self._lock(f".lock-{self.shard[0]}of{self.shard[1]}", fcntl.LOCK_EX)
            self._file = os.open(self.episodes_file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            _repair(self._file, self.episodes_file)
            for leftover in self.path.glob(".*.tmp") if self.shard is None else ():  # else maybe another shard's, being written
                leftover.unlink()
        except OSError as error:
            self.close()
            raise UserError(f"The run folder {self.path} cannot be written: {error.strerror}. Change output_root=.") from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give up the locks. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        while self._locks:
            os.close(self._locks.pop())

    def _lock(self, name: str, kind: int) -> None:
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o644)
        self._locks.append(descriptor)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            raise FolderBusy(
                f"The run folder {self.path} is being written by {holder}. Wait for it to end, or change output_root=."
            ) from error
        if kind == fcntl.LOCK_EX:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    @contextmanager
    def sole(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        """Whether no other process of this folder is in such a block of the same name now; `wait`: until that is so."""
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def append(self, line: bytes) -> None:
        """Append one record: safe from now on when this process dies, and after `sync` when the machine does.

        A write that fails half-way (disk full) is taken back.

        Raises:
            OSError: the disk refused.
        """
        append_line(self._file, line)

    def sync(self) -> None:
        """Wait until everything appended is on the disk itself. May be called from another thread."""
        os.fsync(self._file)

    def append_to(self, name: str, record: Mapping[str, Any]) -> None:
        """Append one JSON line to another file of the folder (`setup.jsonl`)."""
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _repair(descriptor, self.path / name)
            append_line(descriptor, dump(record))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_json(self, name: str, value: Any) -> Path:
        """Replace a file of the folder at once: a reader sees the old or the new content, never a part.

        Raises:
            FatalError: the disk refused.
        """
        try:
            return write_json(self.path / name, value)
        except OSError as error:
            raise FatalError(f"{self.path / name} cannot be written: {error.strerror}.") from error

    def remove(self, *names: str) -> None:
        """Remove files of the folder, where they exist."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def discard_unused(self, *names: str) -> None:
        """Take away the folder of a command that was refused before its first episode, with these files of it.

        Anything else that lies in it (tokens already spent, an earlier run's episodes) keeps it.
        """
        if self.shard is None and not self.episodes_file.stat().st_size:
            self.remove(*names, self.episodes_file.name, ".lock")
            with suppress(OSError):
                self.path.rmdir()

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Content of a file of the folder, None where it does not exist."""
        return read_json(self.path / name)


def append_line(descriptor: int, line: bytes) -> None:
    """Append `line` and a newline with one write, all or nothing."""
    data = clean_line(line) + b"\n"
    size = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, data)
        while written < len(data):  # a short write is followed by one that raises or completes
            written += os.write(descriptor, data[written:])
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _repair(descriptor: int, file: Path) -> None:
    """Cut off a torn last line; only complete it when nothing but the newline is missing."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(1 << 16, start)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
    line = tail.rsplit(b"\n", 1)[-1]
    if _is_json(line):
        os.write(descriptor, b"\n")
    else:
        log.warning("%s ended in the middle of a line (an interrupted write); that line was cut off.", file)
        os.ftruncate(descriptor, size - len(line))
    os.fsync(descriptor)


def write_json(path: Path, value: Any) -> Path:
    """Write indented JSON through a temporary file and a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # dump() first: it knows how to write what json does not, and makes the text safe for UTF-8
    text = json.dumps(json.loads(dump(value)), ensure_ascii=False, indent=2)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(clean_line(text.encode(errors="backslashreplace")) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return path


def episode_files(folder: Path) -> list[Path]:
    """`episodes.jsonl` and the shards' files, those that exist."""
    shards = sorted(p for p in folder.glob("episodes-*of*.jsonl") if re.fullmatch(r"episodes-\d+of\d+\.jsonl", p.name))
    whole = folder / "episodes.jsonl"
    return [*([whole] if whole.is_file() else []), *shards]


def index(folder: Path) -> dict[str, Found]:
    """For every task key the record that counts: the last "ok", or the last error where there is no "ok".

    Reads every file once and parses only the head of each line; lines that are torn or not records are skipped with a warning.
    """
    return _scan(folder)[0]


def superseded(folder: Path) -> Iterator[Record]:
    """The records that do not count because a later one of the same key does: harness errors that were run again."""
    places = _scan(folder)[1]
    with _open_files(folder) as files:
        for place in places:
            files[place.file].seek(place.offset)
            record = _parse(files[place.file].read(place.length))
            if record is not None:
                yield record


def _scan(folder: Path) -> tuple[dict[str, Found], list[Found]]:
    """Where the records lie that count, by key, and the others."""
    found: dict[str, Found] = {}
    others: list[Found] = []
    for file in episode_files(folder):
        offset = 0
        with file.open("rb") as lines:
            for line in lines:
                head = _HEAD.match(line) if line.endswith(b"}\n") else None
                if head:
                    key, status, success = json.loads(head[1]), head[2].decode(), head[3] == b"true"
                else:
                    record = _parse(line)
                    if record is None:
                        if line.endswith(b"\n"):  # else the torn end of an interrupted run, or a running one's next line
                            log.warning("%s: the line at byte %d is not a record and was skipped.", file, offset)
                        offset += len(line)
                        continue
                    key, status, success = _key(record), str(record["status"]), bool(record.get("success"))
                place = Found(status, success, file, offset, len(line))
                if status != "ok" and key in found and found[key].status == "ok":
                    others.append(place)
                else:
                    others += [found[key]] if key in found else []
                    found[key] = place
                offset += len(line)
    return found, others


def read_episodes(folder: Path, keys: list[str] | None = None, *, slim: bool = False) -> Iterator[Record]:
    """The records of a run folder (finished, partial or running), one per task key; the last "ok" wins over errors.

    Args:
        folder: the run folder.
        keys: the plan: only these, in this order. None: the plan of the manifest, or all records where there is none.
        slim: leave out conversations and model calls, which are most of a record and of the time to read it.

    Yields:
        Parsed lines of `episodes.jsonl`, in the order of the plan. That order, not the order in which episodes ended, makes
        every sum over them repeatable.
    """
    found = index(folder)
    if keys is None:
        manifest = read_json(folder / "manifest.json") or {}
        keys = list(manifest.get("planned") or found)
    with _open_files(folder) as files:
        for key in keys:
            place = found.get(key)
            if place is not None:
                file = files[place.file]
                file.seek(place.offset)
                record = _parse(file.read(place.length), slim)
                if record is None:
                    log.warning("%s: the line at byte %d is damaged and was skipped.", place.file, place.offset)
                else:
                    yield record


@contextmanager
def _open_files(folder: Path) -> Iterator[dict[Path, Any]]:
    files = {path: path.open("rb") for path in episode_files(folder)}
    try:
        yield files
    finally:
        for file in files.values():
            file.close()


def _parse(line: bytes, slim: bool = False) -> Record | None:
    """The record of a line; None when it is torn or something else."""
    try:
        record = (slim_record(line) if slim else None) or json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("status") not in ("ok", "error"):
        return None
    task = record.get("task")
    return record if isinstance(task, dict) and {"env", "split", "id"} <= task.keys() else None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _key(record: Record) -> str:
    if "key" in record:
        return str(record["key"])
    task = record["task"]
    return f"{task['env']}/{task['split']}/{task['id']}#seed{task.get('seed', 0)}.{task.get('repeat', 0)}"
