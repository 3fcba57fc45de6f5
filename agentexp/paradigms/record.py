"""What happened, as text for prompts that read a finished exploration."""

from __future__ import annotations

from collections.abc import Iterable

UNREADABLE_ACTION = "(no readable action)"


def trajectory_text(steps: Iterable[tuple[str, str]], start: str = "", clip: int | None = None) -> str:
    """One line for each action and the observation below it.

    Args:
        steps: (action, observation), oldest first; an empty action was unreadable.
        start: the observation before the first action.
        clip: characters of each observation that are kept; None keeps all.
    """
    lines = [f"0. (start)\n   {_clipped(start, clip)}"] if start else []
    lines += [f"{t}. {action or UNREADABLE_ACTION}\n   {_clipped(seen, clip)}" for t, (action, seen) in enumerate(steps, 1)]
    return "\n".join(lines)


def _clipped(text: str, clip: int | None) -> str:
    text = "\n   ".join(line for line in text.strip().splitlines() if line.strip())
    return text if clip is None or len(text) <= clip else text[:clip] + " ..."
