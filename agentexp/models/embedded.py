"""A small language model inside agentexp: no key, no network, no GPU.

The weights (by default SmolLM2-135M-Instruct, see `weights`) run in llama.cpp's server, a child process (see `llama_server`).
Such a model seldom writes an action that parses, so by default it chooses among the world's actions, by likelihood.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from agentexp.core import Completion, Request, Sampling
from agentexp.errors import MissingDependency, ModelError, UserError
from agentexp.models import weights
from agentexp.models.cores import free_cores
from agentexp.models.llama_client import EngineLost, LlamaClient, completion_of, sampling_fields
from agentexp.models.llama_server import READY, ServerSettings
from agentexp.models.server_process import ServerProcess

Decode = Literal["rank", "grammar", "generate"]
_WANTS_JSON = re.compile(r"\bJSON\b")
_START_SECONDS = 120.0


class EmbeddedModel:
    """A GGUF model in a child process of its own.

    Ranking and greedy decoding repeat exactly for the same sequence of calls, whatever the number of threads. The engine
    computes one token at a time with another routine than several at once, so log-probabilities also depend a little (about 0.1
    for unlikely tokens, 0.001 for likely ones) on what was in the cache and on calls computed together: with `n_parallel` above
    1, two actions that are nearly as likely may change places.

    Args:
        path: GGUF file; None = the packaged default weights.
        decode: how replies that should be an action are made. "rank": the admissible action whose reply is the likeliest;
            "grammar": the model writes, restricted to admissible actions (faster, greedy token by token); "generate": it writes
            freely. Where the world lists no actions, and for all other prompts, it writes freely.
        rank_normalise: score of a reply: "none" = sum of its tokens' log-probabilities, "tokens" = their mean.
        rank_thought: with "rank" and "grammar", let the model write a thought before the action is chosen.
        json_grammar: restrict replies to prompts that ask for JSON to valid JSON.
        temperature: 0 = greedy. Without effect on "rank", which takes the maximum.
        max_tokens: most tokens of a reply.
        top_p: nucleus sampling; None = off.
        stop: strings that end a reply.
        n_ctx: context of one conversation in tokens.
        n_parallel: conversations that are computed at once.
        n_threads: CPU threads; None = 2, or 1 where fewer cores are free. More than the free cores make it much slower.
        cache_mib: memory for the computed prefixes of conversations that wait for their next turn, in MiB.
        gpu_layers: layers on a GPU, -1 = as many as fit; without effect in a CPU build of the engine.
        template: variables for the model's chat template, for example {"enable_thinking": False}.
        tokens: record token ids and log-probabilities of replies that the model writes.
        request_timeout: seconds of one call to the engine, after which it is started again.
        label: short name for folders and tables; None = name of the file.

    Raises:
        UserError: a setting has an impossible value.
    """

    def __init__(
        self,
        *,
        path: str | None = None,
        decode: Decode = "rank",
        rank_normalise: Literal["none", "tokens"] = "none",
        rank_thought: bool = False,
        json_grammar: bool = True,
        temperature: float = 0.0,
        max_tokens: int = 256,
        top_p: float | None = None,
        stop: list[str] | None = None,
        n_ctx: int = 8192,
        n_parallel: int = 1,
        n_threads: int | None = None,
        cache_mib: int = 1024,
        gpu_layers: int = -1,
        template: dict[str, Any] | None = None,
        tokens: bool = False,
        request_timeout: float = 600.0,
        label: str | None = None,
    ) -> None:
        self.path, self.decode = path, decode
        self.rank_normalise, self.rank_thought, self.json_grammar = rank_normalise, rank_thought, json_grammar
        self.sampling = Sampling(float(temperature), max_tokens, top_p, tuple(stop or ()))
        self.n_ctx, self.n_parallel, self.n_threads = n_ctx, n_parallel, n_threads
        self.cache_mib, self.gpu_layers, self.request_timeout = cache_mib, gpu_layers, request_timeout
        self.template, self.tokens = dict(template or {}), tokens
        name = Path(path).name.removesuffix(".gguf") if path else weights.NAME
        self.label = label or (name if decode == "generate" else f"{name}-{decode}")
        self._file: Path | None = None
        self._engine: _Engine | None = None
        self._check_settings()

    def _check_settings(self) -> None:
        for setting, value, choices in (
            ("decode", self.decode, ("rank", "grammar", "generate")),
            ("rank_normalise", self.rank_normalise, ("none", "tokens")),
        ):
            if value not in choices:
                raise UserError(f"model.{setting}={value} is not possible; choose one of: {', '.join(choices)}.")
        threads = 1 if self.n_threads is None else self.n_threads
        if min(self.n_ctx, self.n_parallel, threads, self.sampling.max_tokens) < 1 or self.cache_mib < 0:
            raise UserError("model.n_ctx, n_parallel, n_threads and max_tokens must be at least 1, model.cache_mib at least 0.")
        if self.sampling.max_tokens >= self.n_ctx:
            raise UserError(f"model.max_tokens={self.sampling.max_tokens} leaves no room in model.n_ctx={self.n_ctx}.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}  # a copy in another process starts its own

    @property
    def concurrency(self) -> int:
        """Calls that are answered at once."""
        return self.n_parallel

    @property
    def server_url(self) -> str:
        """Base address of the engine's own OpenAI-compatible API on this machine (ends in /v1), once started.

        Raises:
            UserError: not started.
        """
        if self._engine is None:
            raise UserError("The embedded model has no address before start().")
        return f"{self._engine.client.url}/v1"

    # ------------------------------------------------------------------------------------------------------ protocol

    async def start(self) -> None:
        """Load the weights and start the engine.

        Raises:
            MissingDependency: the engine or the default weights are not installed.
            UserError: the file is no usable model, or the context is longer than the model was trained for.
        """
        if self._engine is None:
            self._engine = await _Engine.start(self)

    async def close(self) -> None:
        """Stop the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    async def chat(self, request: Request) -> Completion:
        """Answer; see `Model.chat`.

        Completions of `decode=rank` have in `info["rank"]`: candidates, evaluations (model calls), logprob and tokens of the
        chosen reply, and margin (all other candidates score lower by at least this).

        Raises:
            ContextOverflow: the prompt is longer than `n_ctx`.
            ModelError: the engine failed. It is started again by the next call.
        """
        from agentexp.models.embedded_choice import choose

        if self._engine is None:
            raise ModelError("The embedded model has not been started.")
        engine = self._engine
        async with engine.slots:
            started = time.perf_counter()
            client, process = await engine.connect()
            try:
                if self.decode != "generate" and request.purpose == "act" and request.view.step.admissible:
                    completion = await choose(self, client, engine.facts, request)
                else:
                    completion = await self._generate(client, request)
            except EngineLost as error:
                said = process.said()
                await process.stop()  # the next call finds it gone and starts another
                raise ModelError(f"{error} {said}") from error
            completion.seconds = time.perf_counter() - started
            return completion

    def versions(self) -> dict[str, str]:
        """Engine version, file name and checksum of the weights."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            engine = version("xllamacpp")
        except PackageNotFoundError as error:
            raise MissingDependency(f"model=embedded needs the llama.cpp engine: {weights.INSTALL_ENGINE}") from error
        file = self._located()
        return {"xllamacpp": engine, "weights": file.name, "weights_sha256": weights.checksum(file)}

    # ---------------------------------------------------------------------------------------------------- generation

    def _located(self) -> Path:
        if self._file is None:
            self._file = weights.locate(self.path)
        return self._file

    async def _generate(self, client: LlamaClient, request: Request) -> Completion:
        prompt = await client.render(request.messages, self.template)
        settings = sampling_fields(request.sampling)
        wants_json = request.purpose != "act" and any(_WANTS_JSON.search(message.content) for message in request.messages)
        if self.json_grammar and wants_json:
            settings["json_schema"] = {"type": "object"}
        if self.tokens:
            settings["n_probs"] = 1
        completion = completion_of(await client.complete(prompt, **settings), with_tokens=self.tokens)
        if self.decode != "generate" and request.purpose == "act":
            completion.info["decode"] = "generate"
            completion.info["why"] = "the world lists no actions"
        return completion

    def server_settings(self) -> ServerSettings:
        """How the engine is set up."""
        threads = self.n_threads or max(1, min(2, free_cores()))
        return ServerSettings(
            path=str(self._located()),
            ctx=self.n_ctx,
            parallel=self.n_parallel,
            threads=threads,
            cache_mib=self.cache_mib,
            gpu_layers=self.gpu_layers,
            alias=self.label,
        )


class _Engine:
    """The child process and the connection to it."""

    def __init__(self, settings: ServerSettings, request_timeout: float, template: Mapping[str, Any]) -> None:
        self.settings, self.request_timeout, self.template = settings, request_timeout, template
        self.slots = asyncio.Semaphore(settings.parallel)
        self.facts: dict[str, Any] = {}
        self._lock = asyncio.Lock()
        self.process: ServerProcess
        self.client: LlamaClient

    @classmethod
    async def start(cls, model: EmbeddedModel) -> _Engine:
        """Start and connect; raises `UserError` where that fails."""
        import importlib.util

        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingDependency(f"model=embedded needs the llama.cpp engine and weights: {weights.INSTALL}")
        engine = cls(model.server_settings(), model.request_timeout, model.template)
        await engine._launch()
        trained = int(engine.facts.get("n_ctx_train") or 0)
        if trained and model.n_ctx > trained:
            await engine.close()
            raise UserError(f"model.n_ctx={model.n_ctx} is more than the {trained} tokens that the model was trained for.")
        return engine

    async def _launch(self) -> None:
        self.process = ServerProcess(self.settings.command(), "The llama.cpp engine")

        async def ready() -> bool:
            return READY in self.process.output() and self.process.output().endswith("\n")

        await self.process.wait_ready(ready, _START_SECONDS, "the limit of")
        url = self.process.output().split(READY, 1)[1].splitlines()[0].strip()
        self.client = LlamaClient(url, self.request_timeout)
        self.facts = await self.client.model()

    async def connect(self) -> tuple[LlamaClient, ServerProcess]:
        """The connection and the process behind it; new ones if the engine has died."""
        async with self._lock:
            if not self.process.alive:
                await self.close()
                try:
                    await self._launch()
                except UserError as error:
                    raise ModelError(f"The engine could not be started again. {error}") from error
            return self.client, self.process

    async def close(self) -> None:
        """Close the connection, then stop the process."""
        await self.client.close()
        await self.process.stop()
