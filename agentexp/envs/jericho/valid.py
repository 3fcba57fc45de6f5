"""Valid actions: commands that change the world, and those that look at it, without language models and at bounded cost.

For our stories the candidates follow from the attributes of what is in sight (what opens is opened, what is held is put
somewhere); for any other story they are the templates of its grammar with the words in sight. Each candidate is tried on the
engine and undone. Of several that lead to the same world the first is kept. jericho's own `get_valid_actions` loads a spaCy
model, which it downloads, and its candidates grow with the square of the objects without a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentexp.envs.jericho.engine import Engine
from agentexp.envs.jericho.scene import Scene

INFO = ("look", "inventory")
MOST_THINGS = 24  # of ours in sight
MOST_WORDS = 10  # objects of any other story
MOST_CANDIDATES = 400
_ALONE = ("push", "pull", "turn", "wind", "ring", "mix", "cut", "look through")
_WITH = ("dig {} with {}", "light {} with {}", "tie {1} to {0}", "pour {1} into {0}")
_GENERIC = (
    "take OBJ", "drop OBJ", "open OBJ", "close OBJ", "push OBJ", "pull OBJ", "turn OBJ", "enter OBJ", "eat OBJ", "wear OBJ",
    "light OBJ", "switch on OBJ", "switch off OBJ", "climb OBJ", "read OBJ", "unlock OBJ with OBJ", "put OBJ in OBJ",
    "put OBJ on OBJ", "give OBJ to OBJ", "tie OBJ to OBJ",
)  # fmt: skip
_MOVES = ("north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest", "up", "down", "in", "out")
_UNKNOWN = re.compile(
    r"can't see any|not a verb|don't know the word|doesn't know the word|don't understand|didn't understand|not something you "
    r"need|isn't one I|isn't in the vocab|what do you want to",
    re.IGNORECASE,
)


# ----------------------------------------------------------------------------------------------------------------- our stories


def valid_actions(engine: Engine) -> tuple[str, ...]:
    """What can be done in one of our stories now, in a fixed order: changes, then looking, reading and talking."""
    start, before = engine.save(), engine.scene()
    world, changes, seen = before.memory.objects(), list[str](), set[bytes]()
    for action in _candidates(before):
        answer = engine.send(action)
        after = engine.memory().objects()
        if answer.over or (after != world and after not in seen):
            changes.append(action)
            seen.add(after)
        engine.restore(start)
    return (*changes, *_looking(before))


def _candidates(scene: Scene) -> list[str]:
    return list(dict.fromkeys(_all_candidates(scene)))[:MOST_CANDIDATES]


def _all_candidates(scene: Scene) -> Iterator[str]:
    """Moves first, then simple acts, then acts with two things."""
    has, name = scene.has, scene.name
    sight = scene.visible()[:MOST_THINGS]
    held = [thing for thing in sight if scene.holds(thing)]
    active = [thing for thing in sight if scene.has_rules(thing)]
    yield from (way.direction for way in scene.ways(scene.here))
    for thing in sight:
        if not scene.holds(thing) and not any(has(thing, fixed) for fixed in ("static", "scenery", "animate")):
            yield f"take {name(thing)}"
        if has(thing, "openable"):
            yield f"{'close' if has(thing, 'open') else 'open'} {name(thing)}"
        if has(thing, "switchable"):
            yield f"switch {'off' if has(thing, 'on') else 'on'} {name(thing)}"
        if has(thing, "enterable"):
            yield f"enter {name(thing)}"
        if has(thing, "edible") and scene.holds(thing):
            yield f"eat {name(thing)}"
    for thing in active:
        yield from (f"{verb} {name(thing)}" for verb in _ALONE)
        yield f"light {name(thing)}"
        if scene.memory.values(thing, "setting"):
            yield from (f"set {name(thing)} to {number}" for number in range(1, 10))
    for thing in sight:
        for tool in held:
            if tool != thing:
                yield from _with(scene, thing, tool, thing in active)
    yield from (f"drop {name(thing)}" for thing in held)


def _with(scene: Scene, thing: int, tool: int, active: bool) -> Iterator[str]:
    has, a, b = scene.has, scene.name(thing), scene.name(tool)
    if has(thing, "lockable"):
        yield f"{'unlock' if has(thing, 'locked') else 'lock'} {a} with {b}"
    if has(thing, "container") and not scene.holds(thing):
        yield f"put {b} in {a}"
    if has(thing, "supporter"):
        yield f"put {b} on {a}"
    if has(thing, "animate"):
        yield f"give {b} to {a}"
    if active:
        yield from (form.format(a, b) for form in _WITH)


def _looking(scene: Scene) -> Iterator[str]:
    yield from INFO
    for thing in scene.visible()[:MOST_THINGS]:
        yield f"{'talk to' if scene.has(thing, 'animate') else 'examine'} {scene.name(thing)}"


# ------------------------------------------------------------------------------------------------------------- any other story


def valid_actions_of_any(engine: Engine) -> tuple[str, ...]:
    """What changes the world in a story of which nothing is known but its grammar, and "look" and "inventory"."""
    words = _words(engine)
    templates = [t for t in engine.grammar() or _GENERIC if t.count("OBJ") <= 2]
    filled = [*_MOVES, *(template for template in templates if "OBJ" not in template)]
    filled += [template.replace("OBJ", word) for template in templates if template.count("OBJ") == 1 for word in words]
    for template in (template for template in templates if template.count("OBJ") == 2):
        filled += [template.replace("OBJ", one, 1).replace("OBJ", other, 1) for one in words for other in words if one != other]
    candidates = [action for action in dict.fromkeys(filled) if ";" not in action][:MOST_CANDIDATES]
    return (*engine.changing(candidates), *INFO)


def _words(engine: Engine) -> list[str]:
    """Names of things in sight: of those that get the same description when examined, the longest word."""
    start = engine.save()
    known = engine.dictionary()
    longest = max(map(len, known), default=9)
    texts: list[str] = []
    for command in INFO:
        texts.append(engine.send(command).text)
        engine.restore(start)
    said = re.findall(r"[a-z]+", " ".join([*engine.things_near(), *texts]).lower())
    words = [word for word in dict.fromkeys(said) if len(word) > 2 and word[:longest] in known]
    described: dict[str, str] = {}
    for word in words[: 4 * MOST_WORDS]:
        answer = engine.send(f"examine {word}").text.strip()
        engine.restore(start)
        if not _UNKNOWN.search(answer) and len(word) > len(described.get(answer, "")):
            described[answer] = word
    return list(described.values())[:MOST_WORDS]
