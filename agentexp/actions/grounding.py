"""Which command a claim is. Exact up to case, articles, full stop and declared aliases; never another object or number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from agentexp.actions.text import fold, undecorate, without_articles

Outcome = Literal["ok", "none", "ambiguous"]

# Where a second command or an explanation may begin. A comma or an ampersand inside a number or a name does not separate.
_JOINT = re.compile(
    r"(?P<joint>,?\s+and\s+then\s|,?\s+then\s|,?\s+and\s|,(?!\d)\s*(?:and\s|then\s)*|;\s*|\s*\n\s*|\s&\s|\s&&\s|"
    r"\s[|+]\s|\sfollowed by\s|\s->\s|\s[→⇒]\s)"
    r"|(?P<remark>[.!?:](?=\s)|\s*\(|\s[-–—]{1,2}\s|\s#\s|\s//\s)",
    re.IGNORECASE,
)
# Joints that no command of any world contains, where no list can tell.
_SENTENCES = re.compile(
    r",?\s{1,8}(?:and\s{1,8})?then\s|;\s|\n|(?<!\bmr)(?<!\bmrs)(?<!\bms)(?<!\bdr)(?<!\bst)[.!?](?=\s+[^\W\d_])", re.IGNORECASE
)
_STRAIGHT = str.maketrans("’‘“”„", '\'\'"""')  # what engines of text games know
_ALTERNATIVE = re.compile(r"\W{0,10}+(?:(?:and|then)\s+)?(?:or|unless|if|maybe|perhaps|instead|not|else)\b", re.IGNORECASE)
_PROSE = re.compile(
    r"(?:i(?:'m|'ll|'d|'ve)?|we|you|it|he|she|they|this|that|there|the|my|let(?:'s| me| us)|ok(?:ay)?|sure|sorry|as an|"
    r"based on|since|because|given|first|next|now|to|in order|however|so|yes|no|thank|unfortunately|hmm|well|here)\b[\s,'’]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """What one claim was read as. `several`: more commands stood in it; `remark`: an explanation did."""

    outcome: Outcome
    action: str | None = None
    several: bool = False
    remark: bool = False


NONE = Grounded("none")


class Grounder:
    """Looks claims up in the commands that are admissible now."""

    def __init__(
        self,
        admissible: Sequence[str] | None,
        *,
        complete: bool,
        aliases: Sequence[tuple[str, str]] = (),
        stop_word: str = "",
        fill_number: bool = False,
        max_chars: int = 200,
    ) -> None:
        self.complete = complete and admissible is not None
        self._admissible = tuple(dict.fromkeys(admissible or ()))
        # A command and its decorated or aliased spellings are not longer than this; longer text need not be looked at.
        self._longest = 2 * max(map(len, (*self._admissible, stop_word)), default=0) + 100
        self._aliases = aliases
        self._stop_word, self._stop_folded = stop_word, fold(stop_word)
        self._fill_number, self._max_chars = fill_number, max_chars

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(self._admissible)

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        """Commands by their folded form. Not made while claims are commands as listed: lists can be very long."""
        folded: dict[str, list[str]] = {}
        for command in self._admissible:
            folded.setdefault(fold(command), []).append(command)
        return folded

    @cached_property
    def _plain(self) -> dict[str, list[str]]:
        """Commands by their folded form without articles."""
        plain: dict[str, list[str]] = {}
        for command in self._admissible:
            plain.setdefault(without_articles(fold(command)), []).append(command)
        return plain

    def whole(self, text: str) -> Grounded:
        """The claim as one command."""
        if len(text) > self._longest:
            return NONE
        clean = undecorate(text)
        if not clean:
            return NONE
        folded = fold(clean)
        if self._stop_folded and folded == self._stop_folded:
            return Grounded("ok", self._stop_word)
        if not self._admissible:
            return NONE
        for exact in (text.strip(), clean):
            if exact in self._exact:
                return Grounded("ok", exact)
        if folded.startswith("(") and folded.endswith(")"):
            folded = folded[1:-1].strip()
        forms = [folded, without_articles(folded)]
        hits = self._folded.get(forms[0]) or self._plain.get(forms[1])
        if hits is None:
            forms += [expanded for form in forms for expanded in self._expansions(form)]
            hits = list(dict.fromkeys(hit for form in forms for hit in self._plain.get(without_articles(form), ())))
        if not hits:
            return self._without_number(forms)
        return Grounded("ok", hits[0]) if len(hits) == 1 else Grounded("ambiguous")

    def _expansions(self, form: str) -> Iterator[str]:
        for pattern, replacement in self._aliases:
            found = re.fullmatch(pattern, form, re.IGNORECASE)
            if found:
                yield fold(found.expand(replacement))

    def _without_number(self, forms: Sequence[str]) -> Grounded:
        """Commands that the claim names except for a number that it leaves out."""
        short = [without_articles(form).split() for form in forms]
        fits = [c for plain, cs in self._plain.items() if any(_lacks_numbers(s, plain.split()) for s in short) for c in cs]
        if len(fits) > 1:
            return Grounded("ambiguous")
        return Grounded("ok", fits[0]) if fits and self._fill_number else NONE

    def resolve(self, text: str, *, cautious: bool = False) -> Grounded:
        """The claim as a command, or the first of several in it.

        Args:
            text: the claim.
            cautious: the claim is bare text: commas and remarks do not separate commands in it.
        """
        found = self.whole(text)
        if not self.complete:
            return found if found.outcome == "ok" else self._as_written(text, cautious)
        if found.outcome != "none":
            return found
        clean = undecorate(text[: 2 * self._longest])
        for joint in reversed(list(_JOINT.finditer(clean))):
            rest = clean[joint.end() :]
            if cautious and (joint["remark"] or joint["joint"].strip() == ","):
                continue
            if _ALTERNATIVE.match(rest):
                continue
            first = self.whole(clean[: joint.start()])
            if first.outcome != "none":
                return Grounded(first.outcome, first.action, bool(joint["joint"]), bool(joint["remark"]))
        return NONE

    def _as_written(self, text: str, cautious: bool) -> Grounded:
        """Without a complete list a claim is sent as it was written, up to the first end of a sentence."""
        if len(text) > 20 * self._max_chars:
            return NONE
        clean = undecorate(text).translate(_STRAIGHT)
        joint = next((j for j in _SENTENCES.finditer(clean) if clean.count('"', 0, j.start()) % 2 == 0), None)
        if joint and cautious:
            return NONE
        first = undecorate(clean[: joint.start()]) if joint else clean
        if not any(c.isalnum() for c in first) or len(first) > self._max_chars or first[0] in "{<" or text.lstrip()[:1] == "{":
            return NONE
        if cautious and _PROSE.match(first):
            return NONE
        found = self.whole(first)
        return Grounded("ok", found.action if found.outcome == "ok" else first, several=joint is not None)


def _lacks_numbers(short: Sequence[str], full: Sequence[str]) -> bool:
    """Whether `short` is `full` with at least one number left out and nothing else changed."""
    if len(short) >= len(full):
        return False
    at = 0
    for word in full:
        if at < len(short) and short[at] == word:
            at += 1
        elif not word.isdigit():
            return False
    return at == len(short)
