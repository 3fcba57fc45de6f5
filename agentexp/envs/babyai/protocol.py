"""AgentBoard's text protocol: how a view is told, which actions there are, and how the others are refused.

An action stands for a list of moves: "go to red ball 1" for the way to it, "pickup red ball 1" and "toggle and go through ..."
for the way and what is done at its end. A thing's number counts those of the same name from the nearest on.

Ours, where AgentBoard's code goes wrong: numbers are the same in all actions as in the description (there, things that
cannot be reached are left out of the count in "pickup" and "go to"), and one refusal says the door's number instead of
printing a table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from agentexp.envs.babyai.paths import Paths
from agentexp.envs.babyai.scene import (
    CLOSED,
    DROP,
    FORWARD,
    LEFT,
    LOCKED,
    OPEN,
    PICKUP,
    RIGHT,
    TOGGLE,
    Scene,
    Sight,
    Thing,
    in_view,
    opens,
)

CHECK = "check available actions"
NO_CHANGE = "No change in state."
NOT_RECOGNISED = "The action is not recognized. Please check valid actions."
COMPLETED = "\n The task is completed."


@dataclass(slots=True)
class Options:
    """The actions of one state.

    Attributes:
        moves: moves of each action, in AgentBoard's order; a list without moves changes nothing.
        refusals: answers to actions that name something in view but are not possible.
    """

    moves: dict[str, tuple[int, ...]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)

    def refusal(self, action: str) -> str:
        """What the world answers to an action that is not in `moves`."""
        return self.refusals.get(action, NOT_RECOGNISED if action else NO_CHANGE)


@dataclass(frozen=True, slots=True)
class Named:
    """A thing in view and its name with number."""

    thing: Thing
    sight: Sight
    name: str


def look(scene: Scene) -> tuple[list[Named], list[Sight]]:
    """What is in view: the things, nearest first and with their names, and the walls."""
    # Cells north or west of the grid are not told (AgentBoard skips negative positions); it matters to paths only.
    seen = sorted((s for s in in_view(scene) if min(s.cell) >= 0), key=lambda sight: sight.distance)
    count: Counter[str] = Counter()
    named = []
    for sight in seen:
        if sight.thing is not None:
            count[sight.thing.name] += 1
            named.append(Named(sight.thing, sight, f"{sight.thing.name} {count[sight.thing.name]}"))
    return named, [sight for sight in seen if sight.thing is None]


def describe(scene: Scene) -> str:
    """The observation."""
    things, walls = look(scene)
    text = "You cannot see any objects within sight."
    if things or walls:
        text = "In front of you in this room, you can see several objects: "
        text += "".join(f"There is a {thing.name} {_where(thing.sight)}  " for thing in things)
    text += "The room has walls around you. "
    if barrier := _barrier(things, walls):
        text += f"You are facing a {barrier.thing.kind if barrier.thing else 'wall'} {barrier.ahead} steps away. "
    held = scene.carrying
    return text + (f"You are carrying a {held.name}." if held else "You are not carrying anything.")


def options(scene: Scene) -> Options:
    """The actions that are possible now, and the answers to those that are not."""
    things, walls = look(scene)
    found = Options({"turn left": (LEFT,), "turn right": (RIGHT,)})
    barrier = _barrier(things, walls)
    if barrier is None or barrier.ahead > 1:
        found.moves["move forward"] = (FORWARD,)
    else:
        found.refusals["move forward"] = "There is a barrier in front of you, you can't move forward."
    solid = {sight.cell for sight in walls} | {named.sight.cell for named in things if named.thing.kind != "door"}
    paths = Paths(scene.cell, scene.facing, solid, {named.sight.cell for named in things})
    if scene.carrying is None:
        for named in things:
            if named.thing.kind != "door":
                _offer(found, f"pickup {named.name}", paths.before(named.sight.cell), (PICKUP,))
        found.refusals["drop"] = "You cannot drop the object, as you are not carrying anything."
    elif scene.front in solid:
        found.refusals["drop"] = "You cannot drop the object, as there is already an object in front of you."
    else:
        found.moves["drop"] = (DROP,)
    for named in things:
        if named.thing.kind == "door":
            _doors(found, named, paths, scene.carrying)
    for named in things:
        _offer(found, f"go to {named.name}", paths.before(named.sight.cell))
    found.moves[CHECK] = ()
    return found


def listing(found: Options) -> str:
    """The answer to "check available actions"."""
    return "You can take the following actions: " + ", ".join(found.moves)


def _doors(found: Options, named: Named, paths: Paths, held: Thing | None) -> None:
    door, through, toggled = named.thing, f"go through {named.name}", f"toggle and go through {named.name}"
    if door.state == OPEN:
        _offer(found, through, paths.into(named.sight.cell))
        return
    if door.state == CLOSED:
        found.refusals[through] = f"You cannot {through}, as it is closed. You should toggle it first."
    if door.state == LOCKED and not opens(held, door):
        why = "the color of the key you are carrying does not match the color of door"
        if held is None or held.kind != "key":
            why = "you are not carrying a key"
        found.refusals[toggled] = f"You cannot {toggled}, as {why}."
        return
    way = paths.before(named.sight.cell)
    _offer(found, toggled, way, (TOGGLE, FORWARD))
    if way == ():
        found.moves["toggle"] = (TOGGLE,)


def _offer(found: Options, action: str, way: tuple[int, ...] | None, then: tuple[int, ...] = ()) -> None:
    if way is None:
        found.refusals[action] = f"You cannot {action}, as there is no path leading to it."
    else:
        found.moves[action] = way + then


def _where(sight: Sight) -> str:
    if sight.right == 0:
        return f"right in front of you {sight.ahead} steps away. "
    return (
        f"{sight.ahead} steps in front of you and {abs(sight.right)} steps to your {'right' if sight.right > 0 else 'left'}. "
    )


def _barrier(things: list[Named], walls: list[Sight]) -> Sight | None:
    """The nearest wall or box straight ahead."""
    boxes = [named.sight for named in things if named.thing.kind == "box"]
    return min((s for s in (*boxes, *walls) if s.right == 0), key=lambda s: s.ahead, default=None)
