"""Where rollouts get their replies: the live policy through transformers, or vLLM, which is sent the weights before a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from agentexp.core import Sampling
from agentexp.errors import UserError
from agentexp.training.grpo.rollouts import Sampler

if TYPE_CHECKING:
    from agentexp.training.grpo.learner import Learner


class Engine(Protocol):
    """An open rollout engine.

    Attributes:
        sampler: what episodes talk to.
    """

    sampler: Sampler

    async def start(self) -> None:
        """Get ready."""
        ...

    def sync(self) -> None:
        """Make the sampler sample from the policy as it is now."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...


class RolloutEngine:
    """Settings of the rollouts.

    Args:
        engine: "transformers" samples from the live policy; "vllm" needs GPUs and the package vllm.
        temperature: of sampling.
        max_tokens: most tokens of a reply.
        concurrency: rollouts in flight in each process.
        workers: engine processes in each process; None = as many as rollouts in flight.
        attempts: tries of a rollout that the harness failed, before it is left out.
        seconds: time limit of one attempt; None = none.
        template: variables for the chat template, for example {"enable_thinking": False}.
        cache_mib: of engine=transformers, memory for the computed beginnings of conversations that wait for their next turn.
        vllm: further settings of `agentexp.training.grpo.vllm.open_vllm`: mode, gpu_memory, tensor_parallel, server.
    """

    def __init__(
        self,
        *,
        engine: Literal["transformers", "vllm"] = "transformers",
        temperature: float = 1.0,
        max_tokens: int = 512,
        concurrency: int = 16,
        workers: int | None = None,
        attempts: int = 2,
        seconds: float | None = None,
        template: dict[str, Any] | None = None,
        cache_mib: int = 4096,
        vllm: dict[str, Any] | None = None,
    ) -> None:
        if temperature <= 0:
            raise UserError(f"trainer.rollout.temperature must be above 0, not {temperature}: equal rollouts teach nothing.")
        if min(max_tokens, concurrency, attempts, workers or 1) < 1:
            raise UserError("trainer.rollout: max_tokens, concurrency, workers and attempts must be at least 1.")
        self.engine, self.attempts, self.seconds = engine, attempts, seconds
        self.concurrency, self.workers = concurrency, workers or concurrency
        self.sampling = Sampling(temperature, max_tokens)
        self.template, self.cache_mib, self.vllm = dict(template or {}), cache_mib, dict(vllm or {})

    def open(self, learner: Learner, tokenizer: Any, window: int, label: str) -> Engine:
        """Open the engine on the learner's policy.

        Args:
            learner: holds the live policy.
            tokenizer: of the policy.
            window: most tokens of one conversation.
            label: name of the model.

        Raises:
            MissingDependency: vllm is not installed.
            UserError: a setting does not fit.
        """
        if self.engine == "vllm":
            from agentexp.training.grpo.vllm import open_vllm

            return open_vllm(learner, tokenizer, self.sampling, self.template, window, label, **self.vllm)
        return LivePolicy(learner, tokenizer, self, window, label)


class LivePolicy:
    """The policy itself, through `TransformersModel`: nothing has to be sent anywhere, but caches of old weights must go."""

    def __init__(self, learner: Learner, tokenizer: Any, settings: RolloutEngine, window: int, label: str) -> None:
        from agentexp.models.transformers import TransformersModel

        if learner.sharded:
            raise UserError(
                "trainer.rollout.engine=transformers needs the whole model in every process, and ZeRO-3 and FSDP split it. Use "
                "ZeRO-2, or trainer.rollout.engine=vllm."
            )
        self._model = TransformersModel.of(
            learner.policy,
            tokenizer,
            label=label,
            tokens=True,
            n_ctx=window,
            batch=settings.concurrency,
            template=settings.template,
            cache_mib=settings.cache_mib,
        )
        self.sampler: Sampler = self._model

    async def start(self) -> None:
        """See `Engine`."""
        await self._model.start()

    def sync(self) -> None:
        """Forget what was computed with the weights before the last step."""
        self._model.update_weights()

    async def close(self) -> None:
        """See `Engine`."""
        await self._model.close()
