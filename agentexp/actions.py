"""From a model's reply to one action - or a named failure. Nothing is guessed and every rewrite is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.core import EnvCard


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """Settings of the parser (config key `parsing`)."""

    grounding: bool = True
    think_tags: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply was read as.

    Attributes:
        action: the command to send; None unless `status` is "ok".
        status: ok | invalid | truncated | ambiguous.
        kept: the reply as it enters the history (invented turns cut off).
        written: the action as the model wrote it.
        rewritten: `action` differs from `written` by more than decoration.
        flags: "invented_observation", "n_actions>1", "format" ...
        thought: the text before the action.
    """

    action: str | None
    status: str
    kept: str = ""
    written: str = ""
    rewritten: bool = False
    flags: tuple[str, ...] = ()
    thought: str = ""


def parse(
    content: str | None,
    *,
    reasoning: str = "",
    finish_reason: str = "stop",
    admissible: Sequence[str] | None = None,
    card: EnvCard | None = None,
    settings: ParseSettings = ParseSettings(),
    stop_word: str = "",
) -> Parsed:
    """Read one reply. Placeholder signature; the implementation follows."""
    text = (content or "").strip()
    return Parsed(action=text or None, status="ok" if text else "invalid", kept=content or "", written=text)
