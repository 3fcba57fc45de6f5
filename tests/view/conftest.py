"""One browser of each size for all page tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser_kit import Browser


def _browser(width: int, height: int) -> Iterator[Browser]:
    browser = Browser(width, height)
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="session")
def desktop() -> Iterator[Browser]:
    yield from _browser(1360, 900)


@pytest.fixture(scope="session")
def phone() -> Iterator[Browser]:
    yield from _browser(390, 844)
