"""Scripted agents by name, for the `policy` method of worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentexp.core import Policy
from agentexp.errors import UserError


def fresh_agent(kinds: Mapping[str, Callable[..., Policy]], name: str, world: str, *arguments: Any) -> Policy:
    """Make the agent called `name` with `arguments` (its seed first). Raises `UserError` with the names that there are."""
    if name not in kinds:
        raise UserError(f"model.policy={name} does not exist in {world}; choose one of {', '.join(kinds)}.")
    return kinds[name](*arguments)
