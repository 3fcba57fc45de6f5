"""Where a reply claims an action. A claim is a stretch of text that says "this is my action"; whether it is one comes later."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from agentexp.actions.settings import Patterns
from agentexp.actions.text import undecorate

Kind = Literal["tag", "key", "box", "label", "inline", "prompt", "fence", "bare"]

# Words before an action label that make it a report, not an announcement ("the last action: ...").
_REPORTS = re.compile(
    r"\b(?:possible|available|admissible|valid|allowed|legal|previous|last|prior|past|earlier|other|bad|wrong|failed|no|not|any|each|every)"
    r"[ ]*$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"[ \t>]{0,20}+(?:```|~~~)[ \t]*+[\w+-]*+[ \t]*\n")
_FENCE_END = re.compile(r"^[ \t>]{0,20}+(?:```|~~~)", re.MULTILINE)
_LINE = re.compile(r"[^\n]+")
_CLOSE = re.compile(r"<[/\\]\s*[A-Za-z]")
_STRING = re.compile(r"(?P<quote>\\{0,4}[\"'])(?P<value>(?:\\.|(?!(?P=quote)|\\).){0,4000})(?P=quote)", re.DOTALL)
_ESCAPED = re.compile(r"(?P<quote>\\{1,4}[\"'])(?P<value>(?:(?!(?P=quote)).){0,4000})(?P=quote)", re.DOTALL)
_BOX = re.compile(r"\\f?boxed\s*\{")
_PROMPT = re.compile(r"^[ \t]*(?:>+|\$)[ \t]*(?=\w)(?P<value>[^\n]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed action.

    Attributes:
        start, end: the stretch in the normalised text.
        text: the command, undecorated only as far as the form requires (JSON strings unescaped).
        kind: the form. "inline" labels stand within a line and are the weakest explicit form.
        complete: something after the command shows that it was not cut (a close tag, a line break).
        name: the label or key, for "action input".
    """

    start: int
    end: int
    text: str
    kind: Kind
    complete: bool
    name: str = ""


def explicit_claims(text: str, patterns: Patterns) -> list[Claim]:
    """All claims in an explicit form, in their order; of nested forms the innermost."""
    found = [*_tags(text, patterns), *_keys(text, patterns), *_boxes(text), *_labels(text, patterns)]
    found.sort(key=lambda c: (c.start, -c.end))
    inner = [
        c for c in found if not any(o is not c and c.start <= o.start and o.end <= c.end and _smaller(o, c) for o in found)
    ]
    # What an enclosing closed tag shows about completeness holds for what is inside it.
    closed = [c for c in found if c.complete and c.kind == "tag"]
    result = []
    for claim in inner:
        if not claim.complete and any(c.start <= claim.start and claim.end <= c.end for c in closed):
            claim = Claim(claim.start, claim.end, claim.text, claim.kind, True, claim.name)
        if _says(claim.text):
            result.append(claim)
    return _without_tool_names(result)


def _says(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _smaller(one: Claim, other: Claim) -> bool:
    return (one.end - one.start, one.kind != "tag") < (other.end - other.start, other.kind != "tag")


def _without_tool_names(claims: list[Claim]) -> list[Claim]:
    """In "Action: tool / Action Input: command" only the input is the command."""
    result: list[Claim] = []
    for claim in claims:
        if re.fullmatch(r"action[ _-]*input", claim.name, re.IGNORECASE) and result:
            if undecorate(claim.text).casefold() in ("none", "null", "n/a", "{}"):
                continue
            if result[-1].kind == claim.kind:
                result.pop()
        result.append(claim)
    return result


def _tags(text: str, patterns: Patterns) -> list[Claim]:
    claims: list[Claim] = []
    opens = list(patterns.answer_open.finditer(text))
    lone = patterns.answer_close.search(text)
    if lone and not opens:  # the prompt held the open tag
        start = len(text[: lone.start()].rstrip()) and text.rfind("\n", 0, len(text[: lone.start()].rstrip())) + 1
        claims.append(Claim(start, lone.start(), text[start : lone.start()], "tag", True))
    for i, tag in enumerate(opens):
        limit = opens[i + 1].start() if i + 1 < len(opens) else len(text)
        close = patterns.answer_close.search(text, tag.end())
        if close and close.start() <= limit:
            claims.append(Claim(tag.end(), close.start(), text[tag.end() : close.start()], "tag", True))
        elif close and limit < len(text) and not patterns.answer_close.search(text, tag.end(), limit):
            inside = text[tag.end() : limit].strip()
            if not inside:  # nested tags: the outer one holds the inner one, which is found by itself
                continue
            claims.append(_open_tag(text, tag.end(), limit))
        else:
            claims.append(_open_tag(text, tag.end(), limit))
    closed = [c for c in claims if c.complete and c.text.strip() and text[c.end : c.end + 1] in ("<", "[", "【")]
    if closed:  # a tag that is only mentioned before the real one
        claims = [c for c in claims if c in closed or c.start > closed[0].start]
    for found in patterns.parameter.finditer(text):
        claims.append(Claim(found.start("value"), found.end("value"), found["value"], "tag", True))
    return claims


def _open_tag(text: str, start: int, limit: int) -> Claim:
    """The command of a tag that is never closed: up to the next tag or the end of its line."""
    first = start + len(text[start:limit]) - len(text[start:limit].lstrip())
    end = next((m.start() for m in re.compile(r"\n|<[/\\]?[A-Za-z]*").finditer(text, first, limit)), limit)
    return Claim(start, end, text[start:end], "tag", end < len(text))


def _keys(text: str, patterns: Patterns) -> list[Claim]:
    claims = []
    for key in patterns.key.finditer(text):
        name = key["name"] or key["attribute"] or key["property"]
        at = key.end()
        if text[at : at + 1] == "[":
            close = text.find("]", at)
            claims += [_string(item, name) for item in _STRING.finditer(text, at, close if close >= 0 else len(text))]
            continue
        pattern = _ESCAPED if key["open"] and key["open"].startswith("\\") else _STRING
        value = pattern.match(text, at)
        if value:
            claims.append(_string(value, name))
            continue
        number = re.compile(r"-?\d+(?=\s*[,}\n])").match(text, at)
        if number:
            claims.append(Claim(at, number.end(), number.group(), "key", True, name))
    return claims


def _string(found: re.Match[str], name: str) -> Claim:
    value = re.sub(r"\\+([\"'/\\])", r"\1", found["value"])
    return Claim(found.start(), found.end(), re.sub(r"\\[nrt]", " ", value), "key", True, name)


def _boxes(text: str) -> list[Claim]:
    claims = []
    for box in list(_BOX.finditer(text))[:20]:
        depth, end = 1, box.end()
        while end < min(len(text), box.end() + 2000) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        stop = end - 1 if depth == 0 else end
        claims.append(Claim(box.end(), stop, text[box.end() : stop], "box", depth == 0))
    return claims


def _labels(text: str, patterns: Patterns) -> list[Claim]:
    claims: list[Claim] = []
    starts: set[int] = set()
    for label in patterns.label.finditer(text):
        starts.add(label.start("name"))
        claims += _value(text, label.end(), label["name"], "label", patterns)
    for heading in patterns.heading.finditer(text):
        if heading.start("name") not in starts:
            starts.add(heading.start("name"))
            claims += _value(text, heading.end(), heading["name"], "label", patterns)
    for label in patterns.inline.finditer(text):
        if label.start("name") not in starts and _announces(text, label):
            claims += _value(text, label.end(), label["name"], "inline", patterns)
    return claims


def _announces(text: str, label: re.Match[str]) -> bool:
    """Whether a label within a line announces an action: it begins a sentence, is capitalised, or ends its line."""
    before = text[text.rfind("\n", 0, label.start()) + 1 : label.start()]
    if _REPORTS.search(before):
        return False
    before = before.rstrip(" *_`\"'([")
    name = label["name"]
    ends_line = not text[label.end() :].partition("\n")[0].strip(" *_`")
    phrase = label.start("name") > label.start()
    return not before or before[-1] in ".!?;。！？…)]>|:}" or name[0].isupper() or not name[0].isascii() or ends_line or phrase


def _value(text: str, start: int, name: str, kind: Kind, patterns: Patterns) -> list[Claim]:
    """What follows a label: the rest of its line, else a fenced block, else the next line that says something."""
    end = _line_end(text, start, patterns)
    rest = text[start:end]
    if not _says(rest) or _FENCE.match(rest + "\n"):
        fence = re.compile(r"\s*" + _FENCE.pattern).match(text, start)
        if fence:
            return _block(text, fence.end(), name, kind)
        while end < len(text) and not _says(text[start:end]):
            if text[end] != "\n":
                return []  # another label follows at once
            start = end + 1
            end = _line_end(text, start, patterns)
        if patterns.thought.match(text, start) or patterns.soft.match(text, start) or patterns.label.match(text, start):
            return []
    if text[start:end].lstrip().startswith("{"):
        return []  # JSON is read by its keys
    return [Claim(start, end, text[start:end], kind, end < len(text), name)]


def _line_end(text: str, start: int, patterns: Patterns) -> int:
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    tags = [m.start() for p in (_CLOSE, patterns.answer_open) if (m := p.search(text, start, end))]
    end = min([end, *tags])
    for label in patterns.stop.finditer(text, start, end):
        if label["name"][0].isupper() or not label["name"][0].isascii():
            return label.start()
    return end


def _block(text: str, start: int, name: str, kind: Kind) -> list[Claim]:
    """The lines of a fenced block, each a command of its own."""
    close = _FENCE_END.search(text, start)
    end = close.start() if close else len(text)
    return [
        Claim(line.start(), line.end(), line.group(), kind, line.end() < len(text), name)
        for line in _LINE.finditer(text, start, end)
        if _says(line.group()) and not line.group().lstrip().startswith("{")
    ]


def implicit_claims(text: str, patterns: Patterns) -> list[Claim]:
    """Claims of a reply without any explicit one: a prompt line, a lone fenced block, else every line that is no thought."""
    prompts = [Claim(m.start("value"), m.end(), m["value"], "prompt", m.end() < len(text)) for m in _PROMPT.finditer(text)]
    if prompts:
        return prompts
    fence = _FENCE.search(text)
    if fence and (lines := _block(text, fence.end(), "", "fence")):
        return lines
    return [
        Claim(m.start(), m.end(), m.group(), "bare", m.end() < len(text))
        for m in _LINE.finditer(text)
        if _says(m.group()) and not patterns.thought.match(m.group())
    ]
