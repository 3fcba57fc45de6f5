"""The values printed in the papers (`published.yaml`), which tables show beside the measured ones."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml


@cache
def published() -> dict[str, Any]:
    """Everything: by paper ("000_MAP", "001_ECC" ...), then `tables`, `figures`, `prose`. Rates in percent."""
    text = resources.files("agentexp.reports").joinpath("published.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def published_value(*path: str) -> Any | None:
    """One entry, None where the paper prints none: `published_value("000_MAP", "tables", "table1", "rows", ...)`."""
    node: Any = published()
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node
