"""Questions about a game as it is at reset (Map QA; MAP, appendix C.3), and the check of maps.

object_location  Where is the only shape 8 4x4?
affordance       What does ACTION1 do where it does something? (our own games, from their rules)
negative         Is there anything of colour 7 in the first frame?
task_reasoning   Which action can complete the first level? (our own games)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from agentexp.capabilities import Alignment, Question
from agentexp.core import CognitiveMap
from agentexp.envs.arc_agi3.actions import CLICK, name
from agentexp.envs.arc_agi3.checkpoints import of_puzzle
from agentexp.envs.arc_agi3.frames import HEX, Grid
from agentexp.envs.arc_agi3.games.logic import Puzzle
from agentexp.envs.arc_agi3.shapes import things
from agentexp.envs.map_index import UNKNOWN, MapIndex

YES_NO = ("yes", "no")
CHOICES = 4
COMPLETED = "level completed"


def questions(grid: Grid, puzzle: Puzzle | None, available: tuple[int, ...], seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        grid: the first frame.
        puzzle: the game's rules; None for a game that is not ours.
        available: numbers of its actions.
        seed: of wrong choices and order.
    """
    rng = random.Random(seed)
    found = [*_places(grid), *_colours(grid)]
    if puzzle is not None:
        found += [*_effects(puzzle, available, rng), *_winning(puzzle, available)]
    rng.shuffle(found)
    return found


def _places(grid: Grid) -> Iterator[Question]:
    counts = Counter(shape.kind for shape in things(grid))
    boxes = tuple(sorted({shape.box for shape in things(grid)}))
    for shape in things(grid):
        if counts[shape.kind] == 1:
            ask = f"In the first frame, where is the only shape of colour and extent {shape.kind}?"
            yield Question("object_location", ask, (shape.box,), names=boxes, entity=shape.kind, query=("box", shape.kind))


def _colours(grid: Grid) -> Iterator[Question]:
    shown = {HEX[colour] for colour in grid}
    for colour in HEX:
        ask = f"Is there anything of colour {colour} in the first frame?"
        yield Question(
            "negative", ask, ("yes" if colour in shown else "no",), YES_NO, entity=f"colour {colour}", query=("colour", colour)
        )


def _effects(puzzle: Puzzle, available: tuple[int, ...], rng: random.Random) -> Iterator[Question]:
    """What an action can do, for those whose effect is one of few."""
    known: dict[str, set[str]] = {}
    for checkpoint in of_puzzle(puzzle, "all"):
        context, _, effect = checkpoint.name.partition(": ")
        if checkpoint.kind == "affordance" and not effect.startswith(("any effect", COMPLETED, "game over")):
            known.setdefault(context, set()).add(effect)
    everything = sorted({effect for effects in known.values() for effect in effects})
    for number in available:
        context = name(number)
        right = sorted(known.get(context, ()))
        wrong = [effect for effect in everything if effect not in right]
        if number == CLICK or not right or not wrong:
            continue
        choices = [*right[:1], *rng.sample(wrong, min(CHOICES - 1, len(wrong)))]
        rng.shuffle(choices)
        evidence = (rf"(?i)^> {context}\n(?![^\n]*Nothing changed)",)
        ask = f"What does {context} do where it does something?"
        yield Question(
            "affordance", ask, tuple(right), tuple(choices), entity=context, evidence=evidence, query=("effect", context)
        )


def _winning(puzzle: Puzzle, available: tuple[int, ...]) -> Iterator[Question]:
    last = name(puzzle.solution(0)[-1].action)
    choices = tuple(name(number) for number in available)
    if len(choices) > 1:
        ask = "A shortest way through the first level ends with which action?"
        done = (r"^Level 1 is completed",)
        yield Question("task_reasoning", ask, (last,), choices, entity="level 1", evidence=done, query=("last", ""))


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"."""
    index, (kind, subject) = MapIndex(known), question.query
    if kind == "box":
        return next(iter(index.where.get(subject, ())), UNKNOWN)
    if kind == "colour":
        if any(what == f"colour {subject}" for what, _ in index.missing):
            return "no"
        return "yes" if index.missing else UNKNOWN
    if kind == "effect":
        effects = [a.effect for a in index.affordances if a.works and a.action == subject.lower() and not a.target]
        return next((choice for choice in question.choices if choice.lower() in effects), UNKNOWN)
    ends = [a.action for a in index.affordances if a.works and a.effect == COMPLETED]
    return next((choice for choice in question.choices if choice.lower() in ends), UNKNOWN)


def align(grid: Grid, known: CognitiveMap) -> Alignment:
    """Compare a map with the first frame: boxes of shapes and colours that are not there. What actions do is not judged."""
    boxes = {(shape.kind, shape.box) for shape in things(grid)}
    shown = {f"colour {HEX[colour]}" for colour in grid}
    right, unjudged, found = 0, len(known.affordances), set[tuple[str, str]]()
    wrong: list[tuple[str, int]] = []
    for i, entry in enumerate(known.spatial):
        pair = str(entry.get("thing")), str(entry.get("place"))
        if entry.get("relation") != "at":
            unjudged += 1
        elif pair in boxes:
            right += 1
            found.add(pair)
        else:
            wrong.append(("spatial", i))
    for i, entry in enumerate(known.absent):
        what = str(entry.get("what"))
        if not what.startswith("colour "):
            unjudged += 1
        elif what in shown:
            wrong.append(("absent", i))
        else:
            right += 1
    return Alignment(right, tuple(wrong), unjudged, len(found), len(boxes))
