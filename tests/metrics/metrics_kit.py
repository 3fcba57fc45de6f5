"""Records for tests of metrics, and the spec's test vectors."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def vectors(name: str) -> Any:
    """One entry of testvectors.json; skips where the folder is missing."""
    file = SHARED / "spec" / "testvectors.json"
    if not file.is_file():
        pytest.skip("the spec's testvectors.json is not here (set AGENTEXP_SHARED)")
    return json.loads(file.read_text("utf-8"))[name]


def episode(
    steps: Sequence[tuple[str | None, bool]], *, success: bool = False, phase: str = "acting", ident: str = "a"
) -> dict[str, Any]:
    """A record with these (action, refused) steps; action None is an unreadable reply."""
    rows = [
        {
            "phase": phase,
            "action": action,
            "status": "ok" if action is not None else "invalid",
            "observation": "Nothing happens." if error else "ok",
            "score": 0.0,
            "done": False,
            "success": False,
            "error": error,
        }
        for action, error in steps
    ]
    return {
        "status": "ok",
        "success": success,
        "steps": len(rows),
        "seconds": 2.0,
        "task": {"id": ident, "seed": 0, "repeat": 0},
        "usage": usage(),
        "trajectory": rows,
        "notes": {},
    }


def usage(prompt: int = 0, completion: int = 0, calls: int = 0, cost: float | None = None) -> dict[str, Any]:
    """Usage as in a record."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": 0, "calls": calls, "cost": cost}
