"""What a whole run may spend (`limits.run_tokens`, `limits.run_cost`): when it is used up, no new episode begins."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.core import Usage
from agentexp.limits import Limits
from agentexp.records import Record


class RunCaps:
    """Counts what a run has used over all its processes.

    Args:
        limits: the caps.
        records: episodes that are stored already, also failed ones that were run again: they were paid for as well.
        setup: use outside the episodes so far.
    """

    def __init__(self, limits: Limits, records: Iterable[Record] = (), setup: Usage = Usage()) -> None:
        self.limits, self.used = limits, setup
        if self.any(limits):  # reading every record takes a while, and nobody asked
            for record in records:
                for name in ("usage", "wasted"):
                    self.used += Usage(**(record.get(name) or {}))

    @staticmethod
    def any(limits: Limits) -> bool:
        """Whether there is a cap."""
        return limits.run_tokens is not None or limits.run_cost is not None

    def add(self, usage: Usage) -> None:
        """Count the use of an episode that ended."""
        self.used += usage

    @property
    def reached(self) -> str:
        """A sentence that says which cap is used up; empty while none is."""
        tokens, cost = self.used.prompt_tokens + self.used.completion_tokens, self.used.cost or 0.0
        if self.limits.run_tokens is not None and tokens >= self.limits.run_tokens:
            return f"The run has used {tokens} tokens and limits.run_tokens={self.limits.run_tokens}; raise it to go on."
        if self.limits.run_cost is not None and cost >= self.limits.run_cost:
            return f"The run has cost ${cost:.2f} and limits.run_cost={self.limits.run_cost:g}; raise it to go on."
        return ""
