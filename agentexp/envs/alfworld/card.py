"""What agents are told about ALFWorld: facts and action forms of either logic, no strategy."""

from __future__ import annotations

from agentexp.core import EnvCard
from agentexp.envs.alfworld.wheel import Logic

PUT = {"new": ("move", "to"), "old": ("put", "in/on")}
"""Verb and joint of the put command."""

_A = r"(?:(?:the|a|an|some) )?"
_X = r"([a-z]+ \d+)"
_END = r"\.?$"

# Other wordings of one admissible command: never another object, number or effect.
_SHARED_ALIASES = (
    (rf"^(?:goto|walk to|head to|go over to|go) {_A}{_X}{_END}", r"go to \1"),
    (rf"^(?:pick up|pick|grab|get|take) {_A}{_X} (?:from|off|in|on|out of) {_A}{_X}{_END}", r"take \1 from \2"),
    (rf"^(clean|heat|cool) {_A}{_X} (?:using|with|in|on|at) {_A}{_X}{_END}", r"\1 \2 with \3"),
    (rf"^(?:wash|rinse) {_A}{_X} (?:using|with|in|on|at) {_A}{_X}{_END}", r"clean \1 with \2"),
    (rf"^(?:toggle|turn on|switch on|activate|use) {_A}{_X}{_END}", r"use \1"),
    (rf"^(?:look at|inspect|examine|check) {_A}{_X}{_END}", r"examine \1"),
    (rf"^(open|close) {_A}{_X}{_END}", r"\1 \2"),
    (rf"^(?:look around|check surroundings){_END}", "look"),
    (rf"^(?:check inventory|inventory){_END}", "inventory"),
)
_PUT_WORDS = rf"^(?:put|place|move|drop) {_A}{_X} (?:in/on|in|on|into|onto|inside|to|at) {_A}{_X}{_END}"


def card(logic: Logic) -> EnvCard:
    """The card for one logic; they differ in the put command and in `help`."""
    verb, joint = PUT[logic]
    put = f"{verb} {{thing}} {joint} {{place}}"
    return EnvCard(
        intro=(
            "You are in one room of a simulated household. Furniture and appliances are places you can walk to; "
            "things lie on or in them. You can carry one thing at a time."
        ),
        actions=(
            f"go to {{place}} | open {{place}} | close {{place}} | take {{thing}} from {{place}} | {put} | "
            "clean {thing} with {sink place} | heat {thing} with {microwave place} | cool {thing} with {fridge place} | "
            "use {lamp} | examine {thing or place} | look | inventory"
        ),
        notes='Names always carry a number, as in "mug 1". "Nothing happens." means the action was not possible.',
        complete_admissible=True,
        refusal="Nothing happens.",
        aliases=((_PUT_WORDS, rf"{verb} \1 {joint} \2"), *_SHARED_ALIASES),
        info_actions=r"^(look|examine|inventory|help)\b",
        plays_on=True,
    )
