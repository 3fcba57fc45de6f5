"""Exploring with a world's curious agent, and asking its map everything that was seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentexp.capabilities import Alignment, HasAlignment, HasQuestions, Question
from agentexp.core import CognitiveMap, Step, Task, View
from agentexp.metrics.map_qa import grade, observed, turn_text


def survey(env: Any, task: Task, steps: int, seed: int = 0) -> tuple[CognitiveMap, list[str]]:
    """The rules extractor's map, uncut, after so many steps with the goal in view, and the turns."""
    step = env.reset(task)
    goal, tracker, policy = step.goal, env.fact_tracker(), env.policy("curious", seed)
    tracker.observe(None, step)
    turns, history = [step.observation], list[tuple[str, Step]]()
    for left in range(steps, 0, -1):
        action = policy.act(View(task, goal, "mapping", step, history, left, None, {}, tracker, env, _no_oracle, {}))
        step = env.step(action)
        tracker.observe(action, step)
        history.append((action, step))
        turns.append(turn_text(action, step.observation))
    return tracker.map(goal), turns


def pool(env: Any, task: Task, seed: int = 0) -> list[Question]:
    """All questions of an instance."""
    env.reset(task)
    assert isinstance(env, HasQuestions)
    return env.questions(seed)


def wrong(env: Any, asked: list[Question], known: CognitiveMap) -> list[tuple[str, str, tuple[str, ...]]]:
    """(question, answer by look-up, right answers) of all that the rules reader gets wrong."""
    answers = [(question, env.look_up(question, known)) for question in asked]
    return [(q.text, answer, q.answers) for q, answer in answers if not grade(q, answer).correct]


def seen(env: Any, task: Task, steps: int) -> tuple[CognitiveMap, list[Question], Counter[str]]:
    """Map, all questions about what was seen, and how many there are per category."""
    known, turns = survey(env, task, steps)
    asked = [question for question in pool(env, task) if observed(question, turns)]
    return known, asked, Counter(question.category for question in asked)


def judged(env: Any, task: Task, known: CognitiveMap) -> Alignment:
    """The map beside the engine."""
    env.reset(task)
    assert isinstance(env, HasAlignment)
    return env.align(known)


async def _no_oracle() -> list[str]:
    raise AssertionError("an explorer has no expert")
