"""Problems drawn from a seed, in the sizes of AgentBoard's problem files, which are not part of this package.

    gripper     two rooms, two grippers, 4-12 balls; nearly every ball must change rooms
    blockworld  4-8 blocks in towers; the goal is a part of another arrangement
    barman      one shaker, 3 dispensers, 4-9 shot glasses, 3-7 cocktails of two ingredients; 1-3 filled glasses are wanted
    tyreworld   1-3 hubs at different stages of a tyre change; the goal asks for any part of the finished work

Which draws are used, and in which split, is frozen in `splits.json` (see `freeze`): trivial ones and those without a plan of at
most `MOST` actions are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from agentexp.envs.pddl.language import Atom

LEAST, MOST = 4, 30  # plan lengths that are admitted; 30 is the papers' acting budget

Objects = list[tuple[str, list[str]]]
Draw = tuple[Objects, list[Atom], list[Atom]]


def draw(kind: str, seed: int) -> str:
    """The PDDL text of a problem.

    Args:
        kind: gripper, blockworld, barman or tyreworld.
        seed: of everything that is drawn.
    """
    objects, init, goal = GENERATORS[kind](random.Random(seed))
    declared = " ".join(f"{' '.join(names)} - {of}" if of else " ".join(names) for of, names in objects)
    return (
        f"(define (problem {kind}-{seed})\n  (:domain {kind})\n  (:objects {declared})\n"
        f"  (:init {_atoms(init)})\n  (:goal (and {_atoms(goal)})))\n"
    )


def _atoms(atoms: Iterable[Atom]) -> str:
    return " ".join(f"({' '.join(atom)})" for atom in atoms)


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{i + 1}" for i in range(count)]


def gripper(rng: random.Random) -> Draw:
    """Balls in two rooms."""
    rooms, hands, balls = ["rooma", "roomb"], ["left", "right"], _numbered("ball", rng.randint(4, 12))
    mixed = rng.random() < 0.6  # else all balls start in one room, the classic task
    home = rng.choice(rooms)
    start = {ball: rng.choice(rooms) if mixed else home for ball in balls}
    wanted = {}
    for ball in balls:
        change = rng.random() < 0.85
        wanted[ball] = rooms[(rooms.index(start[ball]) + change) % 2]
    init: list[Atom] = [*(("room", room) for room in rooms), *(("ball", ball) for ball in balls)]
    init += [("gripper", hand) for hand in hands] + [("free", hand) for hand in hands]
    init += [("at-robby", rng.choice(rooms))] + [("at", ball, room) for ball, room in start.items()]
    goal: list[Atom] = [("at", ball, room) for ball, room in wanted.items() if rng.random() < 0.9]
    return [("", [*rooms, *balls, *hands])], init, goal or [("at", balls[0], wanted[balls[0]])]


def blockworld(rng: random.Random) -> Draw:
    """Towers into other towers."""
    blocks = _numbered("b", rng.randint(4, 8))
    init: list[Atom] = [("arm-empty",)]
    for tower in _towers(blocks, rng):
        init += [("on-table", tower[0]), ("clear", tower[-1])]
        init += [("on", upper, lower) for lower, upper in pairwise(tower)]
    goal: list[Atom] = []
    while not goal:
        pairs = [(upper, lower) for tower in _towers(blocks, rng) for lower, upper in pairwise(tower)]
        goal = [("on", upper, lower) for upper, lower in pairs if rng.random() < 0.85]
    return [("", blocks)], init, sorted(goal)


def _towers(blocks: list[str], rng: random.Random) -> list[list[str]]:
    order = rng.sample(blocks, len(blocks))
    towers: list[list[str]] = []
    for block in order:
        if towers and rng.random() < 0.7:
            rng.choice(towers).append(block)
        else:
            towers.append([block])
    return towers


def barman(rng: random.Random) -> Draw:
    """Drinks from dispensers and a shaker."""
    shots, cocktails = _numbered("shot", rng.randint(4, 9)), _numbered("cocktail", rng.randint(3, 7))
    ingredients, dispensers = _numbered("ingredient", 3), _numbered("dispenser", 3)
    levels, hands = ["l0", "l1", "l2"], ["left", "right"]
    objects: Objects = [
        ("shaker", ["shaker1"]),
        ("hand", hands),
        ("shot", shots),
        ("ingredient", ingredients),
        ("cocktail", cocktails),
        ("dispenser", dispensers),
        ("level", levels),
    ]
    containers = ["shaker1", *shots]
    init: list[Atom] = [(state, container) for state in ("ontable", "clean", "empty") for container in containers]
    init += [("dispenses", *pair) for pair in zip(dispensers, ingredients, strict=True)]
    init += [("handempty", hand) for hand in hands]
    init += [
        ("shaker-empty-level", "shaker1", "l0"),
        ("shaker-level", "shaker1", "l0"),
        ("next", "l0", "l1"),
        ("next", "l1", "l2"),
    ]
    for cocktail in cocktails:
        one, two = rng.sample(ingredients, 2)
        init += [("cocktail-part1", cocktail, one), ("cocktail-part2", cocktail, two)]
    wanted = rng.choice((1, 1, 2, 2, 3))
    goal: list[Atom] = []
    for i, shot in enumerate(shots[:wanted]):
        drink = rng.choice(cocktails) if i == 0 or rng.random() < 0.4 else rng.choice(ingredients)
        goal.append(("contains", shot, drink))
    return objects, init, goal


def tyreworld(rng: random.Random) -> Draw:
    """Tyre changes; hubs may be found at an earlier or later stage."""
    count = rng.randint(1, 3)
    hubs, nuts, fresh, flat = (_numbered(name, count) for name in ("the-hub", "nuts", "r", "w"))
    init: list[Atom] = [("in", tool, "boot") for tool in ("jack", "pump", "wrench")]
    init += [("unlocked", "boot"), (rng.choice(("closed", "closed", "isopen")), "boot")]
    for hub, nut, new, old in zip(hubs, nuts, fresh, flat, strict=True):
        full = rng.random() < 0.3
        init += [("intact", new), ("in", new, "boot"), ("inflated" if full else "not-inflated", new)]
        init += [("on", old, hub), ("on-ground", hub), (rng.choice(("tight", "tight", "loose")), nut, hub), ("fastened", hub)]
    goal: list[Atom] = []
    for hub, nut, new, old in zip(hubs, nuts, fresh, flat, strict=True):
        part = rng.choice(("inflate" if count > 1 else "all", "unmount", "mount", "all"))
        filled = [("inflated", new)] if part in ("inflate", "all") or rng.random() < 0.3 else []
        goal += [*filled, *([("on", new, hub)] if part in ("mount", "all") else [])]
        goal += [("tight", nut, hub)] if part == "all" or (part == "mount" and rng.random() < 0.5) else []
        goal += [("in", old, "boot")] if part in ("unmount", "all") else []
    if rng.random() < 0.3:
        goal += [("in", tool, "boot") for tool in ("wrench", "jack", "pump")] + [("closed", "boot")]
    return [("hub", hubs), ("nut", nuts), ("container", ["boot"]), ("wheel", [*fresh, *flat])], init, goal


GENERATORS: Mapping[str, Callable[[random.Random], Draw]] = {
    "gripper": gripper,
    "blockworld": blockworld,
    "barman": barman,
    "tyreworld": tyreworld,
}
"""By kind of problem."""
