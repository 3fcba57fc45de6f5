"""Facts from the games' answers (MAP, appendix B.1; kinds of the specification's row for ARC).

    ("effect", (action, signature), "")       what an action did: ("ACTION1", "9 4x4 moves up 4")
    ("blocked", (action, context), "")        it did nothing; context: the colour ahead of the shape that it moves elsewhere
    ("shape", (colour and extent,), n)        shapes of the frame, with how many there are at most
    ("counter", (side,), "")                  cells at this side of the grid change with the actions
    ("level", (n,), "")                       level n was seen
    ("over", (action,), "")                   it ended the game

Facts describe changes by kind, not by place: a shape that is moved about teaches nothing new.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.arc_agi3 import actions, picture
from agentexp.envs.arc_agi3.frames import HEX, SIDE, Grid
from agentexp.envs.arc_agi3.reader import Event, Reader
from agentexp.envs.arc_agi3.shapes import BORDER, Shape, things

_GRID_LINE = re.compile(r"^\d{1,2}(?:-\d{1,2})?: .*\n?", re.MULTILINE)
_SHAPE_LINE = re.compile(r"^colour [0-9a-f] \d+x\d+ at .*\n?", re.MULTILINE)
_PAIR = re.compile(r"\b[0-9a-f]->[0-9a-f] x\d+")


class ArcTracker:
    """Reads one exploration of one game."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._facts: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._first: Grid | None = None
        self._moves: dict[str, tuple[str, int, int]] = {}  # action -> kind of the shape that it moves, and by how much
        self._clicked: set[str] = set()
        self._tried: set[str] = set()

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Facts that are new or changed."""
        event = self._reader.observe(action, step)
        found: list[Fact] = []
        if action is None:
            self._first = self._reader.grid
        elif event.action is None:
            return []
        found += self._done(event)
        if self._reader.level:
            found.append(Fact("level", (str(self._reader.level),)))
        if self._reader.grid is not None:
            for kind, n in Counter(shape.kind for shape in things(self._reader.grid)).items():
                most = max(n, int(self._facts.get(("shape", (kind,)), Fact("", (), "0")).value))
                found.append(Fact("shape", (kind,), str(most)))
        new = [fact for fact in found if self._facts.get(fact[:2]) != fact]
        self._facts.update({fact[:2]: fact for fact in new})
        return new

    def _done(self, event: Event) -> list[Fact]:
        if event.action is None or event.effect == "reset":
            return []
        found: list[Fact] = []
        self._tried.add(actions.name(event.action.number))
        if event.target is not None:
            self._clicked.add(event.target.kind)
        if event.change is not None and event.change.counter and event.before is not None and self._reader.grid is not None:
            found += [Fact("counter", (side,)) for side in sides(event.before, self._reader.grid)]
        if event.effect.startswith("game over"):
            found.append(Fact("over", (event.context,)))
        if event.effect:
            found.append(Fact("effect", (event.context, event.effect)))
            if event.change is not None and len(event.change.moved) == 1 and event.action.number != actions.CLICK:
                shape, dx, dy = event.change.moved[0]
                self._moves[event.context] = (shape.kind, dx, dy)
        else:
            found.append(Fact("blocked", (event.context, self._ahead(event))))
        return found

    def _ahead(self, event: Event) -> str:
        """The colours in front of the shape that this action moves where it can."""
        known = self._moves.get(event.context)
        if known is None or event.before is None:
            return ""
        kind, dx, dy = known
        mover = next((shape for shape in things(event.before) if shape.kind == kind), None)
        return f"by {ahead(event.before, mover, dx, dy)}" if mover else ""

    def facts(self) -> list[Fact]:
        """Everything known, in the order of discovery."""
        return list(self._facts.values())

    def mask(self, observation: str) -> str:
        """Without grid, shapes and picture; lower case, numbers as <n>, colours as <e>."""
        text = _SHAPE_LINE.sub("", _GRID_LINE.sub("", picture.strip(observation) + "\n"))
        text = re.sub(r"(?:<e>(?:, )?)+", "<e>", _PAIR.sub("<e>", text.lower()))
        return re.sub(r"\d+", "<n>", " ".join(text.split()))

    def place(self) -> str:
        """The level and a mark of its frame (the counter left out): equal marks are equal situations."""
        if self._reader.grid is None:
            return ""
        return f"level {self._reader.level} {digest(self._reader.grid)}{' over' if self._reader.over else ''}"

    def map(self, goal: str) -> CognitiveMap:
        """Shapes of the first frame with their boxes, effects of actions, guesses about counter, levels and losing."""
        chart = CognitiveMap()
        shown = things(self._first) if self._first else []
        for shape in sorted(shown, key=lambda s: s.size)[:60]:
            chart.spatial.append({"thing": shape.kind, "relation": "at", "place": shape.box})
        if self._first is not None:
            colours = {HEX[colour] for colour in self._first}
            chart.absent = [{"place": "the first frame", "what": f"colour {c}"} for c in HEX if c not in colours]
        for kind, subject, _ in self._facts.values():
            if kind == "effect":
                chart.affordances.append(_entry(subject[0], True, subject[1], None))
            elif kind == "blocked":
                chart.affordances.append(_entry(subject[0], False, "nothing changes", subject[1] or None))
            elif kind == "counter":
                chart.task_notes.append(f"Cells at the {subject[0]} of the grid change with the actions: probably a counter.")
            elif kind == "over":
                chart.task_notes.append(f"The game was over after {subject[0]}.")
        for context, effect in [key[1] for key in self._facts if key[0] == "effect"]:
            if effect == "level completed":
                chart.task_notes.append(f"{context} completed a level.")
        tried = {f"{actions.name(n)}" for n in self._reader.available} - self._tried
        chart.unknown = [f"the effect of {name}" for name in sorted(tried)]
        if actions.CLICK in self._reader.available:
            kinds = dict.fromkeys(shape.kind for shape in shown)
            chart.unknown += [f"a click on {kind}" for kind in kinds if kind not in self._clicked][:15]
        return chart


def _entry(context: str, works: bool, effect: str, requires: str | None) -> dict[str, object]:
    action, _, target = context.partition(" on ")
    return {"action": action, "target": target, "works": works, "effect": effect, "requires": requires}


def sides(old: Grid, new: Grid) -> list[str]:
    """Which borders changed: top, bottom, left, right."""
    found = set()
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if a != b:
            x, y = i % SIDE, i // SIDE
            sides_of = (
                ("top", y < BORDER),
                ("bottom", y >= SIDE - BORDER),
                ("left", x < BORDER),
                ("right", x >= SIDE - BORDER),
            )
            found |= {next((name for name, here in sides_of if here), "")}
    return sorted(found - {""})


def ahead(grid: Grid, shape: Shape, dx: int, dy: int) -> str:
    """The colours that a shape would cover if it moved, other than its own."""
    colours = set()
    for y in range(shape.y + dy, shape.bottom + dy + 1):
        for x in range(shape.x + dx, shape.right + dx + 1):
            inside = shape.x <= x <= shape.right and shape.y <= y <= shape.bottom
            if not inside and 0 <= x < SIDE and 0 <= y < SIDE:
                colours.add(HEX[grid[y * SIDE + x]])
    return " ".join(sorted(colours))


def digest(grid: Grid) -> str:
    """Eight hex digits of a frame without its border."""
    inner = b"".join(grid[y * SIDE + BORDER : (y + 1) * SIDE - BORDER] for y in range(BORDER, SIDE - BORDER))
    return hashlib.blake2b(inner, digest_size=4).hexdigest()
