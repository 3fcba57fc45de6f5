"""The Knowledge Distiller: K_g = f_distill(tau_1 ... tau_N) (MAP, eq. 4), in batches where the context is short."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.core import Completion, Episode
from agentexp.errors import ContextOverflow
from agentexp.hooks import Context
from agentexp.paradigms.json_reply import BadReply, ask_json, token_limit
from agentexp.paradigms.map.knowledge import KnowledgeLists, read_knowledge, rules_from_facts
from agentexp.paradigms.record import trajectory_text
from agentexp.prompts import render
from agentexp.rollout import Chat

CLIP = 500  # characters of one observation; rules are general, long listings are not
SHORTEST = 400  # characters of a recording below which it is no use to shorten it further


@dataclass(slots=True)
class Distilled:
    """K_g with the story of its making.

    Attributes:
        k_g: the six lists.
        source: "llm", "repaired" (some JSON was mended or right at the second try) or "rules" (the model gave nothing usable).
        batches: model replies that went into it.
        problems: what went wrong on the way.
    """

    k_g: KnowledgeLists
    source: str
    batches: int
    problems: list[str]


async def distill(ctx: Context, episodes: Sequence[Episode], *, max_items: int, batch_chars: int, max_tokens: int) -> Distilled:
    """All attempts of all episodes as general rules.

    Each batch sees the rules so far. A batch that does not fit the model's context is halved; a batch whose reply stays
    unusable is left out and recorded.

    Args:
        ctx: the explore run.
        episodes: of `GlobalExploration`, with `notes["attempts"]`.
        max_items: per list.
        batch_chars: characters of recordings in one prompt.
        max_tokens: of the reply.
    """
    waiting = _batches([text for episode in episodes for text in attempt_texts(episode)], batch_chars)
    k_g: KnowledgeLists | None = None
    source, used, problems = "llm", 0, []

    async def ask(chat: Chat) -> Completion:
        tokens = token_limit(ctx.models, "distiller", max_tokens)
        return await ctx.ask(chat.messages, purpose="map_distiller", role="distiller", max_tokens=tokens)

    while waiting:
        batch = waiting.pop(0)
        prompt = render(
            "map/distiller",
            ctx.env.name,
            intro=ctx.env.card.intro,
            trajectories="\n\n".join(batch),
            previous=json.dumps(k_g, ensure_ascii=False) if k_g else "",
            max_items=max_items,
        )
        try:
            chat = Chat("distiller").user(prompt)
            k_g, how = await ask_json(ask, chat, lambda value: read_knowledge(value, max_items), ctx.parsing)
        except BadReply as problem:
            problems.append(f"unusable reply: {problem}")
        except ContextOverflow as overflow:
            smaller = _halved(batch)
            waiting[:0] = smaller
            if not smaller:
                problems.append(f"context: {overflow}")
        else:
            used += 1
            source = "repaired" if how == "repaired" else source
    if k_g is not None:
        return Distilled(k_g, source, used, problems)
    return Distilled(_from_facts(episodes, max_items), "rules", 0, problems)


def attempt_texts(episode: Episode) -> list[str]:
    """Each attempt of an exploration as text: task, outcome, steps."""
    texts = []
    for attempt in episode.notes.get("attempts", []):
        steps = episode.trajectory[attempt["first"] : attempt["first"] + attempt["steps"]]
        outcome = "solved" if attempt["success"] else f"not solved ({attempt['reason']})"
        body = trajectory_text(((step.action or "", step.observation) for step in steps), attempt["start"], CLIP)
        texts.append(f"Task: {episode.goal}\nOutcome: {outcome}\n{body}")
    return texts


def _batches(texts: list[str], size: int) -> list[list[str]]:
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        if not batches or len(text) > room:
            batches.append([])
            room = size
        batches[-1].append(text)
        room -= len(text)
    return batches


def _halved(batch: list[str]) -> list[list[str]]:
    """Two smaller batches; a single recording loses its second half; nothing once that is useless."""
    if len(batch) > 1:
        return [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
    return [[batch[0][: len(batch[0]) // 2]]] if len(batch[0]) > SHORTEST else []


def _from_facts(episodes: Sequence[Episode], max_items: int) -> KnowledgeLists:
    attempts: list[dict[str, Any]] = [attempt for episode in episodes for attempt in episode.notes.get("attempts", [])]
    affordances = [entry for attempt in attempts for entry in attempt["affordances"]]
    refusals = [(s.action, s.observation) for e in episodes for s in e.trajectory if s.error and s.action]
    return rules_from_facts(affordances, refusals, max_items)
