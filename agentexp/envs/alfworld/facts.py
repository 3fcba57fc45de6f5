"""The fact tracker of ALFWorld: what the texts of one exploration have told (MAP, section 3.2.2 and SPEC table of facts)."""

from __future__ import annotations

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.alfworld import texts
from agentexp.envs.alfworld.goals import Goal, parse_goal
from agentexp.envs.alfworld.texts import Command, kind

_EFFECT = {"heat": "hot", "cool": "cold", "clean": "clean", "use": "on"}
_NOT_ALWAYS = "not always"  # value of a refusal once the same kind of action has worked
_SHOWS = {"open": "shows what is inside", "take": "you carry it", "move": "it lies there", "put": "it lies there"}


class HouseFacts:
    """Reads one exploration of one house. Implements `FactTracker`; policies read its attributes as well.

    Every fact counts once: opening and closing a drawer again and again is no new knowledge.

    Attributes:
        places: all places, in the order of the first text.
        here: the place the agent is at; empty in the middle of the room.
        holding: what it carries; empty for nothing.
        contents: things that are believed to be in or on each place that was looked into.
        state: "open" or "closed" of places that can be opened.
        refused: commands refused since the agent last moved.
        treated: (verb, thing) done so far, for example ("heat", "egg 2").
    """

    def __init__(self) -> None:
        self.places: list[str] = []
        self.here = ""
        self.holding = ""
        self.contents: dict[str, list[str]] = {}
        self.state: dict[str, str] = {}
        self.refused: set[str] = set()
        self.treated: set[tuple[str, str]] = set()
        self._facts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._counted: set[Fact] = set()
        self._new: list[Fact] = []
        # The house as it was at reset: filled by first sights, never by what the agent itself changed.
        self._first_contents: dict[str, list[str]] = {}
        self._first_state: dict[str, str] = {}
        self._moved: set[str] = set()

    # ------------------------------------------------------------------------------------------------- FactTracker

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """See `FactTracker`. A fact that was known before in the same form is not returned again."""
        self._new = []
        text = step.observation
        for place in texts.places(text):
            if place not in self.places:
                self.places.append(place)
            self._learn("place", place)
        command = texts.command(action) if action is not None else None
        if command is not None and text.strip() == texts.NOTHING:
            self._was_refused(command, (action or "").strip().lower())
        elif command is not None and not step.error:
            self._did(command)
        for sight in texts.sights(text):
            self._saw(sight)
        carried = texts.carried(text)
        if carried is not None:
            self.holding = carried
        return self._new

    def facts(self) -> list[Fact]:
        """Everything known now."""
        return [Fact(name, subject, value) for (name, subject), value in self._facts.items()]

    def mask(self, observation: str) -> str:
        """See `texts.mask`."""
        return texts.mask(observation)

    def place(self) -> str:
        """The place with its state: "fridge 1 open", "desk 2"; empty at the start."""
        return f"{self.here} {self.state.get(self.here, '')}".strip()

    def map(self, goal: str) -> CognitiveMap:
        """The house as it was at reset, goal-related entries first."""
        wanted = parse_goal(goal)
        related = {wanted.thing, wanted.place, wanted.lamp, wanted.appliance} - {""} if wanted else set()
        spatial = [
            {"thing": thing, "relation": "in" if place in self._first_state else "on", "place": place}
            for place in self.places
            for thing in self._first_contents.get(place, ())
        ]
        spatial.sort(key=lambda entry: kind(entry["thing"]) not in related)
        states = [{"thing": p, "relation": "is", "place": self._first_state[p]} for p in self.places if p in self._first_state]
        states.sort(key=lambda entry: kind(entry["thing"]) not in related)
        empty = [place for place in self.places if self._first_contents.get(place) == []]
        return CognitiveMap(
            spatial=spatial + states,
            absent=[{"place": place, "what": "anything"} for place in empty],
            affordances=self._affordances(),
            task_notes=self._notes(wanted) if wanted else [],
            unknown=[place for place in self.places if place not in self._first_contents],
        )

    # ---------------------------------------------------------------------------------------------------- learning

    def looked_into(self, place: str) -> bool:
        """Whether the contents of a place have been seen."""
        return place in self.contents

    def where(self, thing_kind: str) -> list[tuple[str, str]]:
        """(thing, place) of all things of a type that are believed to lie somewhere."""
        return [(thing, place) for place, things in self.contents.items() for thing in things if kind(thing) == thing_kind]

    def _learn(self, name: str, *subject: str, value: str = "") -> None:
        self._facts[name, subject] = value
        fact = Fact(name, subject, value)
        if fact not in self._counted:
            self._counted.add(fact)
            self._new.append(fact)

    def _outdate(self, name: str, *subject: str, value: str) -> None:
        """Give a fact that no longer holds another value, if it was known at all: facts change but never vanish."""
        if (name, subject) in self._facts:
            self._learn(name, *subject, value=value)

    def _was_refused(self, command: Command, action: str) -> None:
        self.refused.add(action)
        subject = (command.verb, kind(command.thing), kind(command.place))
        if ("works", subject) not in self._facts:
            self._learn("refused", *subject, value=self._reason(command))

    def _reason(self, command: Command) -> str:
        """Why a command may have been refused although it works elsewhere; empty if no reason is in sight."""
        if command.verb == "take" and self.holding:
            return "empty hands"
        if command.verb in ("move", "put", "heat", "cool", "clean") and command.thing != self.holding:
            return "carrying it"
        if command.place and command.verb != "go to" and command.place != self.here:
            return "being there"
        if command.verb in ("take", "move", "put") and self.state.get(command.place) == "closed":
            return "open place"
        return ""

    def _did(self, command: Command) -> None:
        verb, thing, place = command.verb, command.thing, command.place
        if verb == "go to" and place != self.here:
            self.refused.clear()
        if place:
            self.here = place  # every command with a place works only there
        elif verb == "examine" and thing in self.places:
            self.here = place = thing  # places that share a location are reached by examining them
            thing = ""
        if verb in ("look", "inventory", "help"):
            return
        subject = (verb, kind(thing), kind(place))
        self._outdate("refused", *subject, value=_NOT_ALWAYS)
        self._learn("works", *subject)
        if verb in ("open", "close"):
            self._first_state.setdefault(place, "closed" if verb == "open" else "open")
            self.state[place] = "open" if verb == "open" else "closed"
            self._learn("state", place, value=self.state[place])
        elif verb == "take":
            if thing not in self._moved and thing not in self._first_contents.get(place, ()):
                self._first_contents.setdefault(place, []).append(thing)
            self._moved.add(thing)
            if thing in self.contents.get(place, ()):
                self.contents[place].remove(thing)
            self.holding = thing
            self._learn("at", thing, value="carried")
        elif verb in ("move", "put"):
            self._moved.add(thing)
            self.holding = ""
            self.contents.setdefault(place, []).append(thing)
            self._outdate("empty", place, value="no more")
            self._learn("at", thing, value=place)
        elif verb in _EFFECT:
            self.treated.add((verb, thing))
            if verb in ("heat", "cool"):
                self.treated.discard(("cool" if verb == "heat" else "heat", thing))
            self._learn("effect", verb, kind(thing), value=_EFFECT[verb])

    def _saw(self, sight: texts.Sight) -> None:
        place = sight.place
        if sight.can_open:
            now = "closed" if sight.contents is None else "open"
            self._first_state.setdefault(place, now)
            self.state[place] = now
            self._learn("state", place, value=now)
        if sight.contents is None:
            return
        if place not in self._first_contents:
            self._first_contents[place] = [thing for thing in sight.contents if thing not in self._moved]
        for thing in self.contents.get(place, ()):
            if thing not in sight.contents and self._facts.get(("at", (thing,))) == place:
                self._learn("at", thing, value="gone")
        self.contents[place] = list(sight.contents)
        for thing in sight.contents:
            self._learn("at", thing, value=place)
        if sight.contents:
            self._outdate("empty", place, value="no more")
        else:
            self._learn("empty", place)

    # ---------------------------------------------------------------------------------------------------- rendering

    def _affordances(self) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        for (name, subject), value in self._facts.items():
            if name not in ("works", "refused") or subject[0] in ("go to", "examine") or value == _NOT_ALWAYS:
                continue
            verb, thing, place = subject
            joint = " with " if verb in _EFFECT else " at "
            effect = f"{thing} is {_EFFECT[verb]}" if verb in _EFFECT else _SHOWS.get(verb, "")
            entries.append(
                {
                    "action": verb,
                    "target": joint.join(filter(None, (thing, place))),
                    "works": name == "works" or bool(value),
                    "effect": effect if name == "works" else "" if value else "nothing happens",
                    "requires": value or None,
                }
            )
        return entries

    def _notes(self, goal: Goal) -> list[str]:
        notes = []
        for role, wanted in (("wanted", goal.thing), ("lamp", goal.lamp)):
            found = [(t, p) for p in self.places for t in self._first_contents.get(p, ()) if kind(t) == wanted]
            notes += [f"{thing} ({role}) is at {place}." for thing, place in found]
            if wanted and not found:
                notes.append(f"No {wanted} was seen yet.")
        for role, wanted in (("goal", goal.place), (f"to {goal.treatment}", goal.appliance)):
            there = [place for place in self.places if kind(place) == wanted]
            if there:
                notes.append(f"{role[0].upper()}{role[1:]} place: {', '.join(there)}.")
        return notes
