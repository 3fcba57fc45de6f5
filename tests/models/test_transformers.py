"""The batched sampler against transformers' own `generate` and full forward passes, on a tiny random model in float32."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Completion, Message, Model, Request, Sampling
from agentexp.errors import ContextOverflow, ModelError, UserError
from agentexp.models.transformers import TransformersModel
from agentexp.training.core import RecordsTokens, Sampled, rows
from agentexp.training.tiny import make_tiny

torch = pytest.importorskip("torch", reason="needs agentexp[train]")

Make = Callable[..., Request]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(model: TransformersModel, use: Callable[[TransformersModel], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        await model.start()
        try:
            return await use(model)
        finally:
            await model.close()

    return asyncio.run(whole())


def tiny(folder: Path, **settings: Any) -> TransformersModel:
    return TransformersModel(
        **{"path": str(folder), "dtype": "float32", "device": "cpu", "n_threads": 1, "tokens": True, **settings}
    )


def plain(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)


def full_logprobs(model: Any, ids: Sequence[int], tokens: Sequence[int], temperature: float) -> list[float]:
    """Log-probabilities of `tokens` after `ids` by one forward pass over everything."""
    with torch.no_grad():
        logits = model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 : -1].float()
    found = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    return [float(found[i, token]) for i, token in enumerate(tokens)]


def assert_exact(model: Any, call: Sampled) -> None:
    expected = full_logprobs(model, call.prompt, call.tokens, call.temperature)
    assert list(call.logprobs) == pytest.approx(expected, abs=1e-4)


def texts(n: int) -> list[str]:
    return [f"{'You see a drawer. ' * (1 + 3 * i % 7)}Room {i}." for i in range(n)]


async def play(model: TransformersModel, make: Make, chat: str, text: str, turns: int, sampling: Sampling) -> list[Completion]:
    """A conversation whose observations differ in length."""
    messages, replies = [Message("user", text)], []
    for turn in range(turns):
        reply = await model.chat(make(messages=list(messages), chat=chat, sampling=sampling))
        replies.append(reply)
        messages += [Message("assistant", reply.text), Message("user", f"Observation {turn}. " * (1 + turn))]
    return replies


def test_greedy_is_transformers_own_generate(folder: Path, request_for: Make) -> None:
    """Also with batch mates of other lengths, and over several turns with what was kept of earlier ones."""
    own, _ = plain(folder)
    sampling = Sampling(max_tokens=20)

    async def use(model: TransformersModel) -> dict[str, list[Sampled]]:
        await asyncio.gather(*(play(model, request_for, f"t|{i}", text, 3, sampling) for i, text in enumerate(texts(5))))
        return model.take("t|")

    taken = run(tiny(folder, batch=3), use)
    assert sorted(taken) == [f"t|{i}" for i in range(5)] and all(len(calls) == 3 for calls in taken.values())
    for calls in taken.values():
        for call in calls:
            ids = torch.tensor([list(call.prompt)])
            made = own.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=20)
            assert made[0, len(call.prompt) :].tolist() == list(call.tokens)
            assert_exact(own, call)


@pytest.mark.parametrize("cache_mib", [0, 64])
def test_sampled_tokens_and_their_logprobs(folder: Path, request_for: Make, cache_mib: int) -> None:
    """R01: the rows of several turns hold exactly what was sampled; every log-probability is that of a full forward pass."""
    own, _ = plain(folder)
    sampling = Sampling(temperature=1.3, max_tokens=12, seed=5)

    async def use(model: TransformersModel) -> tuple[list[list[Completion]], dict[str, list[Sampled]]]:
        assert isinstance(model, RecordsTokens) and isinstance(model, Model)
        calls = (play(model, request_for, f"t|{i}", text, 4, sampling) for i, text in enumerate(texts(4)))
        return await asyncio.gather(*calls), model.take("t|")

    replies, taken = run(tiny(folder, batch=4, cache_mib=cache_mib), use)
    for i, said in enumerate(replies):
        calls = taken[f"t|{i}"]
        assert [list(call.tokens) for call in calls] == [reply.token_ids for reply in said]
        for before, after in itertools.pairwise(calls):
            assert list(after.prompt[: len(before.prompt) + len(before.tokens)]) == [*before.prompt, *before.tokens]
        for call, reply in zip(calls, said, strict=True):
            assert_exact(own, call)
            assert call.temperature == 1.3 and call.ended == (reply.finish_reason == "stop")
            assert reply.usage.prompt_tokens == len(call.prompt) and reply.usage.completion_tokens == len(call.tokens)
        (row,) = rows(calls, chat=i)
        sampled = [token for call in calls for token in call.tokens]
        assert [t for t, counts in zip(row.ids, row.trained, strict=True) if counts] == sampled
        if cache_mib:
            assert all(reply.usage.cached_tokens > 20 for reply in said[1:])


def test_same_seed_same_reply_whatever_is_in_the_batch(folder: Path, request_for: Make) -> None:
    sampling = Sampling(temperature=1.0, max_tokens=16, seed=11, top_p=0.95)

    async def alone(model: TransformersModel) -> Completion:
        return await model.chat(request_for("A room.", chat="a", sampling=sampling))

    async def crowded(model: TransformersModel) -> Completion:
        mates = [request_for(text, chat=f"m{i}", sampling=Sampling(1.0, 9 + i, seed=i)) for i, text in enumerate(texts(6))]
        wanted = request_for("A room.", chat="a", sampling=sampling)
        return (await asyncio.gather(*(model.chat(one) for one in [*mates[:3], wanted, *mates[3:]])))[3]

    one, two = run(tiny(folder), alone), run(tiny(folder, batch=4), crowded)
    assert one.token_ids == two.token_ids and one.logprobs == pytest.approx(two.logprobs, abs=1e-4)
    other = run(tiny(folder), lambda model: model.chat(request_for("A room.", sampling=Sampling(1.0, 16, seed=12))))
    assert other.token_ids != one.token_ids


def test_samples_follow_the_distribution(folder: Path, request_for: Make) -> None:
    """First tokens of 3000 seeds against the softmax at this temperature, in and outside the nucleus."""
    from agentexp.models.transformers_sampling import Choice, choose

    logits = torch.randn(1, 40, generator=torch.Generator().manual_seed(0)) * 2
    for top_p in (None, 0.7):
        import random

        choices = [Choice(0.8, top_p, random.Random(seed)) for seed in range(3000)]
        tokens, logprobs = choose(logits.expand(3000, -1), choices)
        p = torch.softmax(logits[0] / 0.8, dim=-1)
        assert logprobs[0] == pytest.approx(float(p[tokens[0]].log()), abs=1e-5)
        expected = p.clone()
        if top_p is not None:
            ordered, order = p.sort(descending=True)
            outside = order[(ordered.cumsum(0) - ordered) >= top_p]
            expected[outside] = 0
            expected /= expected.sum()
            assert not set(tokens) & set(outside.tolist())
        counts = torch.bincount(torch.tensor(tokens), minlength=40) / 3000
        assert float((counts - expected).abs().max()) < 0.03


def test_a_rewritten_history_is_a_fork(folder: Path, request_for: Make) -> None:
    own, _ = plain(folder)
    sampling = Sampling(temperature=1.0, max_tokens=8, seed=3)

    async def use(model: TransformersModel) -> list[Sampled]:
        first = [Message("user", "A room.")]
        reply = await model.chat(request_for(messages=first, chat="t|x", sampling=sampling))
        kept = [*first, Message("assistant", reply.text + " and more"), Message("user", "On.")]
        reply = await model.chat(request_for(messages=kept, chat="t|x", sampling=sampling))
        spaced = [*kept, Message("assistant", reply.text + "\n"), Message("user", "On.")]
        await model.chat(request_for(messages=spaced, chat="t|x", sampling=sampling))
        assert model.take("other|") == {}
        return model.take("t|")["t|x"]

    one, two, three = run(tiny(folder), use)
    assert list(two.prompt[: len(one.prompt) + len(one.tokens)]) != [*one.prompt, *one.tokens]
    assert list(three.prompt[: len(two.prompt) + len(two.tokens)]) == [*two.prompt, *two.tokens]  # white space is no change
    made = rows([one, two, three])
    assert len(made) == 2 and sum(row.n_trained for row in made) == sum(len(call.tokens) for call in (one, two, three))
    for call in (one, two, three):
        assert_exact(own, call)


def test_calls_with_a_common_beginning_compute_it_once(folder: Path, request_for: Make) -> None:
    own, _ = plain(folder)
    text = "You see a drawer and a desk. " * 10

    async def use(model: TransformersModel) -> list[Completion]:
        calls = [request_for(text, chat=f"t|{i}", sampling=Sampling(1.0, 6, seed=i)) for i in range(4)]
        replies = await asyncio.gather(*(model.chat(call) for call in calls))
        for kept in model.take("t|").values():
            assert_exact(own, kept[0])
        return replies

    replies = run(tiny(folder, batch=4), use)
    cached = sorted(reply.usage.cached_tokens for reply in replies)
    assert cached[0] == 0 and all(n == replies[0].usage.prompt_tokens - 1 for n in cached[1:])


def test_limits(folder: Path, request_for: Make) -> None:
    async def use(model: TransformersModel) -> None:
        with pytest.raises(ContextOverflow, match=r"model\.n_ctx"):
            await model.chat(request_for("x" * 200))
        reply = await model.chat(request_for("x" * 90, sampling=Sampling(1.5, 400, seed=1)))
        if reply.finish_reason == "length":
            assert reply.info["context_full"] and reply.usage.prompt_tokens + reply.usage.completion_tokens == 128
        free = await model.chat(request_for("x", sampling=Sampling(1.5, 40, seed=1)))
        word = free.text[4:7]
        cut = await model.chat(request_for("x", sampling=Sampling(1.5, 40, seed=1, stop=(word,))))
        assert cut.text == free.text[: free.text.index(word)] and cut.finish_reason == "stop"

    run(tiny(folder, n_ctx=128), use)
    with pytest.raises(UserError, match="more than the 4096 tokens"):
        asyncio.run(tiny(folder, n_ctx=5000).start())


def test_rank_scores_like_full_forward_passes(folder: Path, request_for: Make) -> None:
    own, tokenizer = plain(folder)
    actions = (*(f"go to desk {i}" for i in range(1, 13)), "look", "open drawer 1", "look")

    for form, lead, close in (("thought_action", "Action:", ""), ("think_answer", "<answer>", " </answer>")):

        async def use(model: TransformersModel, form: str = form) -> Completion:
            await play(model, request_for, "c", "Before.", 1, Sampling(max_tokens=4))
            return await model.chat(request_for("Where?", admissible=actions, form=form, chat="c"))

        reply = run(tiny(folder, decode="rank"), use)
        prompt = f"<|im_start|>user\nWhere?<|im_end|>\n<|im_start|>assistant\n{lead}"
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        scores = {}
        for action in dict.fromkeys(actions):
            head = tokenizer(f"{lead} {action}", add_special_tokens=False)["input_ids"]
            whole = tokenizer(f"{lead} {action}{close}<|im_end|>", add_special_tokens=False)["input_ids"]
            n = len(tokenizer(lead, add_special_tokens=False)["input_ids"])
            tokens = whole[n : len(head) + 1]
            assert whole[: len(head)] == head
            scores[action] = sum(full_logprobs(own, ids, tokens, 1.0))
        best = max(scores, key=lambda action: scores[action])
        assert reply.text == f"{lead} {best}{close}"
        assert reply.info["rank"]["logprob"] == pytest.approx(scores[best], abs=1e-3)
        assert reply.info["rank"]["candidates"] == 14 and reply.token_ids is None
        second = sorted(scores.values())[-2]
        assert reply.info["rank"]["margin"] == pytest.approx(scores[best] - second, abs=1e-3)


def test_many_candidates_are_scored_in_several_trees(folder: Path, request_for: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentexp.models import transformers_rank

    actions = tuple(f"take thing {i}" for i in range(40))
    ask = lambda model: model.chat(request_for("What?", admissible=actions))  # noqa: E731
    one = run(tiny(folder, decode="rank"), ask)
    monkeypatch.setattr(transformers_rank, "_MOST_NODES", 30)
    two = run(tiny(folder, decode="rank"), ask)
    assert one.text == two.text and one.info["rank"]["logprob"] == pytest.approx(two.info["rank"]["logprob"], abs=1e-3)


def test_weights_of_a_trainer(folder: Path, request_for: Make) -> None:
    own, tokenizer = plain(folder)
    own.train()
    sampling = Sampling(max_tokens=8)

    async def use(model: TransformersModel) -> None:
        first = await model.chat(request_for("A room.", sampling=sampling))
        with torch.no_grad():
            for parameter in own.parameters():
                parameter.mul_(1.5)
        model.update_weights()
        second = await model.chat(request_for("A room.", sampling=sampling))
        assert second.usage.cached_tokens == 0 and second.logprobs != first.logprobs
        call = model.take("")["c"][-1]
        assert_exact(own, call)
        other, _ = plain(folder)
        model.update_weights(other.state_dict())
        third = await model.chat(request_for("A room.", sampling=sampling))
        assert third.logprobs == pytest.approx(first.logprobs, abs=1e-5)
        with pytest.raises(ModelError, match="of another model"):
            model.update_weights({"nothing": torch.zeros(1)})
        assert model._engine is not None
        forward, gate = model._engine.forward, threading.Event()
        whole = forward.append

        def held(*args: Any) -> Any:
            gate.wait(60)
            return whole(*args)

        forward.append = held  # type: ignore[method-assign]
        running = asyncio.ensure_future(model.chat(request_for("x", sampling=sampling)))
        await asyncio.sleep(0.01)
        with pytest.raises(ModelError, match="in flight"):
            model.update_weights()
        gate.set()
        await running
        await model.close()
        own(torch.tensor([[1, 2]])).logits.sum().backward()  # nothing that sampling left behind hinders training
        with pytest.raises(UserError, match="another process"):
            pickle.dumps(model)

    run(TransformersModel.of(own, tokenizer, tokens=True, n_threads=1), use)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["mistral", "qwen2", "gemma3_text"])
def test_other_families(kind: str, attention: str, request_for: Make) -> None:
    """Sliding windows in all layers or in some, biases, and masks to be added, over turns with kept caches."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from agentexp.training.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    own_settings = {
        "mistral": {"sliding_window": 24},
        "qwen2": {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 24, "use_sliding_window": True},
        "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 24, "head_dim": 16},
    }
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = AutoConfig.for_model(
        kind, **sizes, **own_settings[kind], vocab_size=len(tokenizer), num_key_value_heads=2, initializer_range=0.2
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        own = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()

    async def use(model: TransformersModel) -> dict[str, list[Sampled]]:
        sampling = Sampling(1.0, 10, seed=1)
        await asyncio.gather(*(play(model, request_for, f"t|{i}", text, 3, sampling) for i, text in enumerate(texts(4))))
        actions = ("go to desk 1", "go to desk 11")
        ask = request_for("Where? " * 9, admissible=actions)
        model.decode = "rank"
        scored = (await model.chat(ask)).info["rank"]
        stem = tokenizer("<|im_start|>user\n" + "Where? " * 9 + "<|im_end|>\n<|im_start|>assistant\nAction:")["input_ids"]
        best = [" go to desk 1<|im_end|>", " go to desk 11<|im_end|>"]
        sums = [sum(full_logprobs(own, stem, tokenizer(text)["input_ids"], 1.0)) for text in best]
        assert scored["logprob"] == pytest.approx(max(sums), abs=1e-3)
        return model.take("t|")

    for calls in run(TransformersModel.of(own, tokenizer, tokens=True, batch=3, n_threads=1), use).values():
        for call in calls:
            assert_exact(own, call)


def test_a_call_that_is_given_up_leaves_the_others_alone(folder: Path, request_for: Make) -> None:
    async def use(model: TransformersModel) -> None:
        sampling = Sampling(1.0, 300, seed=4)
        lost = [
            asyncio.ensure_future(model.chat(request_for(t, chat=f"l{i}", sampling=sampling))) for i, t in enumerate(texts(4))
        ]
        kept = asyncio.ensure_future(model.chat(request_for("A room.", chat="k", sampling=Sampling(1.0, 40, seed=7))))
        await asyncio.sleep(0.05)
        for task in lost:
            task.cancel()
        reply = await kept
        given_up = asyncio.ensure_future(model.chat(request_for("B room.", chat="g", sampling=sampling)))
        await asyncio.sleep(0.05)
        given_up.cancel()
        await asyncio.sleep(0)
        model.update_weights()  # waits for the thread to let go of what was given up
        alone = await model.chat(request_for("A room.", chat="z", sampling=Sampling(1.0, 40, seed=7)))
        assert reply.token_ids == alone.token_ids

    run(tiny(folder, batch=3), use)


def test_failures_and_restarts(folder: Path, request_for: Make) -> None:
    async def use(model: TransformersModel) -> None:
        assert model._engine is not None
        forward = model._engine.forward
        whole, calls = forward.append, 0

        def broken(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise RuntimeError("out of memory")
            return whole(*args)

        forward.append = broken  # type: ignore[method-assign]
        with pytest.raises(ModelError, match="out of memory"):
            await model.chat(request_for("A room."))
        assert (await model.chat(request_for("A room."))).text

    model = tiny(folder)
    run(model, use)
    with pytest.raises(ModelError, match="not been started"):
        asyncio.run(model.chat(request_for("x")))
    assert run(pickle.loads(pickle.dumps(model)), lambda again: again.chat(request_for("A room."))).text
    assert model.versions()["torch"] and model.label == folder.name and model.concurrency == 8


@pytest.mark.parametrize("settings", [{"decode": "beam"}, {"batch": 0}, {"temperature": -1}, {"top_p": 0.0}, {"dtype": "int8"}])
def test_impossible_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"must be at least|is not possible"):
        TransformersModel(**settings)
