"""What a scripted model says where a prompt asks for something else than an action: maps, rules, reflections, advice.

Everything is read off the tracker, the history and the world's card; nothing is invented. The JSON has the keys that the
prompts of MAP ask for, so a scripted run goes through the same reading and checking as a model's reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from agentexp.core import CognitiveMap, Fact, View

_MAX = 8


def reply(purpose: str, view: View) -> str:
    """The reply to a prompt by its name."""
    writer = _WRITERS.get(purpose)
    if writer is None:
        return "I follow a fixed policy and have nothing to say about this."
    content = writer(view)
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def sentence(facts: Sequence[Fact]) -> str:
    """At most six facts on one line."""
    return "; ".join(f"{' '.join((fact.kind, *fact.subject))}: {fact.value or 'yes'}" for fact in facts[:6])


def _map(view: View) -> CognitiveMap:
    return view.tracker.map(view.goal) if view.tracker is not None else CognitiveMap()


def _forms(view: View) -> list[str]:
    return [form for form in re.split(r"\s*\|\s*", view.env.card.actions.strip()) if form]


def _refused(view: View) -> list[tuple[int, str, str]]:
    """(number, action, answer) of the refused actions of this phase."""
    return [(i, action, step.observation) for i, (action, step) in enumerate(view.history, 1) if step.error]


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def _kind(name: str) -> str:
    """A thing without its number: "mug 1" is a mug."""
    return re.sub(r"\s+\d+\b", "", name)


def _extractor(view: View) -> dict[str, Any]:
    return asdict(_map(view))


def _focus_analyzer(view: View) -> dict[str, Any]:
    points = [
        {
            "question": f'When does "{form}" work, and what does the answer tell?',
            "how_to_test": f'Try "{form}" on the first thing that fits: once where it should work once where not.',
            "why": "A refused action costs a step.",
        }
        for form in _forms(view)
    ]
    return {"focus_points": points[:_MAX]}


def _reflector(view: View) -> dict[str, Any]:
    refused = _refused(view)
    if not refused:
        visited = len({step.observation for _, step in view.history})
        return {
            "cause": f"No action was refused, but {len(view.history)} actions led to only {visited} different answers.",
            "rule": "Actions that work do not by themselves bring the goal closer.",
            "next_time": "Look first where nothing was seen yet.",
        }
    number, action, answer = refused[0]
    return {
        "cause": f'Step {number}, "{action}", was refused: {answer}',
        "rule": f'"{_kind(action)}" does not work in every state.',
        "next_time": f'Do not send "{action}" again before the state has changed; try another action.',
    }


def _distiller(view: View) -> dict[str, Any]:
    card, found = view.env.card, _map(view)
    rules: dict[str, dict[str, Any]] = {}
    for entry in found.affordances:
        rule = rules.setdefault(entry["action"], {"action": entry["action"], "requires": [], "effect": ""})
        if entry["requires"] and entry["requires"] not in rule["requires"]:
            rule["requires"].append(entry["requires"])
        if entry["works"] and not rule["effect"]:
            rule["effect"] = _kind(str(entry["effect"]).replace(entry["target"], "{thing}"))
    errors = {
        _kind(answer): {
            "message": _kind(answer),
            "meaning": f'"{_kind(action)}" was refused.',
            "recovery": "Try another action.",
        }
        for _, action, answer in _refused(view)
    }
    relations = {entry["relation"] for entry in found.spatial}
    return {
        "action_syntax": _forms(view)[:_MAX],
        "interaction_rules": list(rules.values())[:_MAX],
        "observation_conventions": _sentences(card.notes)[:_MAX],
        "error_patterns": list(errors.values())[:_MAX],
        "environment_facts": _sentences(card.intro)[:_MAX],
        "exploration_advice": [f'Note which thing stands in the relation "{name}" to which.' for name in sorted(relations)][
            :_MAX
        ],
    }


def _summary(view: View) -> str:
    found = _map(view)
    works = [entry for entry in found.affordances if entry["works"]]
    fails = [entry for entry in found.affordances if not entry["works"]]
    needs = [entry for entry in found.affordances if entry["requires"]]
    parts = {
        "Layout": [f"{e['thing']} {e['relation']} {e['place']}" for e in found.spatial]
        + [f"no {e['what']} in {e['place']}".replace("no anything", "nothing") for e in found.absent],
        "Affordances": [f"{e['action']} {e['target']}: {e['effect'] or 'works'}" for e in works],
        "Preconditions": [f"{e['action']} {e['target']} needs {e['requires']}" for e in needs],
        "Constraints and failures": [f"{e['action']} {e['target']}: {e['effect'] or 'refused'}" for e in fails],
        "Not explored": found.unknown,
    }
    return "\n".join(f"{title} - {'; '.join(items[:40]) or 'none seen'}" for title, items in parts.items())


def _thinker(view: View) -> str:
    refused = _refused(view)[-3:]
    rules = [f'"{action}" was refused ({answer}), so something it needs is missing.' for _, action, answer in refused]
    listed = [action for action in view.step.admissible or () if action not in {action for action, _ in view.history}]
    advice = listed[:3] or _forms(view)[:3]
    text = "\n".join(rules or ["Every reply fits what one would expect."])
    return f"<deepthink>\n{text}\nNext:\n" + "\n".join(advice) + "\n</deepthink>"


def _reflection(view: View) -> str:
    parts = _reflector(view)
    return f"{parts['cause']} {parts['next_time']}"


_WRITERS: dict[str, Callable[[View], dict[str, Any] | str]] = {
    "map_extractor": _extractor,
    "map_focus_analyzer": _focus_analyzer,
    "map_reflector": _reflector,
    "map_distiller": _distiller,
    "map_qa": lambda view: "unknown",
    "eta_summarize": _summary,
    "ttx_thinker": _thinker,
    "reflexion_reflect": _reflection,
}
