"""How `EmbeddedModel` chooses among the actions that the world lists: by likelihood ("rank") or under a grammar ("grammar")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agentexp.core import Completion, Request, Usage
from agentexp.models import rank
from agentexp.models.llama_client import LlamaClient, completion_of, gather, sampling_fields

if TYPE_CHECKING:
    from agentexp.models.embedded import EmbeddedModel

_THOUGHT_TOKENS = 64


class Form(NamedTuple):
    """The parts of a reply: `lead`, a space, the action, `close`. A thought goes before, between `think` and `thought_end`."""

    lead: str
    close: str
    think: str
    thought_end: str


LABELS = Form("Action:", "", "Thought:", "\n")
_TAGS = Form("<answer>", " </answer>", "<think>", " </think> ")
FORMS = {"think_answer": _TAGS}  # all others are labels; the part "Map:" of map_think_act may be left out


async def choose(model: EmbeddedModel, client: LlamaClient, facts: Mapping[str, Any], request: Request) -> Completion:
    """Answer with one of the actions in `request.view.step.admissible`.

    Args:
        model: for its settings.
        client: connection to the engine.
        facts: what the engine says about the model ("n_vocab").
        request: the call; its `form` decides what the reply looks like.
    """
    form = FORMS.get(request.form, LABELS)
    actions = list(dict.fromkeys(action for action in request.view.step.admissible or () if action.strip()))
    prompt = await client.render(request.messages, model.template)
    before, thinking = "", None
    if model.rank_thought:
        before, thinking = await _think(model, client, prompt, form, request)
    if model.decode == "grammar":
        completion = await _by_grammar(client, prompt, before, form, actions, request)
    else:
        completion = await _by_rank(model, client, int(facts["n_vocab"]), prompt, before, form, actions)
    if thinking is not None:
        mine = completion.usage
        completion.usage = Usage(
            thinking.prompt_tokens,
            thinking.completion_tokens + mine.completion_tokens,
            thinking.cached_tokens,
            calls=1,
        )
    return completion


async def _think(model: EmbeddedModel, client: LlamaClient, prompt: str, form: Form, request: Request) -> tuple[str, Usage]:
    """A thought in the reply's form, and what it cost."""
    limit = min(_THOUGHT_TOKENS, request.sampling.max_tokens)
    sampling = replace(request.sampling, max_tokens=limit, stop=("\n", form.thought_end.strip() or "\n", form.lead))
    reply = await client.complete(prompt + form.think, **sampling_fields(sampling))
    thought = " ".join(reply.text.split())
    return f"{form.think} {thought}{form.thought_end}", completion_of(reply, with_tokens=False).usage


async def _by_rank(
    model: EmbeddedModel, client: LlamaClient, n_vocab: int, prompt: str, before: str, form: Form, actions: Sequence[str]
) -> Completion:
    end = await client.end_of_turn(model.template)
    heads = [f"{form.lead} {action}" for action in actions]
    stem, tokens = await continuations(client, prompt + before, form.lead, heads, form.close + end)
    cached: list[int] = []

    async def next_tokens(path: tuple[int, ...], n: int) -> rank.NextTokens:
        top = await client.next_tokens([*stem, *path], n)
        cached.append(top.cached_tokens)
        return top

    found = await rank.best(tokens, next_tokens, n_vocab, model.rank_normalise)
    info = {
        "candidates": len(actions),
        "evaluations": found.evaluations,
        "logprob": round(found.logprob, 4),
        "tokens": len(tokens[found.index]),
        "margin": None if found.margin is None else round(found.margin, 4),
    }
    return Completion(
        text=f"{before}{form.lead} {actions[found.index]}{form.close}",
        usage=Usage(len(stem), len(tokens[found.index]), min(cached[0], len(stem)), calls=1),
        info={"decode": "rank", "rank": info},
    )


async def continuations(
    client: LlamaClient, prompt: str, lead: str, heads: Sequence[str], end: str
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Tokens of `prompt + lead` and, for each of `heads`, its tokens after `lead` and the first token of `end`.

    That one token tells "go to desk 1" from "go to desk 11"; the rest of `end` says nothing about the action.

    Args:
        client: connection to the engine.
        prompt: everything before `lead`.
        lead: beginning of the reply ("Action:").
        heads: replies up to the end of the action; each begins with `lead`.
        end: what follows the action: a closing tag, the end of turn.

    Tokenisers may merge over the end of `lead`; then the common part is shorter and the continuations longer. Where a head is
    tokenised differently behind the prompt than alone (SentencePiece), everything is tokenised as a whole, which takes longer.
    """
    whole = await client.tokenize(prompt + lead, start=True)
    alone = await client.tokenize(lead)
    if whole[len(whole) - len(alone) :] == alone:
        open_ended, ended = await gather(client, heads), await gather(client, [head + end for head in heads])
        shared = _shared([alone, *ended])
        stem = whole[: len(whole) - len(alone) + shared]
    else:
        open_ended = [await client.tokenize(prompt + head, start=True) for head in heads]
        ended = [await client.tokenize(prompt + head + end, start=True) for head in heads]
        shared = _shared([whole, *ended])
        stem = whole[:shared]
    cut = [_shared(pair) + 1 for pair in zip(open_ended, ended, strict=True)]
    return list(stem), [tokens[shared:stop] for tokens, stop in zip(ended, cut, strict=True)]


def _shared(sequences: Sequence[tuple[int, ...]]) -> int:
    """Length of the common beginning."""
    low, high = min(sequences), max(sequences)
    length = min(len(low), len(high))
    return next((i for i in range(length) if low[i] != high[i]), length)


async def _by_grammar(
    client: LlamaClient, prompt: str, before: str, form: Form, actions: Sequence[str], request: Request
) -> Completion:
    grammar = f"root ::= {_literal(form.lead + ' ')} ( {' | '.join(map(_literal, actions))} )"
    if form.close:
        grammar += f" {_literal(form.close)}"
    # The grammar ends the reply; the limit must not. A token is at least one byte of text.
    longest = max(len(f"{form.lead} {action}{form.close}".encode()) for action in actions)
    sampling = replace(request.sampling, max_tokens=longest + 1, stop=())
    completion = completion_of(
        await client.complete(prompt + before, grammar=grammar, **sampling_fields(sampling)), with_tokens=False
    )
    completion.text = before + completion.text
    completion.info.update(decode="grammar", candidates=len(actions))
    return completion


def _literal(text: str) -> str:
    """`text` as a terminal of llama.cpp's grammar language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
