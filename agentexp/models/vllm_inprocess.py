"""`vllm.LLM` inside this process, behind an asynchronous front.

Calls that arrive while a batch is computed form the next batch. Prompts are handed over as tokens, so that one that is too long
fails alone: vLLM refuses the whole batch otherwise. With `tokens`, a prompt goes on from what was sampled in earlier turns.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentexp.core import Completion, Request, Sampling, Usage
from agentexp.errors import ContextOverflow, MissingDependency, ModelError
from agentexp.models.sampled_chats import SampledChats
from agentexp.training.core import ChatFormat, Sampled

_Job = tuple[list[int], Any, "asyncio.Future[Any]"]


class Engine:
    """One loaded model. Made by `load`; bound to the event loop that made it.

    Args:
        llm: `vllm.LLM`.
        make_params: `vllm.SamplingParams`.
        thread: where the engine is called.
        sampled: where sampled tokens are kept; None = they are not.
    """

    def __init__(
        self, llm: Any, make_params: Callable[..., Any], thread: ThreadPoolExecutor, sampled: SampledChats | None = None
    ) -> None:
        self._llm, self._make_params, self._thread, self._sampled = llm, make_params, thread, sampled
        self._tokenizer = llm.get_tokenizer()
        self._chats: ChatFormat | None = None
        if sampled is not None:
            from agentexp.training.chat import TemplateFormat

            self._chats = TemplateFormat(self._tokenizer)
        self._window = int(llm.llm_engine.model_config.max_model_len)
        self._waiting: list[_Job] = []
        self._worker: asyncio.Task[None] | None = None

    @classmethod
    async def load(cls, name: str, options: Mapping[str, Any], sampled: SampledChats | None = None) -> Engine:
        """Load the weights; takes minutes.

        Args:
            name: model name or folder.
            options: arguments of `vllm.LLM`.
            sampled: where sampled tokens are kept; None = they are not.

        Raises:
            MissingDependency: vLLM is not installed.
            UserError: with `sampled`, the model's chat template cannot be made append-only.
        """
        from agentexp.models.vllm import INSTALL

        try:
            import vllm
        except ImportError as error:
            raise MissingDependency(f"model=vllm model.mode=inprocess needs vLLM: {INSTALL}") from error
        # vLLM's engine must be called from one thread only.
        thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        loop = asyncio.get_running_loop()
        # vLLM's own default are log-probabilities from before the temperature.
        modes = {} if sampled is None else {"logprobs_mode": "processed_logprobs"}
        llm = await loop.run_in_executor(thread, lambda: vllm.LLM(model=name, **modes, **options))
        return cls(llm, vllm.SamplingParams, thread, sampled)

    async def chat(self, request: Request) -> Completion:
        """Answer; see `Model.chat`."""
        started = time.perf_counter()
        prompt = self._prompt(request)
        if len(prompt) >= self._window:
            raise ContextOverflow(f"The prompt of {len(prompt)} tokens does not fit into model.max_model_len={self._window}.")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((prompt, self._params(request.sampling), future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        output = await future
        reply = output.outputs[0]
        tokens = list(reply.token_ids)
        logprobs: list[float] | None = None
        if self._sampled is not None:
            logprobs = [float(of[token].logprob) for token, of in zip(tokens, reply.logprobs, strict=True)]
            ended = reply.finish_reason != "length"
            self._sampled.add(request, reply.text, Sampled(prompt, tokens, logprobs, ended, request.sampling.temperature))
        return Completion(
            text=reply.text,
            finish_reason=reply.finish_reason or "unknown",
            usage=Usage(len(prompt), len(tokens), int(getattr(output, "num_cached_tokens", 0) or 0), calls=1),
            seconds=time.perf_counter() - started,
            token_ids=tokens,
            logprobs=logprobs,
        )

    def _prompt(self, request: Request) -> list[int]:
        if self._sampled is not None and self._chats is not None:
            return self._sampled.prompt(request, self._chats)
        messages = [message._asdict() for message in request.messages]
        options = {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        return list(self._tokenizer.apply_chat_template(messages, **options))

    def _params(self, sampling: Sampling) -> Any:
        settings: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
        if sampling.top_p is not None:
            settings["top_p"] = sampling.top_p
        if sampling.stop:
            settings["stop"] = list(sampling.stop)
        if sampling.seed is not None:
            settings["seed"] = sampling.seed
        if self._sampled is not None:
            settings["logprobs"] = 0  # of the sampled token alone
        return self._make_params(**settings)

    async def _work(self) -> None:
        await asyncio.sleep(0)  # calls of the same moment belong into one batch
        while self._waiting:
            batch, self._waiting = self._waiting, []
            prompts = [{"prompt_token_ids": prompt} for prompt, _, _ in batch]
            params = [params for _, params, _ in batch]
            try:
                generate = functools.partial(self._llm.generate, prompts, params, use_tqdm=False)
                outputs = await asyncio.get_running_loop().run_in_executor(self._thread, generate)
            except Exception as error:  # noqa: BLE001 - a request loop: whatever the engine raises belongs to those who wait
                outputs = [ModelError(f"vLLM failed ({type(error).__name__}): {error}")] * len(batch)
            for (_, _, future), output in zip(batch, outputs, strict=True):
                if future.done():
                    continue  # the caller gave up
                if isinstance(output, ModelError):
                    future.set_exception(output)
                else:
                    future.set_result(output)

    async def close(self) -> None:
        """Fail what waits, finish the running batch, drop the model."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(ModelError("vLLM has been closed."))
        if self._worker is not None:
            await self._worker
        await asyncio.to_thread(self._thread.shutdown)
        self._llm = None
