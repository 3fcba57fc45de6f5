"""Scripted agents for ALFWorld. They read the same texts as a model does; no engine state, no list of admissible actions.

* `mapuser` acts on the map of the house and on K_g where it has them, and searches in a fixed order where it has not.
* `curious` explores: first whatever the goal may need, then every other place, then what can be done with things.
* `myopic` goes where such things usually are, forgets what failed, and follows guidance that is literally an action.
* `memorised` is `mapuser` with a memory of the unchanged game, see `memorised.py`.

All of them only look around while the phase is "mapping" or the goal is hidden, and pursue the goal otherwise. Deterministic
for a seed. They need the tracker of `HouseFacts` in the view, which the episode loop provides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from agentexp.core import View
from agentexp.envs.alfworld import priors
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.goals import Goal, parse_goal
from agentexp.envs.alfworld.texts import command, kind
from agentexp.envs.alfworld.told import Known, Rules
from agentexp.envs.alfworld.wheel import Logic
from agentexp.errors import UserError

_IDLE = "look"


class HousePolicy:
    """What all scripted agents share: walking, looking, carrying out a goal once its things are known."""

    def __init__(self, seed: int, logic: Logic) -> None:
        self.rng = random.Random(seed)
        self.logic = logic
        self.house = HouseFacts()
        self.known = Known(None)
        self.rules = Rules({})
        self._again: list[str] = []

    def act(self, view: View) -> str:
        """The next action."""
        if not isinstance(view.tracker, HouseFacts):
            raise UserError("The scripted agents of alfworld need env=alfworld and its fact tracker.")
        self.house = view.tracker
        self.known = self.know(view)
        self.rules = Rules(view.knowledge)
        goal = parse_goal(view.goal)
        if goal is not None and view.phase != "mapping":
            return self.pursue(goal)
        return self.explore(goal)

    def know(self, view: View) -> Known:
        """What was known before the episode began: the map."""
        return Known(view.map)

    def explore(self, goal: Goal | None) -> str:
        """One step of looking around without acting on the goal."""
        here = self._finish_looking()
        if here:
            return here
        places = self.order([place for place in self.house.places if not self._seen(place)], goal)
        return self._go(places[0]) if places else self._try_things()

    def order(self, places: list[str], goal: Goal | None) -> list[str]:
        """In which order to look into places that were not seen yet: as listed."""
        return places

    def search_order(self, places: list[str], goal: Goal) -> list[str]:
        """The same while pursuing a goal."""
        return self.order(places, goal)

    # -------------------------------------------------------------------------------------------------- pursuing

    def pursue(self, goal: Goal) -> str:
        """One step towards the goal."""
        held = self.house.holding
        if held and kind(held) != goal.thing:
            return self._drop(held)
        if not held:
            return self._fetch(goal)
        if goal.lamp:
            return self._light(goal)
        if goal.treatment and (goal.treatment, held) not in self.house.treated:
            return self._treat(goal, held)
        return self._deliver(goal, held)

    def _fetch(self, goal: Goal) -> str:
        done = self._delivered(goal)
        for thing, place in [*self.house.where(goal.thing), *self.known.where(goal.thing, self.house)]:
            if thing not in done and f"take {thing} from {place}" not in self.house.refused:
                return self._reach(place, inside=True) or f"take {thing} from {place}"
        return self._search(goal)

    def _light(self, goal: Goal) -> str:
        for lamp, place in [*self.house.where(goal.lamp), *self.known.where(goal.lamp, self.house)]:
            if f"use {lamp}" not in self.house.refused:
                return self._reach(place, inside=False) or f"use {lamp}"
        return self._search(goal)

    def _treat(self, goal: Goal, held: str) -> str:
        verb = goal.treatment
        for place in self._of_kind(goal.appliance):
            action = f"{verb} {held} with {place}"
            if action not in self.house.refused:
                return self._reach(place, inside=not self.rules.treats_closed) or action
        return self._search(goal)

    def _deliver(self, goal: Goal, held: str) -> str:
        places = self._of_kind(goal.place)
        done = self._delivered(goal)
        started = [place for place in places if done & set(self.house.contents.get(place, ()))]
        for place in [*started, *places]:
            walk = self._reach(place, inside=True)
            if walk:
                return walk
            action = self._put(held, place)
            if action:
                return action
        return self._search(goal)

    def _delivered(self, goal: Goal) -> set[str]:
        """Things that lie where the goal wants them. One lying there untreated must still be fetched."""
        if not goal.place:
            return set()
        there = [(thing, place) for thing, place in self.house.where(goal.thing) if kind(place) == goal.place]
        first = there[0][1] if there else ""
        return {
            thing
            for thing, place in there
            if place == first and (not goal.treatment or (goal.treatment, thing) in self.house.treated)
        }

    def _put(self, held: str, place: str) -> str:
        for verb, joint in self.rules.put_forms:
            action = f"{verb} {held} {joint} {place}"
            if action not in self.house.refused and not self._form_failed(verb):
                return action
        return ""

    def _form_failed(self, verb: str) -> bool:
        """A put form that was refused although everything was right is not tried again once the other one works."""
        other = "move" if verb == "put" else "put"
        facts = {(fact.kind, fact.subject[0]) for fact in self.house.facts() if fact.kind in ("works", "refused")}
        return ("refused", verb) in facts and ("works", other) in facts

    def _drop(self, held: str) -> str:
        """Get rid of something useless, here or at the next place."""
        for place in [self.house.here, *self.house.places]:
            if place:
                step = self._reach(place, inside=True) or self._put(held, place)
                if step:
                    return step
        return _IDLE

    def _search(self, goal: Goal) -> str:
        """Look into the next place that may hold what is missing; places that the map has seen come last."""
        looking = self._finish_looking()
        if looking:
            return looking
        unseen = [place for place in self.house.places if not self._seen(place)]
        fresh = [place for place in unseen if not self.known.was_seen(place)]
        places = self.search_order(fresh, goal) or self.search_order(unseen, goal)
        return self._go(places[0]) if places else self._look_again()

    def _look_again(self) -> str:
        """Everything was seen and something is still missing: it may have been moved. Go round once more, and again."""
        if set(self._again) >= set(self.house.places):
            self._again = []
        place = next((p for p in self.house.places if p not in self._again and p != self.house.here), "")
        self._again += [self.house.here, place]
        return self._go(place) if place else _IDLE

    # ---------------------------------------------------------------------------------------------------- walking

    def _of_kind(self, wanted: str) -> list[str]:
        """Places of a type, the present one first."""
        return sorted((p for p in self.house.places if kind(p) == wanted), key=lambda place: place != self.house.here)

    def _seen(self, place: str) -> bool:
        return self.house.looked_into(place)

    def _finish_looking(self) -> str:
        """Open the place we stand at if it is closed; empty if there is nothing to open."""
        here = self.house.here
        if here and self.house.state.get(here) == "closed" and f"open {here}" not in self.house.refused:
            return f"open {here}"
        return ""

    def _reach(self, place: str, inside: bool) -> str:
        """The next step of walking to a place and, if needed, opening it; empty if there is nothing left to do."""
        if self.house.here != place:
            return self._go(place)
        return self._finish_looking() if inside else ""

    def _go(self, place: str) -> str:
        # A place that shares our location refuses "go to": examining it is enough to be there.
        return f"examine {place}" if f"go to {place}" in self.house.refused else f"go to {place}"

    def _try_things(self) -> str:
        """When every place was seen: take a thing of each new type and put it back; else look."""
        if self.house.holding and self.house.here:
            back = self._put(self.house.holding, self.house.here)
            if back:
                return back
        facts = self.house.facts()
        tried = {fact.subject[1] for fact in facts if fact.kind in ("works", "refused") and fact.subject[0] == "take"}
        for place in self.house.places:
            for thing in self.house.contents.get(place, ()):
                if kind(thing) not in tried and not self.house.holding:
                    return self._reach(place, inside=True) or f"take {thing} from {place}"
        return _IDLE


class Curious(HousePolicy):
    """Looks into every place, likely ones first when it knows the goal; acts as soon as it knows where things are."""

    def order(self, places: list[str], goal: Goal | None) -> list[str]:
        """Where the goal's thing usually lies first, then places of the goal, then as listed."""
        if goal is None:
            return places
        likely = priors.likely_places(goal.thing)
        wanted = {goal.place, goal.appliance}

        def rank(place: str) -> tuple[float, bool, int]:
            return -likely.get(kind(place), 0.0), kind(place) not in wanted, places.index(place)

        return sorted(places, key=rank)


class MapUser(Curious):
    """Acts on a map and on K_g. It maps like `Curious`, but what the map leaves open it searches as listed."""

    def search_order(self, places: list[str], goal: Goal) -> list[str]:
        """As listed."""
        return places


class Myopic(HousePolicy):
    """Chases the likeliest place and soon forgets where it was; repeats a refused action with probability `stubborn`."""

    stubborn = 0.3
    memory = 2

    def __init__(self, seed: int, logic: Logic) -> None:
        super().__init__(seed, logic)
        self._followed: list[str] = []
        self._visited: list[str] = []
        self._last = ""

    def act(self, view: View) -> str:
        """See `HousePolicy`; guidance comes first, then stubbornness."""
        here = view.tracker.here if isinstance(view.tracker, HouseFacts) else ""
        if here and here not in self._visited[-1:]:
            self._visited.append(here)
        guided = self._guided(view.knowledge.get("guidance"))
        if guided:
            self._last = guided
        elif not (view.step.error and self._last and self.rng.random() < self.stubborn):
            self._last = super().act(view)
        return self._last

    def explore(self, goal: Goal | None) -> str:
        """Wander: any place, also one that was seen; closed ones are opened half of the time."""
        looking = self._finish_looking()
        if looking and self.rng.random() < 0.5:
            return looking
        return self._go(self.order(list(self.house.places), goal)[0]) if self.house.places else _IDLE

    def _seen(self, place: str) -> bool:
        return place in self._visited[-self.memory :]

    def order(self, places: list[str], goal: Goal | None) -> list[str]:
        """Drawn by how often the goal's thing lies in such places; any order without a goal."""
        likely = priors.likely_places(goal.thing) if goal else {}
        kinds = [kind(place) for place in places]
        weights = [0.02 + likely.get(word, 0.0) / kinds.count(word) for word in kinds]
        keys = [self.rng.random() ** (1 / weight) for weight in weights]  # weighted order without replacement
        return [place for _, place in sorted(zip(keys, places, strict=True), reverse=True)]

    def _guided(self, guidance: Any) -> str:
        """The next line of the guidance that is an action and was not followed yet."""
        text = "\n".join(map(str, guidance)) if isinstance(guidance, list | tuple) else str(guidance or "")
        for line in text.splitlines():
            action = re.sub(r"^\s*(?:[-*•]|\d+[.)])?\s*(?:action:)?\s*", "", line, flags=re.IGNORECASE).strip(" `\"'.").lower()
            if command(action) is not None and line not in self._followed:
                self._followed.append(line)
                return action
        return ""


POLICIES: Mapping[str, type[HousePolicy]] = {"mapuser": MapUser, "curious": Curious, "myopic": Myopic}
"""Scripted agents by name; `memorised` needs more than a name."""
