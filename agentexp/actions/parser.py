"""One reply in, one command or a named failure out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.actions.claims import Claim, explicit_claims, implicit_claims
from agentexp.actions.grounding import NONE, Grounded, Grounder
from agentexp.actions.plain import are_known, plain
from agentexp.actions.settings import ParseSettings, Patterns
from agentexp.actions.text import Text, fold, normalise, undecorate
from agentexp.actions.turns import said
from agentexp.core import EnvCard

_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) sorry|i (?:can(?:'|no)t|can not|won't|am unable|am not able)|as an ai|"
    r"(?:unable to|cannot) (?:help|assist|comply))",
    re.IGNORECASE,
)
_TAGS = re.compile(r"[<◁]/?[^<>◁▷\n]{1,40}[>▷]")
_THOUGHT_LABEL = re.compile(r"\A[\s*#>_-]{0,40}+(?:thoughts?|thinking|reasoning|思考)\s*\d*\s*[:：]\**", re.IGNORECASE)
_ACTION_LABEL = re.compile(r"[\s*#>_\"'`{-]*(?:action|answer|command|动作|行动)\s*\d*[\s*\"]*[:：]?[*_\"`\s]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply was read as.

    Attributes:
        action: the command to send; None unless `status` is "ok".
        status: ok | invalid | truncated | ambiguous.
        kept: the reply as it enters the history (invented turns cut off, otherwise untouched).
        written: the action as the model wrote it.
        rewritten: `action` differs from `written` by more than decoration.
        flags: "invented_observation", "n_actions>1", "remark" (text after the command was dropped), "format" (not in the plain
            form that was asked for), "empty", "refusal", "forbidden", "inadmissible" (readable, but not possible now).
        thought: the text before the action.
    """

    action: str | None
    status: str
    kept: str = ""
    written: str = ""
    rewritten: bool = False
    flags: tuple[str, ...] = ()
    thought: str = ""


@dataclass(frozen=True, slots=True)
class _Choice:
    claim: Claim
    found: Grounded
    several: bool


_CLOSING = re.compile(r"[ \t`*\"'.]*(?:\s*<[/\\][^<>\n]{1,40}>)?")


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
    """Read one reply. Never raises, whatever the text.

    The first action that the model claims in its own turn counts. It is sent if it is admissible as written, or up to case,
    articles, decoration and the world's declared aliases; where the list of admissible commands is not complete it is sent as
    written. A command that the token limit may have cut is never completed.

    Args:
        content: the reply; null content is an empty reply.
        reasoning: what the server split off; never searched for an action.
        finish_reason: as the server reports it.
        admissible: the commands that the world lists now.
        card: facts about the world. Without a card a list of admissible commands counts as complete.
        settings: tags, labels and switches.
        stop_word: a reply that is an action of its own although no world knows it ("finish mapping").

    Returns:
        The command, or why there is none.
    """
    original = content or ""
    cut_off = (finish_reason or "").casefold() in settings.folded_length_reasons
    patterns = settings.patterns()
    short_cut = plain(original) if are_known(settings) else None
    text = Text(original, range(len(original) + 1)) if short_cut else normalise(original)
    listed = admissible if settings.grounding else None
    grounder = Grounder(
        listed,
        complete=card is None or card.complete_admissible or settings.assume_complete,
        aliases=card.aliases if card is not None else (),
        stop_word=stop_word,
        fill_number=settings.fill_number,
        max_chars=settings.max_action_chars,
    )

    def has_action(before: str) -> bool:
        choice = _choose(before, patterns, grounder, settings)
        if choice is None:
            return False
        return choice.found.outcome != "none" or choice.claim.kind not in ("inline", "bare")

    part, claims = short_cut or (said(text.norm, patterns, has_action, whole=not cut_off), None)
    choice = _choose(part.visible, patterns, grounder, settings, claims)
    end, invented = part.cut, part.invented
    if choice is not None and choice.claim.kind == "prompt" and part.visible[choice.claim.end :].strip():
        end, invented = choice.claim.end, True  # after a prompt line the model plays the world
    kept = original if end is None else original[: text.raw(end)].rstrip()
    flags = ["invented_observation"] if invented else []
    status = "truncated" if cut_off else "invalid"
    if choice is None:
        if not part.visible.strip() and not cut_off:
            flags.append("empty")
        elif _REFUSAL.search(part.visible.replace("’", "'")):
            flags.append("refusal")
        return Parsed(None, status, kept, flags=tuple(flags), thought=_thought(original, reasoning))

    claim, found = choice.claim, choice.found
    written = original[text.raw(claim.start) : text.raw(claim.end)].strip()
    thought = _thought(original[: text.raw(claim.start)], reasoning)
    complete = claim.kind != "bare" and (claim.complete or end is not None)
    if choice.several or found.several:
        flags.append("n_actions>1")
    if found.remark:
        flags.append("remark")
    status = {"ok": "ok", "none": "invalid", "ambiguous": "ambiguous"}[found.outcome]
    if cut_off and (not complete or (status == "invalid" and claim.kind != "tag")):
        status = "truncated"
    elif found.action is not None and card and card.forbidden and re.match(card.forbidden, found.action.casefold()):
        status = "invalid"
        flags.append("forbidden")
    if status == "invalid" and claim.kind in ("bare", "prompt", "fence") and _REFUSAL.search(part.visible.replace("’", "'")):
        flags.append("refusal")
    if status == "invalid" and grounder.complete and claim.kind in ("tag", "label", "key", "box") and "forbidden" not in flags:
        flags.append("inadmissible")
    if claim.kind not in ("tag", "label") or undecorate(claim.text) != claim.text.strip():
        flags.append("format")
    action = found.action if status == "ok" else None
    rewritten = action is not None and undecorate(claim.text) != action
    if action is not None and choice.several and claim.kind in ("label", "inline", "tag"):
        # What follows the action that is carried out never happened: it must not enter the history.
        closed = _CLOSING.match(part.visible, claim.end)
        stop = closed.end() if closed else claim.end
        if end is None or stop < end:
            kept = original[: text.raw(stop)].rstrip()
    return Parsed(action, status, kept, written, rewritten, tuple(flags), thought)


def _choose(
    text: str, patterns: Patterns, grounder: Grounder, settings: ParseSettings, known: list[Claim] | None = None
) -> _Choice | None:
    """The claim that counts, and what it is. `known`: the explicit claims, where they were found already."""
    explicit = explicit_claims(text, patterns) if known is None else known
    claims = [claim for claim in explicit if fold(claim.text) not in settings.folded_no_action]
    if explicit and not claims:
        return None  # "Action: none" is an answer, so no other line is one
    if not claims:
        return _choose_implicit(text, patterns, grounder)
    found = [_resolve(claim, grounder) for claim in claims]
    order = range(len(claims))
    first = next((i for i in order if claims[i].kind != "inline" or (grounder.complete and found[i].outcome != "none")), 0)
    if found[first].outcome == "none" and claims[first].kind in ("label", "inline"):
        # A label may only lead to the form that holds the action.
        first = next((i for i in order if claims[i].kind in ("tag", "key", "box")), first)
    if len(claims) == 1:
        return _Choice(claims[0], found[0], False)
    mine = fold(found[first].action or claims[first].text)
    others = (fold(found[i].action or claims[i].text) for i in order if i > first)
    return _Choice(claims[first], found[first], any(other != mine for other in others))


def _resolve(claim: Claim, grounder: Grounder) -> Grounded:
    found = grounder.resolve(claim.text)
    if found.outcome != "none" or not grounder.complete:
        return found
    lines = [line for line in claim.text.split("\n") if undecorate(line)]
    if len(lines) > 1:
        exact = [hit for hit in map(grounder.whole, lines) if hit.outcome == "ok"]
        if len(exact) == 1 and exact[0] == grounder.whole(lines[-1]):
            return exact[0]
    return found


def _choose_implicit(text: str, patterns: Patterns, grounder: Grounder) -> _Choice | None:
    claims = implicit_claims(text, patterns)
    if not claims:
        return None
    first = grounder.resolve(claims[0].text, cautious=claims[0].kind != "fence")
    if claims[0].kind in ("prompt", "fence") or len(claims) == 1:
        if claims[0].kind == "bare" and not grounder.complete and text.strip() != claims[0].text.strip():
            return None  # the rest is a thought, and nothing says that this line is not
        return _Choice(claims[0], first, len(claims) > 1 and claims[0].kind == "fence")
    exact = {i: hit for i, claim in enumerate(claims) if (hit := grounder.whole(claim.text)).outcome == "ok"}
    lead = min(exact, default=-1)
    if lead == 0 or list(exact) == [len(claims) - 1]:
        return _Choice(claims[lead], exact[lead], len(exact) > 1)
    return _Choice(claims[0], NONE, False)


def _thought(before: str, reasoning: str) -> str:
    """What the model thought: the server's reasoning, else the text before the action without tags and labels."""
    if reasoning.strip():
        return reasoning.strip()
    plain = _TAGS.sub(" ", before)
    plain = _THOUGHT_LABEL.sub("", plain, count=1)
    head, tail = plain[:-80], plain[-80:]
    return (head + _ACTION_LABEL.sub("", tail)).strip()
