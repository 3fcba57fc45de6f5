"""M_t between model, record and prompt: strict reading of the extractor's JSON, caps, ablations, and its text form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

from agentexp.core import CognitiveMap
from agentexp.paradigms.json_reply import BadReply

Drop = Literal["none", "spatial", "affordances"]

CAPS = {"spatial": 60, "absent": 30, "affordances": 40, "task_notes": 10, "unknown": 20}
RELATIONS = ("in", "on", "at", "connects", "contains", "is")


def read_map(value: dict[str, Any]) -> tuple[CognitiveMap, bool]:
    """A model's JSON as a map, and whether anything had to be left out or added.

    Entries of the wrong form are left out one by one; duplicates and what exceeds the caps go silently. A map that is empty
    as the model wrote it stays empty.

    Raises:
        BadReply: none of the five keys is there, a key does not hold a list, or most entries have the wrong form.
    """
    if not any(key in value for key in CAPS):
        raise BadReply(f"it needs the keys {', '.join(CAPS)}.")
    mended, total, bad = False, 0, 0
    lists: dict[str, list[Any]] = {}
    for key in CAPS:
        entries = value.get(key)
        if entries is None:
            entries, mended = [], True
        if not isinstance(entries, list):
            raise BadReply(f'"{key}" must be a list.')
        read = [_READERS[key](entry) for entry in entries]
        total, bad = total + len(read), bad + read.count(None)
        lists[key] = [entry for entry in read if entry is not None]
    if bad * 2 > total:
        raise BadReply(f"{bad} of its {total} entries do not have the form that was asked for.")
    return capped(CognitiveMap(**lists)), mended or bad > 0


def capped(cognitive_map: CognitiveMap) -> CognitiveMap:
    """Without duplicates, and each list cut from its end at its cap."""
    lists: dict[str, list[Any]] = {}
    for key, cap in CAPS.items():
        unique: list[Any] = []
        for entry in getattr(cognitive_map, key):
            if entry not in unique:
                unique.append(entry)
        lists[key] = unique[:cap]
    return CognitiveMap(**lists)


def from_record(saved: Mapping[str, Any]) -> CognitiveMap:
    """The inverse of `to_record`; unknown keys are refused with a `TypeError`."""
    return CognitiveMap(**saved)


def to_record(cognitive_map: CognitiveMap) -> dict[str, Any]:
    """As JSON values for the episode's notes."""
    return asdict(cognitive_map)


def dropped(cognitive_map: CognitiveMap, drop: Drop) -> CognitiveMap:
    """The map of an ablation (MAP, table 5): "spatial" takes the absent and unknown entries with it; task notes stay."""
    if drop == "spatial":
        return replace(cognitive_map, spatial=[], absent=[], unknown=[])
    if drop == "affordances":
        return replace(cognitive_map, affordances=[])
    return cognitive_map


def map_texts(cognitive_map: CognitiveMap) -> dict[str, str]:
    """The five lists as text, for the acting prompt and for map questions: key -> lines, empty for an empty list."""
    groups: dict[str, list[str]] = {}
    lines: list[str] = []
    for entry in cognitive_map.spatial:
        thing, relation, place = entry["thing"], entry["relation"], entry["place"]
        if relation in ("in", "on", "at"):
            groups.setdefault(f"{relation} {place}", []).append(thing)
        elif relation == "is":
            groups.setdefault(place, []).append(thing)
        else:
            lines.append(f"{thing} {'connects to' if relation == 'connects' else relation} {place}")
    absent: dict[str, list[str]] = {}
    for entry in cognitive_map.absent:
        absent.setdefault(entry["place"], []).append("empty" if entry["what"] == "anything" else f"no {entry['what']}")
    return {
        "spatial": _bullets([*(f"{place}: {', '.join(things)}" for place, things in groups.items()), *lines]),
        "absent": _bullets([f"{place}: {', '.join(what)}" for place, what in absent.items()]),
        "affordances": _bullets([_affordance(entry) for entry in cognitive_map.affordances]),
        "task_notes": _bullets(cognitive_map.task_notes),
        "unknown": ", ".join(cognitive_map.unknown),
    }


def _affordance(entry: Mapping[str, Any]) -> str:
    what = f"{entry['action']} {entry['target']}".strip()
    needs = f" (needs {entry['requires']})" if entry.get("requires") else ""
    effect = f": {entry['effect']}" if entry.get("effect") else ""
    return f"{what} {'works' if entry['works'] else 'does not work'}{needs}{effect}"


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _text(value: Any) -> str | None:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return " ".join(str(value).split()) or None
    return None


def _sentence(entry: Any) -> str | None:
    return _text(entry)


def _spatial(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    thing, relation, place = (_text(entry.get(key)) for key in ("thing", "relation", "place"))
    relation = (relation or "").lower().removesuffix(" to")
    return {"thing": thing, "relation": relation, "place": place} if thing and place and relation in RELATIONS else None


def _absent(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    place, what = _text(entry.get("place")), _text(entry.get("what"))
    return {"place": place, "what": what} if place and what else None


def _affordance_entry(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("works"), bool):
        return None
    action, target, effect, requires = (_text(entry.get(key)) for key in ("action", "target", "effect", "requires"))
    if not action:
        return None
    return {"action": action, "target": target or "", "works": entry["works"], "effect": effect or "", "requires": requires}


_READERS: dict[str, Callable[[Any], Any]] = {
    "spatial": _spatial,
    "absent": _absent,
    "affordances": _affordance_entry,
    "task_notes": _sentence,
    "unknown": _sentence,
}
