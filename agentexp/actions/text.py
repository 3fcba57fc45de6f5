"""Text for matching: normalised, with the way back to the original; and commands without their decoration."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_BREAKS = dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n")
_COLONS = "\u2236\ua789\u02d0"  # look like a colon and stand for one; NFKC leaves them
_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});"
# One unit of the original: an entity, a colour code of a terminal, a line break (also one written out as backslash + n before
# a new line's start), or a character with its combining marks.
_UNIT = re.compile(
    _ENTITY + r"|\x1b\[[0-9;]{0,20}[A-Za-z]|\r\n"
    r"|(?:\\r)?\\n(?=\s*(?:[A-Z*#>`<{\"\u0080-\uffff]|\Z))|.[\u0300-\u036f\u20d0-\u20ff\u3099\u309a]*",
    re.DOTALL,
)
_MARKUP = re.compile(
    r"</?(?:b|i|u|em|strong|code|pre|p|br|span|tt|kbd|mark|div|li|ul|ol|h[1-6]|blockquote)(?:\s[^<>]*)?/?>", re.I
)
_BLOCK = re.compile(r"</?(?:p|br|div|li|ul|ol|pre|h[1-6]|blockquote)\b", re.I)


@dataclass(frozen=True, slots=True)
class Text:
    """Normalised text and the way back.

    Attributes:
        norm: NFKC, plain spaces, LF line breaks, entities resolved, nothing invisible.
        index: position in the original of each character of `norm`, and the original's length at the end.
    """

    norm: str
    index: list[int] | range

    def raw(self, position: int) -> int:
        """Position in the original text."""
        return self.index[position]


def normalise(original: str) -> Text:
    """Bring text into the form that is matched. Formatting tags of HTML become blanks (line breaks for block tags)."""
    if original.isascii() and not re.search(r"[&\\\x00-\x08\x0b-\x1f\x7f]", original):
        norm, index = original, range(len(original) + 1)
        return Text(_without_markup(norm), index)
    pieces: list[str] = []
    places: list[int] = []
    for unit in _UNIT.finditer(original):
        piece = _unit(unit.group())
        pieces.append(piece)
        places.extend([unit.start()] * len(piece))
    return Text(_without_markup("".join(pieces)), [*places, len(original)])


def _unit(unit: str) -> str:
    if unit == "\r\n" or unit.startswith("\\"):
        return "\n" if len(unit) > 1 else unit
    if unit.startswith("\x1b["):
        return ""
    if unit[0] == "&" and len(unit) > 2:
        unit = html.unescape(unit)
    if unit[0] in _BREAKS:
        return "\n"
    kept = []
    for char in unicodedata.normalize("NFKC", unit):
        category = unicodedata.category(char)
        if category == "Zs" or char == "\t":
            kept.append(" ")
        elif category == "Nd":
            kept.append(str(unicodedata.decimal(char)))
        elif char in _COLONS:
            kept.append(":")
        elif char == "\n" or (category not in ("Cc", "Cf", "Cs", "Me") and not "\ufe00" <= char <= "\ufe0f"):
            kept.append(char)
    return "".join(kept)


def _without_markup(text: str) -> str:
    if "<" not in text:
        return text
    return _MARKUP.sub(lambda m: ("\n" if _BLOCK.match(m.group()) else " ") * len(m.group()), text)


_QUOTES = "\"'`´“”„‟‘’‚‛«»‹›「」『』《》〈〉"
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_ENDS = "*_~| \t\n"
_LONG = 2000
_TAIL = ".。．!?,;:、"
_LATEX = re.compile(r"\\(?:text\w*|math\w*|emph)\s*\{([^{}]*)\}")
_HEAD = re.compile(
    r"(?:>+|\$(?= )|#{1,6}(?= )|:|[-+•·▪‣◦●○–—](?= )|->|=>|[→➜⇒▶►]|\(?\d{1,2}[.)] +(?=\S)|[A-Za-z]\) +(?=\S)|"
    r"(?:[Ss]tep|[Tt]urn) \d{1,3} ?[:.)] +(?=\S))\s*"
)
_CALL = re.compile(r"[\w.]+\(\s*(?:\w+\s*[=:]\s*)?([\"'])(?P<value>.*)\1\s*,?\s*\)", re.DOTALL)
_PAIRS = {"[": "]", "<": ">", "{": "}", "【": "】", "$": "$"}

# Worlds repeat their commands and models repeat theirs, so results for short texts are kept.
_SHORT, _KEPT = 200, 8192
# Nothing here is decoration, and folding leaves it as it is: most commands of most worlds.
_SIMPLE = re.compile(r"[a-z0-9]+(?:[ /-][a-z0-9]+)*")


def undecorate(text: str) -> str:
    """A command without what stands around it: quotes, Markdown, LaTeX, bullets, call syntax, emoji, final full stop.

    Idempotent. Words, numbers and their order stay. Text that is too long for any command is left alone.
    """
    if len(text) > _LONG:
        return text.strip()
    if len(text) > _SHORT:
        return _undecorate(text)
    return text if _SIMPLE.fullmatch(text) else _undecorate_kept(text)


def _undecorate(text: str) -> str:
    before = None
    while text != before:
        before = text
        text = _LATEX.sub(r"\1", text).replace("\\(", "").replace("\\)", "").replace("\\_", "_").replace("\\ ", " ")
        text = text.replace("**", "").replace("`", "").strip(_ENDS)
        text = _strip_quotes(_strip_symbols(text).rstrip(_TAIL).strip(_ENDS))
        head = _HEAD.match(text)
        if head and head.end() < len(text):
            text = text[head.end() :]
        call = _CALL.fullmatch(text)
        if call:
            text = call["value"]
        if _enclosed(text):
            text = text[1:-1]
        text = re.sub(r"[ \t]+", " ", text)
    return text


_undecorate_kept = lru_cache(maxsize=_KEPT)(_undecorate)


def _strip_quotes(text: str) -> str:
    """Drop quotes around the text, or those at an end that open or close nothing in it; a quoted word keeps both of its."""
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return text[1:-1]
    quotes = sum(char in _QUOTES for char in _APOSTROPHE.sub("", text))
    lone = quotes % 2 == 1 or not any(char in _QUOTES for char in text.strip(_QUOTES))
    if lone and text[:1] in _QUOTES:
        return text[1:]
    if lone and text[-1:] in _QUOTES:
        return text[:-1]
    return text


def _enclosed(text: str) -> bool:
    """One pair of brackets stands around all of the text."""
    if len(text) < 3 or _PAIRS.get(text[0]) != text[-1]:
        return False
    opens, closes, depth = text[0], text[-1], 0
    for char in text[:-1]:
        depth += (char == opens) - (char == closes and opens != closes)
        if depth == 0:
            return False
    return depth == 1


def _strip_symbols(text: str) -> str:
    start, end = 0, len(text)
    while start < end and unicodedata.category(text[start]) in ("So", "Sk"):
        start += 1
    while end > start and unicodedata.category(text[end - 1]) in ("So", "Sk"):
        end -= 1
    return text[start:end]


_IGNORED = re.compile(r"[*`\"“”„‟«»]")


def fold(text: str) -> str:
    """The form in which two spellings of one command are equal: no case, no decoration, single blanks."""
    if len(text) > _SHORT:
        return _fold(text)
    return text if _SIMPLE.fullmatch(text) else _fold_kept(text)


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    before = None
    while plain != before:
        before, plain = plain, " ".join(_IGNORED.sub("", undecorate(plain)).split())
    return plain


_fold_kept = lru_cache(maxsize=_KEPT)(_fold)


def without_articles(folded: str) -> str:
    """Drop "the", "a", "an"."""
    return " ".join(word for word in folded.split() if word not in ("the", "a", "an"))
