"""A model of transformers in this process: for weights that were just trained, and as the sampler of a trainer.

Replies are sampled token by token here, so a trainer gets exactly the tokens that were sampled and their log-probabilities.
Concurrent calls are computed as one batch that calls join and leave between two tokens; what was computed for a conversation is
kept for its next turn.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentexp.core import Completion, Request, Sampling, Usage
from agentexp.errors import ContextOverflow, MissingDependency, ModelError, UserError
from agentexp.models.cores import free_cores
from agentexp.models.sampled_chats import SampledChats
from agentexp.training.base import DTYPES, Dtype, ModelBase
from agentexp.training.core import Sampled

if TYPE_CHECKING:
    from agentexp.models.transformers_engine import Done, Engine
    from agentexp.training.chat import TemplateFormat


class TransformersModel:
    """A causal language model of transformers.

    A call's own seed gives it its own random numbers, one per token, so the same seed gives the same reply whatever else is in
    the batch, up to rounding: batches of another shape add in another order, which moves log-probabilities by about 1e-6 in
    float32 and 1e-2 in bfloat16 and can tip a choice that is that close. Greedy replies behave the same way.

    Args:
        path: as `base.path`: "smollm2", "tiny", a Hugging Face folder, a GGUF file or a hub name.
        decode: how replies that should be an action are made. "generate": the model writes freely; "rank": the admissible
            action whose reply is the likeliest, by exact log-likelihood. Where the world lists no actions it writes freely.
        rank_normalise: score of a reply: "none" = sum of its tokens' log-probabilities, "tokens" = their mean.
        temperature: 0 = greedy. Without effect on "rank", which takes the maximum.
        max_tokens: most tokens of a reply.
        top_p: nucleus sampling; None = off. Recorded log-probabilities are those without it.
        stop: strings that end a reply.
        n_ctx: longest conversation in tokens; None = the model's limit.
        batch: conversations that are computed at once.
        cache_mib: memory for the computed beginnings of conversations that wait for their next turn, in MiB.
        dtype: "auto" = as saved, "float32", "bfloat16", "float16".
        device: "auto" = the first GPU, or the CPU.
        n_threads: CPU threads; None = 2, or 1 where fewer cores are free. Without effect on a GPU.
        adapter: folder of a LoRA adapter (peft), merged into the weights when they are loaded.
        tokens: record token ids and log-probabilities of sampled replies, in the record and for `take`.
        template: variables for the chat template, for example {"enable_thinking": False}.
        revision: of a hub name.
        label: short name for folders and tables; None = name of the path.

    Raises:
        UserError: a setting has an impossible value.
    """

    def __init__(
        self,
        *,
        path: str = "smollm2",
        decode: Literal["generate", "rank"] = "generate",
        rank_normalise: Literal["none", "tokens"] = "none",
        temperature: float = 0.0,
        max_tokens: int = 256,
        top_p: float | None = None,
        stop: list[str] | None = None,
        n_ctx: int | None = None,
        batch: int = 8,
        cache_mib: int = 1024,
        dtype: Dtype = "auto",
        device: str = "auto",
        n_threads: int | None = None,
        adapter: str | None = None,
        tokens: bool = False,
        template: dict[str, Any] | None = None,
        revision: str | None = None,
        label: str | None = None,
    ) -> None:
        self.path, self.decode, self.rank_normalise = path, decode, rank_normalise
        self.sampling = Sampling(float(temperature), max_tokens, top_p, tuple(stop or ()))
        self.n_ctx, self.batch, self.cache_mib, self.n_threads = n_ctx, batch, cache_mib, n_threads
        self.dtype, self.device, self.adapter, self.revision = dtype, device, adapter, revision
        self.tokens, self.template = tokens, dict(template or {})
        name = Path(adapter or path).name.removesuffix(".gguf")
        self.label = label or (name if decode == "generate" else f"{name}-{decode}")
        self._check_settings()
        self._base = ModelBase(path=path, dtype=dtype, device=device, revision=revision)
        self._given: tuple[Any, Any] | None = None  # a trainer's own model and tokenizer
        self._format: TemplateFormat | None = None
        self._engine: Engine | None = None
        self._sampled = SampledChats(tokens)

    @classmethod
    def of(cls, model: Any, tokenizer: Any, **settings: Any) -> TransformersModel:
        """Sample from a model that a trainer owns; its weights are shared, not copied.

        After each change of the weights call `update_weights()`. Sampling puts the model into evaluation mode and leaves it
        there; the trainer must not run it at the same time.

        Args:
            model: a causal language model (`transformers.PreTrainedModel` or `peft.PeftModel`), on its device.
            tokenizer: a fast tokenizer with a chat template.
            settings: as for the class, without `path`, `adapter`, `dtype`, `device` and `revision`.
        """
        made = cls(**{"label": "live", **settings})
        made._given = (model, tokenizer)
        return made

    def _check_settings(self) -> None:
        for setting, value, choices in (
            ("decode", self.decode, ("generate", "rank")),
            ("rank_normalise", self.rank_normalise, ("none", "tokens")),
            ("dtype", self.dtype, DTYPES),
        ):
            if value not in choices:
                raise UserError(f"model.{setting}={value} is not possible; choose one of: {', '.join(choices)}.")
        if min(self.n_ctx or 1, self.batch, self.n_threads or 1, self.sampling.max_tokens) < 1 or self.cache_mib < 0:
            raise UserError("model.n_ctx, batch, n_threads and max_tokens must be at least 1, model.cache_mib at least 0.")
        if self.sampling.temperature < 0 or not 0 < (1.0 if self.sampling.top_p is None else self.sampling.top_p) <= 1:
            raise UserError("model.temperature must be at least 0, and model.top_p above 0 and at most 1.")

    def __getstate__(self) -> dict[str, Any]:
        if self._given is not None:
            raise UserError("A model shared with a trainer cannot go to another process; set n_jobs=1.")
        return {**self.__dict__, "_engine": None, "_format": None, "_sampled": SampledChats(self.tokens)}

    @property
    def concurrency(self) -> int:
        """Calls that are answered at once."""
        return self.batch

    # ------------------------------------------------------------------------------------------------------ protocol

    async def start(self) -> None:
        """Load the weights and start the engine.

        Raises:
            MissingDependency: torch or transformers is not installed.
            UserError: there is no such model, or it is of a kind that this backend cannot run.
        """
        if self._engine is None:
            self._format, self._engine = await asyncio.to_thread(self._load)

    async def close(self) -> None:
        """Stop the engine and drop the weights; those of a trainer stay with it."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.close)

    async def chat(self, request: Request) -> Completion:
        """Answer; see `Model.chat`.

        Completions of `decode=rank` have in `info["rank"]`: candidates, logprob and tokens of the chosen reply, and margin (how
        much lower the second best scores). Replies cut by a full context have `info["context_full"]`.

        Raises:
            ContextOverflow: the prompt is longer than the context.
            ModelError: torch failed, or the model was not started.
        """
        started = time.perf_counter()
        if self.decode == "rank" and request.purpose == "act" and request.view.step.admissible:
            completion = await self._rank(request)
        else:
            completion = await self._generate(request)
        completion.seconds = time.perf_counter() - started
        return completion

    def versions(self) -> dict[str, str]:
        """Versions of torch and transformers, and what was loaded."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = {name: version(name) for name in ("torch", "transformers")}
        except PackageNotFoundError as error:
            from agentexp.training.tiny import INSTALL

            raise MissingDependency(f"model=transformers needs torch and transformers: {INSTALL}") from error
        if self._given is None:
            found |= self._base.versions() | {"dtype": self.dtype}
        return found | ({"adapter": self.adapter} if self.adapter else {})

    # ------------------------------------------------------------------------------------------------------- training

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        """Sampled calls by conversation, see `RecordsTokens`; empty unless `tokens`.

        `Sampled.ended` is also True where a stop string or another end token of the model ended the reply.
        """
        return self._sampled.take(prefix)

    def update_weights(self, state: Mapping[str, Any] | None = None) -> None:
        """Use new weights from the next call on, and forget what was computed with the old ones.

        Args:
            state: a state dict of the model; None = the shared weights were changed in place.

        Raises:
            ModelError: not started, calls are in flight, or the state is not of this model.
        """
        engine, _ = self._ready()
        model = engine.forward.model

        def change() -> None:
            if state is None:
                return
            tied = set(getattr(model, "all_tied_weights_keys", None) or ())
            missing, unexpected = model.load_state_dict(state, strict=False)
            if unexpected or set(missing) - tied:
                lost = sorted({*unexpected, *(set(missing) - tied)})
                raise ModelError(f"These weights are of another model: {', '.join(lost[:3])} ({len(lost)} in all).")

        engine.change(change)

    # ------------------------------------------------------------------------------------------------------- replies

    async def _generate(self, request: Request) -> Completion:
        engine, chats = self._ready()
        prompt = self._sampled.prompt(request, chats)
        room = self._room(prompt, engine)
        sampling = request.sampling
        done = await self._run(engine, request, prompt, limit=min(sampling.max_tokens, room))
        text = done.text if done.text is not None else chats.text(done.tokens)
        sampled = Sampled(prompt, done.tokens, done.logprobs, not done.cut, sampling.temperature)
        self._sampled.add(request, text, sampled)
        info: dict[str, Any] = {"context_full": True} if done.cut and room < sampling.max_tokens else {}
        if self.decode == "rank" and request.purpose == "act":
            info |= {"decode": "generate", "why": "the world lists no actions"}
        return Completion(
            text=text,
            finish_reason="length" if done.cut else "stop",
            usage=Usage(len(prompt), len(done.tokens), done.cached, calls=1),
            token_ids=done.tokens if self.tokens else None,
            logprobs=done.logprobs if self.tokens else None,
            info=info,
        )

    def _room(self, prompt: Sequence[int], engine: Engine) -> int:
        room = engine.forward.window - len(prompt)
        if room < 1:
            raise ContextOverflow(
                f"The prompt of {len(prompt)} tokens no longer fits into {engine.forward.window}; the setting is model.n_ctx."
            )
        return room

    async def _rank(self, request: Request) -> Completion:
        from agentexp.models.transformers_choice import Candidates

        engine, chats = self._ready()
        found = Candidates.of(request, self._sampled.prompt(request, chats), chats)
        self._room([*found.stem, *max(found.tokens, key=len)], engine)
        done = await self._run(engine, request, found.stem, limit=1, candidates=found.tokens)
        return found.completion(done, self.rank_normalise)

    async def _run(
        self, engine: Engine, request: Request, prompt: list[int], limit: int, candidates: Sequence[Sequence[int]] = ()
    ) -> Done:
        from agentexp.models.transformers_engine import Job
        from agentexp.models.transformers_sampling import Choice

        sampling = request.sampling
        chance = random.SystemRandom() if sampling.seed is None else random.Random(sampling.seed)
        job = Job(
            request.chat,
            prompt,
            limit,
            Choice(sampling.temperature, sampling.top_p, chance),
            sampling.stop,
            candidates,
        )
        return await asyncio.wrap_future(engine.submit(job))

    def _ready(self) -> tuple[Engine, TemplateFormat]:
        if self._engine is None or self._format is None:
            raise ModelError("The transformers model has not been started.")
        return self._engine, self._format

    def _load(self) -> tuple[TemplateFormat, Engine]:
        from agentexp.training.chat import TemplateFormat

        model, tokenizer = self._given or self._loaded()
        from agentexp.models.transformers_engine import Engine
        from agentexp.models.transformers_forward import Forward

        threads = self.n_threads
        if threads is None and self._given is None:
            threads = max(1, min(2, free_cores()))
        chats = TemplateFormat(tokenizer, self.template)
        ends = {chats.end_of_turn, tokenizer.eos_token_id}
        own = model.generation_config.eos_token_id
        ends.update(own if isinstance(own, list) else [own])
        return chats, Engine(
            Forward(model, self.n_ctx),
            self.batch,
            self.cache_mib << 20,
            frozenset(end for end in ends if end is not None),
            chats.text,
            threads if model.device.type == "cpu" else None,
        )

    def _loaded(self) -> tuple[Any, Any]:
        from agentexp.training.merge import merged

        model, tokenizer = self._base.load_model(), self._base.load_tokenizer()
        return (model if self.adapter is None else merged(model, self.adapter)), tokenizer
