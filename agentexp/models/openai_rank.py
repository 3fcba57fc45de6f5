"""`model.decode=rank`: take the admissible action whose reply the model finds most likely, by vLLM's `prompt_logprobs`.

Score of a candidate = mean log-probability per token of the assistant message that states it, its closing tokens included:
without them "go to desk 1" would be a part of "go to desk 10". A call with the bare prompt counts the tokens before the
message.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentexp.core import Completion, Message, Request, Usage
from agentexp.errors import FatalError, ModelError, UserError
from agentexp.models import openai_wire as wire

if TYPE_CHECKING:
    from agentexp.models.openai_api import OpenAIModel

# A world that lists more than this (ScienceWorld lists tens of thousands) would need as many model calls per turn.
MAX_CANDIDATES = 500

# The assistant message is closed and nothing follows it, so that its end is scored too.
_FIELDS = {"prompt_logprobs": 0, "add_generation_prompt": False}

_NEEDS = "model.decode=rank needs a server that returns `prompt_logprobs` for chats, such as vLLM; set model.decode=generate"


def reply_for(action: str, form: str) -> str:
    """The shortest reply of the given form that states `action`."""
    return f"<answer> {action} </answer>" if form == "think_answer" else f"Action: {action}"


async def rank(model: OpenAIModel, request: Request) -> Completion:
    """Score every admissible action and answer with the best one; ties go to the one that the world lists first.

    Returns:
        The reply that states the action. `info["scores"]` holds the five best with their scores; usage adds up all calls.

    Raises:
        FatalError: the server ignores `prompt_logprobs`, or the world lists more than `MAX_CANDIDATES` actions.
    """
    actions = request.view.step.admissible or ()
    if len(actions) > MAX_CANDIDATES:
        raise FatalError(f"model.decode=rank takes at most {MAX_CANDIDATES} actions and the world lists {len(actions)}.")
    request = replace(
        request, sampling=replace(request.sampling, temperature=0.0, seed=None, stop=(), top_p=None, max_tokens=1)
    )
    bare = await model.complete(model.body(request.sampling), request.messages, request)
    start = bare.usage.prompt_tokens
    if not start:
        raise FatalError(f"{_NEEDS}. {model.base_url} does not even count the tokens of a prompt.")
    tasks = [asyncio.create_task(_score(model, request, reply_for(action, request.form), start)) for action in actions]
    try:
        scored = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    order = sorted(range(len(actions)), key=lambda i: -scored[i][0])
    replies = [bare, *(reply for _, reply in scored)]
    best = actions[order[0]]
    return Completion(
        text=reply_for(best, request.form),
        usage=sum((reply.usage for reply in replies), Usage()),
        seconds=bare.seconds + max(reply.seconds for _, reply in scored),
        retries=sum(reply.retries for reply in replies),
        cached=all(reply.cached for reply in replies),
        info={"decode": "rank", "scores": [[actions[i], round(scored[i][0], 4)] for i in order[:5]]},
    )


async def check(model: OpenAIModel) -> None:
    """Raise `UserError` unless the server returns the log-probabilities of a prompt."""
    messages = [Message("user", "Say yes."), Message("assistant", "Yes.")]
    session = model.session()
    body = {**model.body(replace(model.sampling, max_tokens=1)), **_FIELDS}

    async def attempt() -> dict[str, Any]:
        return await session.post(wire.encode(body, messages), session.endpoint)

    try:
        data, _ = await model.retry.run(attempt, session.limiter)
    except (ModelError, FatalError) as error:
        raise UserError(f"{_NEEDS}. {error}") from error
    if not isinstance(data.get("prompt_logprobs"), list):
        raise UserError(f"{_NEEDS}. {model.base_url} ignores the field.")


async def _score(model: OpenAIModel, request: Request, reply: str, start: int) -> tuple[float, Completion]:
    messages = [*request.messages, Message("assistant", reply)]
    completion = await model.complete({**model.body(request.sampling), **_FIELDS}, messages, request)
    logprobs = completion.info.pop("prompt_logprobs", None)
    if not logprobs:
        raise FatalError(f"{_NEEDS}. {model.base_url} ignores the field.")
    tail = logprobs[start:]
    if not tail:
        raise ModelError("The server returned no log-probability for the reply's own tokens.")
    return sum(tail) / len(tail), completion
