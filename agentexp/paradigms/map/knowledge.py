"""K_g, the environment-general rules of MAP's stage 1 (eq. 4): six lists, their reading, text form, and files.

As a document (`kg.json`, and what `GlobalExploration.finalise` returns)::

    {"schema": 1, "env": ..., "model": ..., "source": "llm" | "repaired" | "rules", "k_g": {six lists}, "provenance": {...}}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.paradigms.json_reply import BadReply

ROLES = ("focus_analyzer", "reflector", "distiller", "extractor")
"""Roles of MAP besides the actor; stage 1 is part of every run that needs K_g."""

TITLES = {
    "action_syntax": "How to write actions",
    "interaction_rules": "What actions need and do",
    "observation_conventions": "How to read observations",
    "error_patterns": "Errors and what to do",
    "environment_facts": "Facts",
    "exploration_advice": "Advice for exploring",
}
FILE_NAME = "kg.json"
KnowledgeLists = dict[str, list[Any]]


def read_knowledge(value: dict[str, Any], max_items: int) -> tuple[KnowledgeLists, bool]:
    """A distiller's JSON as six lists of at most `max_items`, and whether anything had to be left out or added.

    Raises:
        BadReply: none of the keys is there, a key does not hold a list, or nothing usable is in any of them.
    """
    if not any(key in value for key in TITLES):
        raise BadReply(f"it needs the keys {', '.join(TITLES)}.")
    lists: KnowledgeLists = {}
    mended = False
    for key in TITLES:
        entries = value.get(key)
        if entries is None:
            entries, mended = [], True
        if not isinstance(entries, list):
            raise BadReply(f'"{key}" must be a list.')
        read = [entry for entry in (_item(key, raw) for raw in entries) if entry is not None]
        mended = mended or len(read) < len(entries)
        lists[key] = [entry for i, entry in enumerate(read) if entry not in read[:i]][:max_items]
    if not any(lists.values()):
        raise BadReply("all of its lists are empty.")
    return lists, mended


def _item(key: str, raw: Any) -> Any:
    if key == "interaction_rules":
        return _interaction_rule(raw)
    if key == "error_patterns":
        if not isinstance(raw, dict) or not (message := _text(raw.get("message"))):
            return None
        return {"message": message, "meaning": _text(raw.get("meaning")), "recovery": _text(raw.get("recovery"))}
    return _text(raw) or None


def _interaction_rule(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not (action := _text(raw.get("action"))):
        return None
    needs = raw.get("requires") or []
    needs = [needs] if isinstance(needs, str) else needs
    if not isinstance(needs, list):
        return None
    return {"action": action, "requires": [t for t in map(_text, needs) if t], "effect": _text(raw.get("effect"))}


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def knowledge_text(k_g: Mapping[str, Sequence[Any]], per_list: int | None = None) -> str:
    """The six lists as bullet lists with titles; empty lists are left out. `per_list` keeps the first items only."""
    blocks = []
    for key, title in TITLES.items():
        items = [_line(key, item) for item in list(k_g.get(key, []))[:per_list]]
        if items:
            blocks.append("\n".join([f"{title}:", *(f"- {item}" for item in items)]))
    return "\n".join(blocks)


def _line(key: str, item: Any) -> str:
    if key == "interaction_rules":
        needs = f" needs {', '.join(item['requires'])}" if item["requires"] else ""
        return f"{item['action']}{needs}" + (f"; {item['effect']}" if item["effect"] else "")
    if key == "error_patterns":
        meaning = f": {item['meaning']}" if item["meaning"] else ""
        return f'"{item["message"]}"{meaning}' + (f"; {item['recovery']}" if item["recovery"] else "")
    return str(item)


def rules_from_facts(
    affordances: Iterable[Mapping[str, Any]], refusals: Iterable[tuple[str, str]], max_items: int
) -> KnowledgeLists:
    """K_g without a model, for when the distiller fails: only what was counted, nothing inferred.

    Args:
        affordances: entries as in `CognitiveMap.affordances`, of all attempts.
        refusals: (action, answer) of all refused actions.
        max_items: per list.
    """
    seen = [
        (_kind(a["action"]), bool(a["works"]), str(a.get("effect") or ""), str(a.get("requires") or "")) for a in affordances
    ]
    works = Counter(action for action, ok, _, _ in seen if ok)
    rules = []
    for action, _ in works.most_common(max_items):
        effects = Counter(effect for a, ok, effect, _ in seen if ok and a == action and effect)
        needs = Counter(need for a, _, _, need in seen if a == action and need)
        effect = effects.most_common(1)[0][0] if effects else "works"
        rules.append({"action": action, "requires": [need for need, _ in needs.most_common(2)], "effect": effect})
    answers: dict[str, Counter[str]] = {}
    for action, answer in refusals:
        message = next(iter(answer.strip().splitlines()), "")[:160]
        if message:
            answers.setdefault(message, Counter())[_kind(action)] += 1
    common = sorted(answers.items(), key=lambda pair: -pair[1].total())[:max_items]
    return {
        **{key: [] for key in TITLES},
        "interaction_rules": rules,
        "error_patterns": [
            {
                "message": message,
                "meaning": "answer to " + ", ".join(f'"{kind} ..."' for kind, _ in kinds.most_common(3)),
                "recovery": "",
            }
            for message, kinds in common
        ],
    }


def _kind(action: str) -> str:
    """The verb of an action: "take mug 1 from desk 1" -> "take"; "go to" and the like keep their particle."""
    words = action.split()
    return " ".join(words[: 2 if len(words) > 1 and words[1] in ("to", "up", "down", "in", "at", "on", "around") else 1])


def load_knowledge(path: str | Path) -> dict[str, Any]:
    """The K_g document in a `kg.json`, or in the run folder that holds one.

    Raises:
        UserError: there is no such file, or it does not hold K_g.
    """
    file = Path(path)
    file = file / FILE_NAME if file.is_dir() else file
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"paradigm.k_g={path}: there is no {file}. Give a {FILE_NAME}, the folder of a finished `agentexp explore` run, "
            "or nothing to have it built."
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"paradigm.k_g={path}: {file} is not a JSON file ({error}).") from error
    except OSError as error:
        raise UserError(f"paradigm.k_g={path}: {file} cannot be read: {error.strerror}.") from error
    return as_document(document, str(file))


def as_document(value: Any, where: str) -> dict[str, Any]:
    """`value` as a K_g document; bare six lists are wrapped. Raises `UserError` for anything else."""
    document = value if isinstance(value, dict) and "k_g" in value else {"k_g": value, "source": "file", "provenance": {}}
    lists = document["k_g"]
    try:
        if not isinstance(lists, dict) or not set(lists) <= set(TITLES):
            raise BadReply(f"it needs the keys {', '.join(TITLES)}.")
        cleaned, _ = read_knowledge(lists, max_items=10**6)
    except BadReply as problem:
        raise UserError(f"{where} does not hold environment knowledge: {problem}") from problem
    return {**document, "k_g": cleaned}
