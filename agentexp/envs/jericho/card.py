"""What prompts say about the world, and which commands never reach a story."""

from __future__ import annotations

import re

from agentexp.core import EnvCard

# They end, undo, save or describe the run instead of acting in the story, or speak to jericho.
META = (
    r"(?:q|quit|restart|restore|save|undo|script\w*|unscript|noscript|transcript|recording|replay|commands|verify|version"
    r"|verbose|brief|superbrief|long|short|normal|random|tw-\S*)"
)
FORBIDDEN = re.compile(rf"^\s*{META}\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;\r\n]|\bthen\b", re.IGNORECASE)
NOT_HERE = "That is not a command of this story."

CARD = EnvCard(
    intro="You are the main character of a text adventure. You type short commands, and the story answers.",
    actions="north | south | east | west | up | down | look | inventory | examine {thing} | take {thing} | drop {thing} | "
    "open {thing} | close {thing} | unlock {thing} with {thing} | switch on {thing} | switch off {thing} | "
    "put {thing} in {thing} | put {thing} on {thing} | give {thing} to {person} | talk to {person} | enter {thing} | "
    "push {thing} | pull {thing} | turn {thing} | set {thing} to {number} | light {thing} with {thing} | "
    "tie {thing} to {thing} | pour {thing} into {thing} | cut {thing} | dig {thing} with {thing} | wind {thing} | "
    "ring {thing} | mix {thing} | look through {thing}",
    notes="One command at a time: only the first sentence is read. Things in a closed container are not seen. In the dark "
    "nothing is seen.",
    info_actions=r"^(look|l|examine|x|inventory|i|read|search|talk|ask)\b",
    forbidden=FORBIDDEN.pattern,
    goal_commands=r"^(score|fullscore|full|notify)\b",
)

# Answers of any story that mean that nothing was done; ours say so themselves.
REFUSED = re.compile(
    r"you can't|you cannot|you aren't|you don't|that's not|not a verb|don't know (?:the word|how)|doesn't know|not understand"
    r"|didn't understand|only understood you|beg your pardon|what do you want to|which do you mean|is locked"
    r"|seems? to be locked|isn't (?:something|open)|hardly portable|fixed in place|already (?:open|closed|have)"
    r"|nothing (?:happens|to)|achieve (?:little|nothing)|there is no|no such thing",
    re.IGNORECASE,
)


def first_sentence(action: str) -> str:
    """The first command of a reply, in characters that a z-machine reads."""
    plain = "".join(c if " " <= c <= "~" else " " for c in _SENTENCE.split(action.strip(), maxsplit=1)[0])
    return " ".join(plain.split())
