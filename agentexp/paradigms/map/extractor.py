"""The Key Information Extractor: M_t = f_map(tau_exp, u) (MAP, eq. 6)."""

from __future__ import annotations

from typing import Literal

from agentexp.core import CognitiveMap, Completion
from agentexp.errors import ContextOverflow
from agentexp.paradigms.json_reply import BadReply, ask_json, token_limit
from agentexp.paradigms.map.cognitive_map import capped, read_map
from agentexp.paradigms.record import trajectory_text
from agentexp.prompts import Style, render
from agentexp.rollout import Chat, Rollout

Extractor = Literal["llm", "rules"]
CLIP_WHEN_LONG = 300  # characters of an observation when the whole record does not fit the model's context


async def extract_map(
    ro: Rollout, start: str, *, extractor: Extractor, goal_visible: bool, reset: bool, k_g: str, style: Style, max_tokens: int
) -> CognitiveMap:
    """Turn the mapping phase that has just ended into a map, and note where the map came from.

    Notes: `map_source` is "llm", "repaired" (JSON mended, or right at the second try), "rules" (made from the facts, by
    setting or because the model failed) or "none" (the model failed and the world has no facts); `map_error` says why the
    model's own map was not used.

    Args:
        ro: in its mapping phase.
        start: the first observation of that phase.
        extractor: "rules" asks no model.
        goal_visible: the prompt names the task.
        reset: the actor will meet the initial state; otherwise the present one.
        k_g: general rules as text.
        style: of the prompt.
        max_tokens: of the reply; the model's own limit where that is higher (reasoning models).
    """
    if extractor == "rules":
        return _from_facts(ro, goal_visible)

    async def ask(chat: Chat) -> Completion:
        tokens = token_limit(ro.models, "extractor", max_tokens)
        return await ro.ask(chat, role="extractor", purpose="map_extractor", max_tokens=tokens)

    error = ""
    for clip in (None, CLIP_WHEN_LONG):
        prompt = render(
            "map/extractor",
            ro.task.env,
            style=style,
            task=ro.goal if goal_visible else "",
            goal_visible=goal_visible,
            reset=reset,
            k_g=k_g,
            trajectory=trajectory_text(((action, step.observation) for action, step in ro.history), start, clip),
        )
        try:
            cognitive_map, source = await ask_json(ask, ro.chat("extractor").user(prompt), read_map, ro.parsing)
        except BadReply as problem:
            error = f"unusable reply: {problem}"
            break
        except ContextOverflow as overflow:
            error = f"context: {overflow}"
            continue
        ro.note("map_source", source)
        return cognitive_map
    ro.note("map_error", error)
    return _from_facts(ro, goal_visible)


def _from_facts(ro: Rollout, goal_visible: bool) -> CognitiveMap:
    ro.note("map_source", "none" if ro.tracker is None else "rules")
    return CognitiveMap() if ro.tracker is None else capped(ro.tracker.map(ro.goal if goal_visible else ""))
