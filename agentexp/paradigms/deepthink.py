"""Reading a thinker's reply (TTExplore): the text between <deepthink> marks, however carelessly they were set."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from agentexp.actions import ParseSettings, without_thinking
from agentexp.actions.text import normalise

Status = Literal["ok", "untagged", "cut", "unreadable"]

_MARK = re.compile(r"[<\[◁]\s*(?P<close>/|\\)?\s*deep[\s_-]?think(?:ing)?\b[^<>\[\]\n]{0,40}[>\]▷]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Thought:
    """A thinker's reply.

    Attributes:
        text: the thought, as written, without marks and without the reasoning before it; empty when unreadable.
        status: "ok"; "untagged", the whole reply counts because it has no mark; "cut", the token limit ended it; "unreadable",
            nothing is left to read.
    """

    text: str
    status: Status


def read_thought(reply: str | None, finish_reason: str = "stop", settings: ParseSettings = ParseSettings()) -> Thought:
    """Find the thought in a reply. Never raises, whatever the text.

    Reasoning in <think> marks is left out, unless the whole thought stands inside it. Marks may differ in case, brackets and
    spelling ("deep_think"); an open mark without its close reaches to the end, a close mark alone ends what stands before it.
    Of several thoughts the last whole one counts that says anything: the first is often the form, repeated.

    Args:
        reply: content of the completion; null content is an empty reply.
        finish_reason: as the server reports it.
        settings: tags of reasoning and marks of chat templates.
    """
    said = reply or ""
    cut_off = (finish_reason or "").casefold() in {reason.casefold() for reason in settings.length_reasons}
    reasoning = [pair for pair in settings.think_tags if not _MARK.fullmatch(pair[0])]
    visible = without_thinking(said, replace(settings, think_tags=reasoning))
    blocks, marked = _blocks(visible, settings)
    if not blocks:
        inside, marked_inside = _blocks(said, settings)
        blocks, marked = blocks or inside, marked or marked_inside
    if blocks:
        whole = [block for block in blocks if block[1]]
        text, closed = (blocks if cut_off or not whole else whole)[-1]
        return Thought(text, "cut" if cut_off and not closed else "ok")
    bare = "" if marked else _plain(visible, settings)
    return Thought(bare, ("cut" if cut_off else "untagged") if bare else "unreadable")


def _blocks(reply: str, settings: ParseSettings) -> tuple[list[tuple[str, bool]], bool]:
    """(text, whether its close mark is there) of each thought that says anything, and whether there was any mark."""
    text = normalise(reply)
    marks = list(_MARK.finditer(text.norm))
    found: list[tuple[str, bool]] = []
    start = 0  # a close mark that comes first ends what a chat template opened
    opened = not marks or marks[0]["close"] is not None
    for mark in marks:
        if mark["close"] is None:
            if opened and start > 0:  # the thought before it was never closed
                found.append((reply[text.raw(start) : text.raw(mark.start())], False))
            start, opened = mark.end(), True
        elif opened:
            found.append((reply[text.raw(start) : text.raw(mark.start())], True))
            start, opened = mark.end(), False
    if marks and opened:
        found.append((reply[text.raw(start) :], False))
    plain = [(_plain(part, settings), closed) for part, closed in found]
    return [(part, closed) for part, closed in plain if part], bool(marks)


def _plain(text: str, settings: ParseSettings) -> str:
    """Without marks of chat templates; empty if no letter is left ("...")."""
    bare = settings.patterns().token.sub("", text).strip()
    return bare if re.search(r"\w", bare) else ""
