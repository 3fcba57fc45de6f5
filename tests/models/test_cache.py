import sqlite3
from pathlib import Path

import pytest

from agentexp.core import Completion, Usage
from agentexp.errors import UserError
from agentexp.models.cache import ResponseCache, key
from agentexp.models.pricing import Price


def test_key_separates_parts_and_types() -> None:
    keys = [key("ab", "c"), key("a", "bc"), key("abc"), key(1), key("1"), key(None), key("None"), key(b"1"), key()]
    assert len(set(keys)) == len(keys)
    assert key("a", 1) == key("a", 1)


def test_round_trip_between_two_openings(tmp_path: Path) -> None:
    path = str(tmp_path / "new folder" / "cache.sqlite")
    reply = Completion("Äction: 看", reasoning="r", finish_reason="length", usage=Usage(5, 3, 2, 1), retries=2, seconds=1.5)
    first, second = ResponseCache(path), ResponseCache(path)
    first.put(b"k", reply)
    first.put(b"k", Completion("a later reply"))
    kept = second.get(b"k")
    assert kept is not None and kept.cached and kept.retries == 0 and kept.seconds == 0
    assert (kept.text, kept.reasoning, kept.finish_reason, kept.usage) == ("Äction: 看", "r", "length", Usage(5, 3, 2, 1))
    assert second.get(b"other") is None and len(second) == 1
    for cache in (first, second, second):
        cache.close()


def test_a_file_that_is_no_cache_is_a_user_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 100)
    with pytest.raises(UserError, match=r"model.cache="):
        ResponseCache(str(path))


def test_a_reply_that_cannot_be_written_is_not_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = ResponseCache(str(tmp_path / "c"))
    with sqlite3.connect(tmp_path / "c") as other:
        other.execute("DROP TABLE replies")
    cache.put(b"k", Completion("x"))
    assert cache.get(b"k") is None
    assert "could not be written" in caplog.text and "could not be read" in caplog.text


def test_price() -> None:
    price = Price.of(2.0, 8.0, 0.5)
    assert price is not None
    assert price.cost(1_000_000, 500_000, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 4)
    assert Price.of(2.0, 8.0, None) == Price(2.0, 8.0, 2.0)
    assert Price.of(None, None, None) is None
    for wrong in ((1.0, None, None), (None, None, 1.0), (-1.0, 1.0, None)):
        with pytest.raises(UserError, match=r"model.price_in"):
            Price.of(*wrong)
