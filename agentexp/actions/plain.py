"""The short cut for replies in the very form that was asked for; most replies are.

It stands in for the stages up to the claims: `said` and `explicit_claims` would find the same (the tests compare both ways), at
ten times the cost. Why the same: outside the marks that the forms below spell out, a plain reply holds no colon and nothing
that could begin a tag, a token, a key, a box, an entity or an escape, and its lines begin with the marks themselves. So no
other label, no other speaker and no second claim can match, and nothing is cut off. What is not certain goes the long way.
"""

from __future__ import annotations

import re

from agentexp.actions.claims import Claim
from agentexp.actions.settings import ParseSettings
from agentexp.actions.turns import Said, blank

# Not in it: & \ < > [ ] { } : = | * _ ~ ` # and whatever normalisation could change.
_WORD = r"A-Za-z0-9 ,.;!?'\"()/%$+\-"
_TYPOGRAPHY = "‘’“”–—"
_COMMAND = rf"[ ]*[A-Za-z0-9][{_WORD}]*"
_PLAIN = re.compile(
    rf"(?:Map:[{_WORD}{_TYPOGRAPHY}]*\n{{1,2}})?(?:Thought:[{_WORD}{_TYPOGRAPHY}]*\n{{1,2}})?Action:(?P<label>{_COMMAND})\n*"
    # Inside closed thinking, which is blanked, colons and lines do no harm.
    rf"|(?P<think><think>[{_WORD}{_TYPOGRAPHY}:\n]*</think>)?[ \n]*<answer>(?P<tag>{_COMMAND})</answer>[ \n]*"
)


def plain(reply: str) -> tuple[Said, list[Claim]] | None:
    """What a plain reply says and its only claim, as `said` and `explicit_claims` find them; None for any other reply.

    The reply is its own normalised form. Holds for settings whose words `are_known`.
    """
    found = _PLAIN.fullmatch(reply)
    if found is None:
        return None
    visible = blank(reply, [found.span("think")]) if found["think"] else reply
    if found["tag"] is not None:
        claim = Claim(found.start("tag"), found.end("tag"), found["tag"], "tag", True)
    else:
        end = found.end("label")
        claim = Claim(found.start("label"), end, found["label"], "label", end < len(reply), "Action")
    return Said(visible, None, False), [claim]


def are_known(settings: ParseSettings) -> bool:
    """Whether the settings use only tags, labels and tokens for which the argument above was made, and all of the forms'."""
    return settings.has_known_words
