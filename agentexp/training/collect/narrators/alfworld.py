"""Thoughts in a household: which place is next and why, what is carried and where it has to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentexp.core import EnvCard, View
from agentexp.envs.alfworld import priors
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.goals import Goal, parse_goal
from agentexp.envs.alfworld.texts import Command, command, kind
from agentexp.envs.alfworld.told import Known
from agentexp.training.collect.narrators import PlainNarrator, action_forms, outcome

_DONE = {"clean": "clean", "heat": "hot", "cool": "cold"}


class HouseNarrator(PlainNarrator):
    """See `Narrator`."""

    actor = "mapuser"

    def rules(self, card: EnvCard) -> dict[str, Any]:
        """The put command of this logic, and that appliances work without being opened."""
        treat = [{"action": verb, "requires": ["carrying it"]} for verb in _DONE]
        return {"action_syntax": action_forms(card), "interaction_rules": treat}

    def seen_all(self, view: View, action: str) -> bool:
        """Every place was looked into."""
        house = view.tracker
        return isinstance(house, HouseFacts) and bool(house.places) and all(map(house.looked_into, house.places))

    def exploring(self, view: View, action: str) -> str:
        """The next place, with the one before."""
        house, done = view.tracker, command(action)
        if not isinstance(house, HouseFacts) or done is None:
            return super().exploring(view, action)
        if done.verb == "open":
            return f"{done.place} is closed. I look inside."
        if done.verb == "examine" and view.step.error:
            return _at_hand(done)
        if done.verb in ("go to", "examine"):
            place = done.place or done.thing
            before = f"{house.here} is done. " if house.here else ""
            return outcome(view) + before + self._next(view.goal, place, first=not house.here)
        return f"{outcome(view)}Every place was seen. I try: {action}."

    def _next(self, goal_text: str, place: str, *, first: bool) -> str:
        goal = parse_goal(goal_text)  # None while the goal is hidden
        if goal is not None and kind(place) in priors.likely_places(goal.thing):
            return f"{place} may hold the {goal.thing}."
        if goal is not None and kind(place) in (goal.place, goal.appliance):
            return f"The task needs {place}."
        return f"I begin with {place}." if first else f"Next is {place}."

    def acting(self, view: View, action: str, ahead: Sequence[str]) -> str:
        """What is needed now, and where it is."""
        house, goal, done = view.tracker, parse_goal(view.goal), command(action)
        if not isinstance(house, HouseFacts) or goal is None or done is None:
            return super().acting(view, action, ahead)
        if done.verb == "examine" and view.step.error:
            return _at_hand(done)
        return outcome(view) + _why(goal, house, view, done)


def _at_hand(done: Command) -> str:
    """The game refuses to walk to a place that shares the present location."""
    return f"{done.thing} is at hand already, so I examine it from here."


def _why(goal: Goal, house: HouseFacts, view: View, done: Command) -> str:
    held = house.holding
    if done.verb == "take":
        return f"{done.thing} is here. I take it."
    if done.verb in ("move", "put"):
        return f"I am at {done.place}. I leave {done.thing} here."
    if done.verb in _DONE:
        return f"I am at {done.place}. I {done.verb} {done.thing}."
    if done.verb == "use":
        return f"I hold {held}. {done.thing} is here. I switch it on."
    place = done.place or done.thing
    if done.verb == "open":
        return f"{place} is closed. I open it."
    if held and kind(held) == goal.thing:
        return f"I hold {held}. {_with_it(goal, house, view, held, place)}"
    if held:
        return f"I hold {held}, which I do not need. I put it away at {place}."
    return _without_it(goal, house, view, place)


def _with_it(goal: Goal, house: HouseFacts, view: View, held: str, place: str) -> str:
    """Why somebody who carries the wanted thing walks to a place."""
    if goal.lamp:
        lamp, source = _whereabouts(goal.lamp, house, view, place)
        return f"{source} {lamp} at {place}." if lamp else f"I look for a {goal.lamp} at {place}."
    if goal.treatment and (goal.treatment, held) not in house.treated:
        return f"I must {goal.treatment} it at {place}." if kind(place) == goal.appliance else f"I look for a {goal.appliance}."
    ready = f"It is {_DONE[goal.treatment]} now. " if goal.treatment else ""
    return ready + (f"It goes to {place}." if kind(place) == goal.place else f"I look for a {goal.place} at {place}.")


def _without_it(goal: Goal, house: HouseFacts, view: View, place: str) -> str:
    """Why somebody who still needs the thing walks to a place."""
    there = sum(kind(where) == goal.place for _, where in house.where(goal.thing))
    need = f"One is done. I need another {goal.thing}." if goal.count == 2 and there else f"I need a {goal.thing}."
    thing, source = _whereabouts(goal.thing, house, view, place)
    if thing:
        return f"{need} {source} {thing} at {place}."
    if view.map is None or view.map.is_empty():
        return f"{need} I look at {place}."
    return (
        f"{need} The map shows no other. {place} is not explored." if there else f"{need} I look at {place}, not explored yet."
    )


def _whereabouts(wanted: str, house: HouseFacts, view: View, place: str) -> tuple[str, str]:
    """(a thing of the type that is known to be at the place, who says so); empty texts for none."""
    for thing, where in house.where(wanted):
        if where == place:
            return thing, "I saw"
    for thing, where in Known(view.map).where(wanted, house):
        if where == place:
            return thing, "The map shows"
    return "", ""
