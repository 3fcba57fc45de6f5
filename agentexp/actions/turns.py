"""What the model itself said outside its thinking: reasoning is blanked, turns that it invented for others are cut off.

The order matters: a turn that the model invented may hold thinking tags of its own, so the invented part goes first; but a
mark inside properly closed thinking is only a thought, so pairs of thinking tags are found before that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentexp.actions.settings import ParseSettings, Patterns
from agentexp.actions.text import normalise

_MAX_MARKS = 20  # beyond this many marks a reply is noise; each costs one look for an action before it


@dataclass(frozen=True, slots=True)
class Said:
    """The part of a reply that may hold the action.

    Attributes:
        visible: normalised text with all reasoning and headers blanked by line breaks; positions are unchanged.
        cut: where the message really ends; None if nothing was cut.
        invented: more followed after the cut.
    """

    visible: str
    cut: int | None
    invented: bool


def said(norm: str, patterns: Patterns, has_action: Callable[[str], bool], *, whole: bool) -> Said:
    """Separate speech from thinking and from invented turns.

    Args:
        norm: normalised reply.
        patterns: the compiled settings.
        has_action: whether text before an observation label claims an action; an observation that comes first is only repeated.
        whole: the reply was not cut by a token limit, so a final complete answer may close an open thought.
    """
    spans, stray, opened = _thinking(norm, patterns)
    visible = blank(norm, spans)
    visible = _without_header(visible, patterns)
    cut = _end(visible, patterns, has_action)
    if cut is None and opened is not None and whole:
        answer = _closing_answer(norm, opened, patterns)
        if answer is not None:
            visible, opened = blank(norm, [*spans[:-1], (opened, answer[0])]), None
            visible, cut = visible[: answer[1]].ljust(len(norm), "\n"), answer[1] if answer[1] < len(norm.rstrip()) else None
    end = len(norm) if cut is None else cut
    # A further close tag without an open one: what stands before it was reasoning too, if anything follows it.
    last = next((close for close in reversed(stray) if close[1] <= end), None)
    if last is not None:
        keep = not visible[last[1] : end].strip()
        visible = blank(visible, [(start, stop) for start, stop in stray] if keep else [(0, last[1])])
    invented = cut is not None and bool(patterns.token.sub("", norm[cut:]).strip())
    return Said(visible[:end], cut, invented)


def without_thinking(reply: str, settings: ParseSettings = ParseSettings()) -> str:
    """A reply that is no action (JSON, a summary) without its reasoning. All before a lone close tag is reasoning too."""
    text = normalise(reply)
    spans, stray, _ = _thinking(text.norm, settings.patterns())
    if stray:
        spans = [(0, stray[-1][1]), *(span for span in spans if span[0] >= stray[-1][1])]
    kept, end = "", 0
    for start, stop in spans:
        kept += reply[text.raw(end) : text.raw(start)]
        end = stop
    return kept + reply[text.raw(end) :]


def _thinking(norm: str, patterns: Patterns) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int | None]:
    """Spans of reasoning, close tags without an open one, and where an unclosed thought begins."""
    tags = [(m.start(), m.end(), m["open"] is not None) for m in patterns.think.finditer(norm)]
    spans: list[tuple[int, int]] = []
    stray: list[tuple[int, int]] = []
    i = 0
    while i < len(tags):
        start, stop, opens = tags[i]
        if not opens:
            if patterns.token.fullmatch(norm[start:stop]):
                pass  # closes thinking only after its own opening; alone it ends the message
            elif spans:
                stray.append((start, stop))
            else:
                spans.append((0, stop))
            i += 1
            continue
        depth, closed, first = 0, None, None
        for j in range(i, len(tags)):
            depth += 1 if tags[j][2] else -1
            if not tags[j][2] and first is None:
                first = j
            if depth == 0:
                closed = j
                break
        closed = first if closed is None else closed
        if closed is None:
            spans.append((start, len(norm)))
            return spans, stray, stop
        spans.append((start, tags[closed][1]))
        i = closed + 1
    return spans, stray, None


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with the spans replaced by blanks between line breaks, so that all positions stay."""
    for start, stop in spans:
        if stop <= start:
            continue
        text = text[:start] + ("\n" + " " * (stop - start - 2) + "\n")[-(stop - start) :] + text[stop:]
    return text


def _without_header(visible: str, patterns: Patterns) -> str:
    """Chat-template marks and "Assistant:" before anything was said are headings."""
    while True:
        header = patterns.header.match(visible)
        if header is None or header.end() == 0 or not header.group().strip():
            return visible
        visible = blank(visible, [header.span()])


def _end(visible: str, patterns: Patterns, has_action: Callable[[str], bool]) -> int | None:
    """Where the message ends because another speaker begins."""
    hard = None
    for mark in patterns.hard.finditer(visible):
        if visible[: mark.start()].strip():
            hard = mark.start()
            break
    limit = len(visible) if hard is None else hard
    for number, mark in enumerate(patterns.soft.finditer(visible, 0, limit)):
        if number >= _MAX_MARKS:
            break
        before = visible[: mark.start()]
        if mark["capital"] and not _starts_turn(before, mark["capital"]):
            continue
        if before.strip() and has_action(before):
            return mark.start()
    return hard


def _starts_turn(before: str, label: str) -> bool:
    """Within a line only a capitalised label, or one after the end of a sentence, starts a turn."""
    line = before[before.rfind("\n") + 1 :].rstrip(" *_")
    return not line or line[-1] in ".!?。！？:)]>" or label[0].isupper() or not label[0].isascii()


def _closing_answer(norm: str, start: int, patterns: Patterns) -> tuple[int, int] | None:
    """The one complete answer element that ends a reply whose thought was never closed."""
    opens = list(patterns.answer_open.finditer(norm, start))
    if len(opens) != 1:
        return None
    close = patterns.answer_close.search(norm, opens[0].end())
    if close is None or patterns.token.sub("", norm[close.end() :]).strip():
        return None
    return opens[0].start(), close.end()
