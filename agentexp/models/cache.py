"""Replies kept in a SQLite file, so that a run repeated with the same settings asks the server nothing.

The key is a hash of everything that can change the reply (see `key`), with the task's seed and repeat: two repeats of a sampled
model never share a slot. Several processes may use one file; the first reply to a key stays.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentexp.core import Completion, Usage
from agentexp.errors import UserError
from agentexp.records import dump
from agentexp.scrub import clean_line

log = logging.getLogger(__name__)

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"


def key(*parts: bytes | str | int | float | None) -> bytes:
    """Hash of the parts. Each part is written with its type and length: ("ab", "c") differs from ("a", "bc"), 1 from "1"."""
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(f"{type(part).__name__}:{len(data)}:".encode())
        digest.update(data)
    return digest.digest()


class ResponseCache:
    """One open cache file. Calls take some tens of microseconds and are made on the event loop's thread."""

    def __init__(self, path: str) -> None:
        """Open or create the file at `path`, with its folder.

        Raises:
            UserError: the file cannot be opened or is no cache of ours.
        """
        file = Path(path).expanduser()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(file, timeout=10.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            # A reply lost in a power cut is asked for again, so the cost of a sync on every write buys nothing.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"The response cache model.cache={path} cannot be opened: {error}. Name another file or null."
            ) from error

    def get(self, slot: bytes) -> Completion | None:
        """The reply kept under `slot`, marked as cached; its usage is that of the original call."""
        try:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (slot,)).fetchone()
        except sqlite3.Error as error:
            log.warning("The response cache could not be read, the model is asked instead: %s", error)
            return None
        if row is None:
            return None
        fields: dict[str, Any] = json.loads(row[0])
        return Completion(**{**fields, "usage": Usage(**fields["usage"]), "seconds": 0.0, "retries": 0, "cached": True})

    def put(self, slot: bytes, reply: Completion) -> None:
        """Keep `reply` under `slot` unless there is one already. A full disk or a lock costs a warning, not the reply."""
        try:
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (slot, clean_line(dump(asdict(reply))).decode()))
        except sqlite3.Error as error:
            log.warning("A reply could not be written to the response cache: %s", error)

    def __len__(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM replies").fetchone()[0]
        return count

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._db.close()
