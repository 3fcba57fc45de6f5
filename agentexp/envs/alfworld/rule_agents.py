"""Scripted agents for hidden rules (paper 003): an actor that uses a rule once it is told, and a thinker that finds it.

The rule is that of variant precondition: the goal's receptacles take nothing until one thing was taken out of them. No text
says so; the game only answers "Nothing happens.".

* `follower` knows by heart where things lie, like `memorised`. While its context holds no such rule it repeats a refused put
  with probability `stubborn`, then tries the other receptacles of the type, then searches on and comes back: it never makes
  room on its own. With the rule in its context it puts its thing aside, takes something out there, and comes back.
* `rulefinder` is the thinker. It reads actions and answers only: a put that was refused although the thing was carried and the
  place was open and at hand needs another explanation; where other things lay in the place, that is the rule. It acts like
  `mapuser`, should it be asked to.

They show the mechanism, not what a language model would do: a control for the harness, with a known rule and a known effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentexp.core import Step, View
from agentexp.envs.alfworld.card import PUT
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.goals import Goal, parse_goal
from agentexp.envs.alfworld.policies import Curious, MapUser
from agentexp.envs.alfworld.texts import Command, command, kind
from agentexp.envs.alfworld.wheel import Logic

RULE = re.compile(
    r"\b(?:tak(?:e|es|en|ing)|remov|clear|empt|mov|pick)\w*\b[^.\n]*\bout of\b|"
    r"\b(?:remov|clear|empty)\w*\b[^.\n]*\b(?:away|first)\b|"
    r"\bmak\w+ (?:room|space)\b|\b(?:full|occupied)\b",
    re.IGNORECASE,
)
"""How somebody says the rule."""

_TOLD = ("guidance", "reflections", "summary", "k_g")  # what an agent may have been told, by the names in `View.knowledge`
_TABLES = ("countertop", "diningtable", "coffeetable", "sidetable", "desk", "dresser", "shelf", "bed", "sofa", "armchair")


class Follower(Curious):
    """Uses the hidden rule while its context holds it, and repeats its mistake while it does not."""

    stubborn = 0.3

    def __init__(self, seed: int, logic: Logic) -> None:
        super().__init__(seed, logic)
        self._told = False
        self._last = ""
        self._goal: Goal | None = None
        self._refusing: list[str] = []  # receptacles of the goal that refused although everything was right
        self._freed = False  # something was taken out of one of them since
        self._aside: tuple[str, str] | None = None  # the goal's thing and where it was put down for the time being
        self._origin: dict[str, str] = {}
        self._unfit: set[tuple[str, str]] = set()  # (type of thing, place) that was refused

    def act(self, view: View) -> str:
        """See the module."""
        self._told = any(RULE.search(str(view.knowledge.get(key, ""))) for key in _TOLD)
        self._goal = parse_goal(view.goal)
        if isinstance(view.tracker, HouseFacts) and view.history:
            self._learn(*view.history[-1], view.tracker)
        refused = view.step.error and _put(self._last) is not None
        if not (refused and not self._told and self.rng.random() < self.stubborn):
            self._last = super().act(view)
        return self._last

    def _learn(self, action: str, step: Step, house: HouseFacts) -> None:
        done, goal = command(action), self._goal
        if done is None or goal is None:
            return
        if _put(action) and not step.error:
            self._aside = (
                (done.thing, done.place) if kind(done.thing) == goal.thing and kind(done.place) != goal.place else None
            )
        elif _put(action) and kind(done.place) == goal.place and _should_work(done, house) and done.place not in self._refusing:
            self._refusing.append(done.place)
        elif done.verb == "take" and not step.error:
            self._origin[done.thing] = done.place
            if done.place in self._refusing:
                self._freed = True
                self._refusing = [done.place]  # the others are as full as they were

    def pursue(self, goal: Goal) -> str:
        """With the rule make room where it is needed; all else as usual."""
        room = self._make_room(goal) if self._told and self._refusing and not self._freed else ""
        return room or super().pursue(goal)

    def _make_room(self, goal: Goal) -> str:
        """Take a thing of another type out of a receptacle that refused; put down before that what is carried."""
        if self.house.holding:
            return self._put_aside(self.house.holding, goal)
        for place in self._refusing:
            if not self._seen(place):
                return self._reach(place, inside=True)
            for thing in self.house.contents[place]:
                if kind(thing) != goal.thing and f"take {thing} from {place}" not in self.house.refused:
                    return self._reach(place, inside=True) or f"take {thing} from {place}"
        return ""

    def _put_aside(self, held: str, goal: Goal) -> str:
        """Put something down where it is in nobody's way: where it came from, on a table or the like, else anywhere."""
        places = [place for place in self.house.places if kind(place) != goal.place]
        places.sort(key=lambda place: (place != self._origin.get(held), kind(place) not in _TABLES))
        for place in places:
            if (kind(held), place) in self._unfit:
                continue
            step = self._reach(place, inside=True) or self._put(held, place)
            if step:
                return step
            self._unfit.add((kind(held), place))
        return ""

    def _drop(self, held: str) -> str:
        aside = self._put_aside(held, self._goal) if self._goal and self._told else ""
        return aside or super()._drop(held)

    def _fetch(self, goal: Goal) -> str:
        if self._aside and self._aside[0] in self.house.contents.get(self._aside[1], ()):
            thing, place = self._aside
            return self._reach(place, inside=True) or f"take {thing} from {place}"
        return super()._fetch(goal)

    def _of_kind(self, wanted: str) -> list[str]:
        places = super()._of_kind(wanted)
        return sorted(places, key=lambda place: not (self._freed and place in self._refusing))


@dataclass(slots=True)
class _Case:
    """What speaks for and against a receptacle being full.

    Attributes:
        refusals: (step, action) of puts that should have worked.
        contents: what lay there at the last of them.
        held: the thing that was to go there.
        wordings: verbs that were refused.
        taken: (step, thing) taken out of it after a refusal.
        accepted: step at which it took something after all.
    """

    refusals: list[tuple[int, str]] = field(default_factory=list)
    contents: tuple[str, ...] = ()
    held: str = ""
    wordings: set[str] = field(default_factory=set)
    taken: tuple[int, str] | None = None
    accepted: int | None = None


class RuleFinder(MapUser):
    """A thinker for hidden preconditions of receptacles. Implements `Thinks`."""

    def think(self, view: View) -> str:
        """Infer the rule from the refusals in the history; the view's oracle and admissible actions are not looked at."""
        cases, worked, expected = _read(view.history)
        lines: list[str] = []
        for place, case in cases.items():
            if case.contents:
                lines += self._rule(place, case, worked)
            else:
                lines.append(f"{place} refused {case.held}, and it holds nothing: such a thing may not belong there.")
        if not cases:
            lines.append("Every reply of the environment fits what one would expect." + _done(view))
        lines += [f'Step {t}, "{action}", was refused because {why}.' for t, action, why in expected[-3:]]
        return "<deepthink>\n" + "\n".join(lines + self._advice(view, cases)) + "\n</deepthink>"

    def _rule(self, place: str, case: _Case, worked: set[str]) -> list[str]:
        steps = ", ".join(str(t) for t, _ in case.refusals)
        lines = [f"Steps {steps}: {place} refused {case.held}, which was carried, and {place} was open and at hand."]
        if len(case.wordings) > 1 or case.wordings & worked:
            lines.append(
                "It is not the wording: " + ("both were refused." if len(case.wordings) > 1 else "it worked elsewhere.")
            )
        sure = "Rule" if len(case.refusals) > 1 or case.taken else "Possible rule"
        lines.append(f"{sure}: {place} takes nothing until something was taken out of it; it held {', '.join(case.contents)}.")
        if case.accepted is not None and case.taken:
            lines.append(f"Confirmed: after {case.taken[1]} was taken out, step {case.accepted} put something there.")
        return lines

    def _advice(self, view: View, cases: Mapping[str, _Case]) -> list[str]:
        """Literal actions that use the rule: the shortest way from where the agent stands; none once room was made."""
        house = view.tracker
        if not isinstance(house, HouseFacts) or any(case.taken for case in cases.values()):
            return []
        verb, joint = PUT[self.logic]
        for place, case in cases.items():
            origin = _origin(view.history, case.held)
            spot = next((p for p in [origin, *house.places] if p and kind(p) != kind(place) and kind(p) in _TABLES), origin)
            if not case.contents or not spot:
                continue
            away = [f"go to {spot}", f"{verb} {case.held} {joint} {spot}"] if house.holding == case.held else []
            plan = [*away, f"go to {place}", f"take {case.contents[0]} from {place}", f"go to {spot}"]
            plan += [f"{verb} {case.contents[0]} {joint} {spot}", f"take {case.held} from {spot}", f"go to {place}"]
            return ["Next:", *plan, f"{verb} {case.held} {joint} {place}"]
        return []


def _put(action: str) -> Command | None:
    """The command if it puts something down."""
    done = command(action)
    return done if done is not None and done.verb in ("move", "put") else None


def _should_work(done: Command, house: HouseFacts) -> bool:
    """Whether a put has everything that the texts speak of: thing in hand, place at hand and not closed."""
    return (house.here, house.holding) == (done.place, done.thing) and house.state.get(done.place) != "closed"


def _why(done: Command, house: HouseFacts) -> str:
    """The plain reason of a refusal; empty if none is in sight."""
    if done.place and done.verb != "go to" and house.here != done.place:
        return f"the agent was not at {done.place}"
    if done.verb == "take" and house.holding:
        return f"{house.holding} was carried and only one thing can be"
    if done.verb in ("move", "put", "heat", "cool", "clean") and house.holding != done.thing:
        return f"{done.thing} was not carried"
    return f"{done.place} was closed" if house.state.get(done.place) == "closed" else ""


def _read(history: Sequence[tuple[str, Step]]) -> tuple[dict[str, _Case], set[str], list[tuple[int, str, str]]]:
    """(case of each receptacle with an unexplained refusal, put verbs that worked, refusals with a plain reason)."""
    house, cases = HouseFacts(), dict[str, _Case]()
    worked, expected = set[str](), list[tuple[int, str, str]]()
    for t, (action, step) in enumerate(history, 1):
        done = command(action)
        if done is not None and step.error:
            if _put(action) and _should_work(done, house):
                case = cases.setdefault(done.place, _Case())
                case.refusals.append((t, action))
                case.wordings.add(done.verb)
                case.held, case.contents = done.thing, tuple(house.contents.get(done.place, ()))
            elif why := _why(done, house):
                expected.append((t, action, why))
        elif done is not None and done.place in cases:
            if done.verb == "take":
                cases[done.place].taken = (t, done.thing)
            elif _put(action):
                cases[done.place].accepted = t
        if _put(action) and not step.error:
            worked.add(done.verb if done else "")
        house.observe(action, step)
    return cases, worked, expected


def _origin(history: Sequence[tuple[str, Step]], thing: str) -> str:
    """Where a thing was taken from last."""
    taken = (done.place for action, step in reversed(history) if not step.error and (done := command(action)) is not None
             and done.verb == "take" and done.thing == thing)  # fmt: skip
    return next(taken, "")


def _done(view: View) -> str:
    """Which parts of the task are done, as far as the texts tell."""
    house = view.tracker
    if not isinstance(house, HouseFacts):
        return ""
    parts = [f"{thing} is {verb}ed" for verb, thing in sorted(house.treated)]
    parts += [f"{house.holding} is carried"] if house.holding else []
    return f" Done so far: {', '.join(parts)}." if parts else ""
