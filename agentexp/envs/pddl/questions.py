"""Questions about a PDDL problem, with answers from its initial state and actions (Map QA; MAP, appendix C.3), and map checks.

object_location  Where is ball1? Which dispenser has ingredient2?
negative         Is ball1 at roomb?
affordance       What becomes true by: pick up ball1 at rooma with arm left?
task_reasoning   Must this condition of the goal be brought about, does it hold, or is it no condition?
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from agentexp.capabilities import Alignment, Question
from agentexp.core import CognitiveMap
from agentexp.envs.map_index import UNKNOWN, MapIndex, affordance, word
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.language import Atom
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.tracker import entries

LOCATED = {
    "gripper": ("at",),
    "blockworld": ("on", "on-table"),
    "tyreworld": ("in", "on", "tight", "loose"),
    "barman": ("ontable", "dispenses"),
}
YES_NO = ("yes", "no")
TODO, HOLDS, NO_PART = "it must be brought about", "it holds already", "it is no condition of the goal"
ACTIONS, CHOICES = 12, 4  # actions asked about; facts offered for one


def questions(ground: Ground, phrases: Phrases, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        ground: the problem.
        phrases: its domain's sentences.
        seed: of decoys, wrong choices and the order.
    """
    rng = random.Random(seed)
    found = [*_places(ground, phrases, rng), *_actions(ground, phrases, rng), *_errands(ground, phrases, rng)]
    rng.shuffle(found)
    return found


def _whereabouts(ground: Ground, phrases: Phrases) -> dict[str, tuple[str, Atom]]:
    """Thing -> (its place, the atom that says so)."""
    found: dict[str, tuple[str, Atom]] = {}
    for atom in ground.holding(ground.init):
        if atom[0] in LOCATED.get(phrases.kind, ()):
            entry = entries(phrases, atom)[0]
            thing, place = entry["thing"], entry["place"]
            found.setdefault(*((place, (thing, atom)) if entry["relation"] == "contains" else (thing, (place, atom))))
    return found


def _places(ground: Ground, phrases: Phrases, rng: random.Random) -> Iterator[Question]:
    where = _whereabouts(ground, phrases)
    names = tuple(sorted({place for place, _ in where.values()}))
    for thing, (place, atom) in where.items():
        seen = (re.escape(phrases.sentences([atom])),)
        ask = f"Which dispenser has {thing}?" if atom[0] == "dispenses" else f"Where is {thing}?"
        yield Question("object_location", ask, (place,), (), names, thing, seen, ("where", thing))
        for other in (place, *rng.sample([name for name in names if name != place], min(1, len(names) - 1))):
            answer = "yes" if other == place else "no"
            ask = f"Is {thing} at, in or on {other}?"
            yield Question("negative", ask, (answer,), YES_NO, (), thing, seen, ("at", thing, other))


def _actions(ground: Ground, phrases: Phrases, rng: random.Random) -> Iterator[Question]:
    ops = [op for op in ground.applicable(ground.init) if op.adds & ~ground.init]
    facts = sorted({phrases.fact(atom) for op in ground.operators for atom in ground.fluents(op.adds & ~ground.init)})
    for op in rng.sample(ops, min(ACTIONS, len(ops))):
        command = phrases.action(op.name)
        new = [phrases.fact(atom) for atom in ground.fluents(op.adds & ~ground.init)]
        wrong = [fact for fact in facts if fact not in new]
        right = rng.choice(new)
        choices = [right, *rng.sample(wrong, min(CHOICES - 1, len(wrong)))]
        rng.shuffle(choices)
        shown = re.escape(right[0].upper() + right[1:] + ".")
        evidence = (rf"^> {re.escape(command)}\n.*{shown}",)
        ask = f"What becomes true at the start by: {command}?"
        yield Question("affordance", ask, (right,), tuple(choices), (), command, evidence, ("effect", command, *choices))


def _errands(ground: Ground, phrases: Phrases, rng: random.Random) -> Iterator[Question]:
    goal = ground.problem.goal.positive
    now = ground.holding(ground.init)
    decoys = [atom for atom in now if atom not in goal]
    asked = [*goal, *rng.sample(decoys, min(2, len(decoys)))]
    task = ", ".join(sorted(map(phrases.fact, goal)))
    for atom in asked:
        fact = phrases.fact(atom)
        answer = NO_PART if atom not in goal else HOLDS if atom in now else TODO
        ask = f"The task is to satisfy: {task}. What about this: {fact}?"
        # The state is told at the start, so every exploration has seen whether it holds.
        seen = ("^What holds at the start:$",)
        yield Question("task_reasoning", ask, (answer,), (TODO, HOLDS, NO_PART), (), fact, seen, ("goal", fact))


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"."""
    index = MapIndex(known)
    kind, name, *rest = question.query
    if kind in ("where", "at"):
        places = index.where.get(name, [])
        if kind == "at":
            return UNKNOWN if not places else "yes" if rest[0] in places else "no"
        return next((place for place in places if place in question.names), UNKNOWN)
    if kind == "effect":
        done = [a.effect for a in index.affordances if a.works and a.action == name]
        facts = [fact for effect in done for fact in _effects(effect)]
        return next((fact for fact in rest if fact in facts), UNKNOWN)
    notes = list(index.texts())
    for answer, start in ((TODO, "does not hold at the start: "), (HOLDS, "holds at the start: ")):
        if f"{start}{name}." in notes:
            return answer
    return NO_PART if any("at the start: " in note for note in notes) else UNKNOWN


def _effects(effect: str) -> list[str]:
    true = next((part for part in effect.split("; ") if part.startswith("makes true: ")), "")
    return true.removeprefix("makes true: ").split(", ")


# --------------------------------------------------------------------------------------------------------------- alignment


def align(ground: Ground, phrases: Phrases, known: CognitiveMap) -> Alignment:
    """Judge a map; coverage counts the places that hold something at the start.

    Args:
        ground: the problem.
        phrases: its domain's sentences.
        known: the map.
    """
    right = {tuple(entry.values()) for atom in ground.holding(ground.init) for entry in entries(phrases, atom)}
    names = set(ground.problem.objects) | {thing for thing, _, _ in right}
    verdicts: dict[tuple[str, int], bool | None] = {}
    for i, entry in enumerate(known.spatial):
        thing, relation, place = (word(entry.get(part)) for part in ("thing", "relation", "place"))
        same = {(thing, relation, place), (place, "in", thing) if relation == "contains" else (place, "contains", thing)}
        verdicts["spatial", i] = bool(same & right) if thing in names else None
    for i, entry in enumerate(known.absent):
        what, place = word(entry.get("what")), word(entry.get("place"))
        inside = {thing for thing, relation, there in right if there == place and relation in ("in", "on", "at")}
        verdicts["absent", i] = (not inside if what in ("anything", "") else what not in inside) if place in names else None
    for i, entry in enumerate(known.affordances):
        said = affordance(entry)
        name = phrases.read_action(said.action)
        op = ground.by_name.get(name) if name else None
        if name is not None and said.works:
            made = {phrases.fact(atom) for atom in ground.fluents(op.adds)} if op else set()
            verdicts["affordances", i] = op is not None and made.issuperset(filter(None, _effects(said.effect)))
        else:
            verdicts["affordances", i] = None
    places = {place for place, _ in _whereabouts(ground, phrases).values()}
    index = MapIndex(known)
    return Alignment(
        right=sum(verdict is True for verdict in verdicts.values()),
        wrong=tuple(key for key, verdict in verdicts.items() if verdict is False),
        unjudged=sum(verdict is None for verdict in verdicts.values()),
        found=sum(index.seen_inside(place) for place in places),
        places=len(places),
    )
