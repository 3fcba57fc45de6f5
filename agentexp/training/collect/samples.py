"""One episode as conversations to train on.

stages        the conversations that the paradigm itself builds: "explore" (mapping prompt and turns), "map" (extractor prompt
              and the map), "act" (acting prompt with the map in it, and turns). A model that is evaluated with the same
              settings meets exactly these prompts.
conversation  everything in one, as MAP's eq. 9 reads: exploration, "Write the map.", the map, the reset with the goal, acting.

The map is always the corrected one, written as the extractor's JSON, whatever the teacher wrote. A last prompt that nobody
answered is left out: nothing of it would be trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentexp.records import Record

Form = Literal["stages", "conversation"]
FORMS: tuple[Form, ...] = ("stages", "conversation")
STAGES = ("explore", "map", "act")
WHOLE = "all"  # the stage of a sample that holds all stages
WRITE_MAP = "Write the map."

Turns = list[dict[str, str]]


def map_samples(record: Record, form: Form) -> dict[str, Turns]:
    """Samples of a map-then-act episode by stage, in the order of the stages; a stage without conversation is left out.

    Args:
        record: of `CollectMaps`, with a map.
        form: see the module.
    """
    chats: Mapping[str, Sequence[Mapping[str, str]]] = record["chats"]
    found = {
        "explore": _answered(chats.get("mapping", ())),
        "map": _extraction(chats, written(record["notes"]["map"])),
        "act": _answered(chats.get("acting", ())),
    }
    if form == "stages":
        return {stage: turns for stage, turns in found.items() if turns}
    return {WHOLE: _joined(record, found["explore"], found["act"])}


def act_samples(record: Record) -> dict[str, Turns]:
    """The one sample of a ReAct episode."""
    turns = _answered(record["chats"].get("acting", ()))
    return {"act": turns} if turns else {}


def written(known: Mapping[str, Any]) -> str:
    """A map as the extractor is asked to write it."""
    return json.dumps(known, ensure_ascii=False)


def _extraction(chats: Mapping[str, Sequence[Mapping[str, str]]], text: str) -> Turns:
    """The extractor's prompt and the map. Of several tries the last prompt counts, without the complaints in between."""
    names = [name for name in chats if name.partition(".")[0] == "extractor"]
    if not names:
        return []
    prompt = [dict(message) for message in chats[names[-1]]]
    first = next((i for i, message in enumerate(prompt) if message["role"] == "assistant"), len(prompt))
    return [*prompt[:first], {"role": "assistant", "content": text}]


def _joined(record: Record, explore: Turns, act: Turns) -> Turns:
    """One conversation. The answer to the last exploring action stands before the request for the map."""
    mapped = [step for step in record["trajectory"] if step["phase"] == "mapping"]
    answered = sum(turn["role"] == "assistant" for turn in explore) == len(mapped)  # else the last reply said "finish"
    last = f"{mapped[-1]['observation']}\n\n" if mapped and answered else ""
    acting = [turn for turn in act if turn["role"] != "system"]
    return [
        *explore,
        {"role": "user", "content": f"{last}{WRITE_MAP}"},
        {"role": "assistant", "content": written(record["notes"]["map"])},
        *acting,
    ]


def _answered(messages: Sequence[Mapping[str, str]]) -> Turns:
    turns = [{"role": message["role"], "content": message["content"]} for message in messages]
    while turns and turns[-1]["role"] != "assistant":
        turns.pop()
    return turns
