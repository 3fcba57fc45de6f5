"""Rollouts by vLLM, through TRL's helpers: an engine beside the trainer on the same GPUs, or a server that is sent the weights.

    colocate  every process has a `vllm.LLM` of its own; weights are copied within the GPU
    server    one `vllm serve` elsewhere (VLLM_SERVER_DEV_MODE=1, --logprobs-mode processed_logprobs,
              --weight-transfer-config '{"backend": "nccl"}'); process 0 sends the weights, every process asks it for replies

What was tested: the sampler, the calls to TRL's helpers and what is done with their answers, with stand-ins for both packages'
interfaces (TRL 1.16, which takes vLLM 0.22 to 0.31). The real engine needs a GPU and was not run.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agentexp.core import Completion, Message, Request, Sampling, Usage
from agentexp.errors import ContextOverflow, MissingDependency, ModelError, UserError
from agentexp.training.core import ChatFormat, Sampled
from agentexp.training.grpo.rollouts import Sampler

if TYPE_CHECKING:
    from agentexp.training.grpo.learner import Learner


class Reply(NamedTuple):
    """What the engine sampled for one prompt: token ids and their log-probabilities after temperature."""

    tokens: list[int]
    logprobs: list[float]


Generate = Callable[[list[list[int]], Sampling], list[Reply]]


class TextFormat(ChatFormat, Protocol):
    """A chat format that can also read: `agentexp.training.chat.TemplateFormat`."""

    def text(self, tokens: Sequence[int]) -> str:
        """A reply's text, without the end-of-turn token."""
        ...


class _Waiting(NamedTuple):
    prompt: list[int]
    sampling: Sampling
    future: asyncio.Future[Reply]


class _Said(NamedTuple):
    messages: list[Message]
    text: str
    sampled: Sampled


class TokenSampler:
    """A model backend over a function from prompts to sampled tokens. Calls of the same moment become one batch.

    Args:
        chats: how conversations become tokens.
        generate: the engine; called in a thread of its own, one batch at a time.
        sampling: default settings.
        window: most tokens of a conversation.
        ends: token ids that end a reply.
        label: name of the model.
    """

    def __init__(
        self, chats: TextFormat, generate: Generate, sampling: Sampling, window: int, ends: Sequence[int], label: str
    ) -> None:
        self.label, self.sampling = label, sampling
        self._chats, self._generate, self._window, self._ends = chats, generate, window, frozenset(ends)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._waiting: list[_Waiting] = []
        self._worker: asyncio.Task[None] | None = None
        self._said: dict[str, _Said] = {}
        self._taken: dict[str, list[Sampled]] = {}

    async def start(self) -> None:
        """Nothing to load: the engine is there."""

    async def close(self) -> None:
        """Finish the running batch and end the thread."""
        if self._worker is not None:
            await self._worker
        await asyncio.to_thread(self._thread.shutdown)

    def versions(self) -> dict[str, str]:
        """Versions of vllm and trl."""
        from importlib.metadata import version

        return {name: version(name) for name in ("vllm", "trl")}

    async def chat(self, request: Request) -> Completion:
        """Answer; see `Model.chat`. Raises `ContextOverflow` and `ModelError`."""
        started = time.perf_counter()
        prompt = self._prompt(request)
        room = self._window - len(prompt)
        if room < 1:
            raise ContextOverflow(f"The prompt of {len(prompt)} tokens does not fit into trainer.max_rollout_tokens.")
        sampling = request.sampling
        limit = min(sampling.max_tokens, room)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        settings = Sampling(sampling.temperature, sampling.max_tokens)  # one for a whole batch, so without the call's own seed
        self._waiting.append(_Waiting(prompt, settings, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        reply = await future
        tokens, logprobs = reply.tokens[:limit], reply.logprobs[:limit]
        ended = bool(tokens) and tokens[-1] in self._ends
        sampled = Sampled(prompt, tokens, logprobs, ended, sampling.temperature)
        text = self._chats.text(tokens)
        self._said[request.chat] = _Said(list(request.messages), text, sampled)
        self._taken.setdefault(request.chat, []).append(sampled)
        return Completion(
            text=text,
            finish_reason="stop" if ended else "length",
            usage=Usage(len(prompt), len(tokens), calls=1),
            seconds=time.perf_counter() - started,
            token_ids=tokens,
            logprobs=logprobs,
        )

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        """See `RecordsTokens`."""
        names = [chat for chat in self._taken if chat.startswith(prefix)]
        for chat in names:
            self._said.pop(chat, None)
        return {chat: self._taken.pop(chat) for chat in names}

    def _prompt(self, request: Request) -> list[int]:
        """What was sampled before stays as it was sampled, as long as the conversation keeps its text."""
        said, messages = self._said.get(request.chat), list(request.messages)
        if said is not None and len(said.messages) < len(messages) and messages[: len(said.messages)] == said.messages:
            kept = messages[len(said.messages)]
            if kept.role == "assistant" and kept.content.strip() == said.text.strip():
                return self._chats.extend(said.sampled, messages[len(said.messages) + 1 :])
        return self._chats.prompt(messages)

    async def _work(self) -> None:
        await asyncio.sleep(0)  # calls of the same moment belong into one batch
        while self._waiting:
            sampling = self._waiting[0].sampling
            batch = [entry for entry in self._waiting if entry.sampling == sampling]
            self._waiting = [entry for entry in self._waiting if entry.sampling != sampling]
            call = functools.partial(self._generate, [entry.prompt for entry in batch], sampling)
            try:
                replies = await asyncio.get_running_loop().run_in_executor(self._thread, call)
            except Exception as error:  # noqa: BLE001 - a request loop: whatever the engine raises belongs to those who wait
                failed = ModelError(f"vLLM failed ({type(error).__name__}): {error}")
                for entry in batch:
                    if not entry.future.done():
                        entry.future.set_exception(failed)
                continue
            for entry, reply in zip(batch, replies, strict=True):
                if not entry.future.done():
                    entry.future.set_result(reply)


class VllmEngine:
    """An open vLLM as rollout engine.

    Args:
        generation: `trl.generation.vllm_generation.VLLMGeneration`, which also sends the weights.
        client: of the server, a `VLLMClient` per process; None where the engine is in this process.
        make: builds the sampler around `generate`.
    """

    def __init__(self, generation: Any, client: Any, make: Callable[[Generate], TokenSampler]) -> None:
        self._generation, self._client = generation, client
        self._made = make(self.generate)
        self.sampler: Sampler = self._made

    async def start(self) -> None:
        """See `Engine`."""

    def sync(self) -> None:
        """Send the weights; every process calls it."""
        self._generation.sync_weights()

    async def close(self) -> None:
        """See `Engine`."""
        await self._made.close()

    def generate(self, prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        """One batch."""
        if self._client is not None:
            found = self._client.generate(
                prompts=prompts, n=1, temperature=sampling.temperature, max_tokens=sampling.max_tokens, logprobs=0
            )
            tokens, logprobs = found["completion_ids"], found["logprobs"]
        else:
            self._generation.temperature = sampling.temperature
            self._generation.max_completion_length = sampling.max_tokens
            _, tokens, logprobs, _ = self._generation.generate(prompts=prompts, images=None, num_generations=1)
        return [Reply(list(ids), [_number(entry) for entry in values]) for ids, values in zip(tokens, logprobs, strict=True)]


def open_vllm(
    learner: Learner,
    tokenizer: Any,
    sampling: Sampling,
    template: dict[str, Any],
    window: int,
    label: str,
    *,
    mode: Literal["colocate", "server"] = "colocate",
    gpu_memory: float = 0.3,
    server: str = "http://localhost:8000",
    server_timeout: float = 240.0,
    group_port: int = 51216,
) -> VllmEngine:
    """Open vLLM for rollouts.

    Args:
        learner: holds the policy and the accelerator.
        tokenizer: of the policy.
        sampling: of rollouts.
        template: variables for the chat template.
        window: most tokens of a conversation.
        label: name of the model.
        mode: see the module.
        gpu_memory: with "colocate", share of the GPU that vLLM may take.
        server: address of `vllm serve`.
        server_timeout: seconds to wait for it.
        group_port: port over which the weights are sent.

    Raises:
        MissingDependency: vllm or trl is not installed.
        UserError: unknown mode.
    """
    for name in ("vllm", "trl"):
        if importlib.util.find_spec(name) is None:
            raise MissingDependency(
                f"trainer.rollout.engine=vllm needs the package {name} (Linux with a GPU): pip install 'agentexp[train,vllm]', "
                "or set trainer.rollout.engine=transformers."
            )
    if mode not in ("colocate", "server"):
        raise UserError(f"trainer.rollout.vllm.mode={mode} is not possible; choose colocate or server.")
    from trl.generation.vllm_client import VLLMClient
    from trl.generation.vllm_generation import VLLMGeneration

    from agentexp.training.chat import TemplateFormat

    generation = VLLMGeneration(
        model=learner.policy,
        accelerator=learner.accelerator,
        processing_class=tokenizer,
        mode=mode,
        server_base_url=server,
        server_timeout=server_timeout,
        group_port=group_port,
        gpu_memory_utilization=gpu_memory,
        max_model_length=window,
        enable_sleep_mode=False,  # it would sleep, and need the weights again, after every turn of the episodes
        temperature=sampling.temperature,
        max_completion_length=sampling.max_tokens,
        logprobs=0,
    )
    client = VLLMClient(base_url=server, connection_timeout=server_timeout) if mode == "server" else None
    chats = TemplateFormat(tokenizer, template)
    ends = [end for end in (chats.end_of_turn, tokenizer.eos_token_id) if end is not None]
    return VllmEngine(generation, client, lambda generate: TokenSampler(chats, generate, sampling, window, ends, label))


def _number(entry: Any) -> float:
    """The sampled token's log-probability: the helpers return a list per token, the sampled one alone where `logprobs` is 0."""
    value = entry[0] if isinstance(entry, (list, tuple)) else entry
    return float("nan") if value is None else float(value)
