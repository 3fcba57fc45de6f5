"""The nouns of training (Sampled, Row) and the protocols between its parts.

A language model is trained on the tokens that it sampled itself, never on a text tokenised again: what a sampler did is kept
as token ids (`Sampled`), and `rows` joins the calls of one conversation into sequences (`Row`) as long as every prompt extends
the one before, token by token. Where a prompt was rewritten a new row begins: each sampled token is trained exactly once.

Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agentexp.core import Message
from agentexp.errors import AgentExpError


@dataclass(frozen=True, slots=True)
class Sampled:
    """One call of a sampler, in tokens.

    Attributes:
        prompt: all token ids that the model was given.
        tokens: token ids that it sampled, the end-of-turn token included where it sampled one.
        logprobs: natural log-probabilities of `tokens` under the sampling distribution (after temperature); same length.
        ended: it ended its turn itself, with the end-of-turn token (or another end token of the model, or a stop string);
            otherwise it was cut by the token limit.
        temperature: of the sampling distribution; 0 for greedy, whose `logprobs` are those of temperature 1.
    """

    prompt: Sequence[int]
    tokens: Sequence[int]
    logprobs: Sequence[float]
    ended: bool
    temperature: float = 1.0


@dataclass(slots=True)
class Row:
    """One token sequence to train on.

    Attributes:
        ids: token ids, shape (T,).
        trained: which of them count in the loss, shape (T,). The first never does: nothing predicts it.
        logprobs: the sampler's log-probabilities, shape (T,); 0.0 where not trained. Empty for supervised rows.
        temperature: of the sampler.
        tags: where it comes from (JSON values): task key, kind, chat, group.
    """

    ids: list[int]
    trained: list[bool]
    logprobs: list[float] = field(default_factory=list)
    temperature: float = 1.0
    tags: dict[str, Any] = field(default_factory=dict)

    @property
    def n_trained(self) -> int:
        """Tokens that count in the loss."""
        return sum(self.trained)


def rows(calls: Iterable[Sampled], **tags: Any) -> list[Row]:
    """The calls of one conversation, oldest first, as training rows.

    The number of trained tokens over all rows equals the number of sampled ones.

    Args:
        calls: of one conversation.
        tags: for every row.

    Raises:
        ValueError: a call has no prompt, or not one log-probability per token.
    """
    made: list[Row] = []
    for call in calls:
        prompt, tokens = list(call.prompt), list(call.tokens)
        if not prompt or len(call.logprobs) != len(tokens):
            raise ValueError("A sampled call needs a prompt, and one log-probability per sampled token.")
        row = made[-1] if made else None
        if row is None or row.temperature != call.temperature or prompt[: len(row.ids)] != row.ids:
            row = Row([], [], [], call.temperature, dict(tags))
            made.append(row)
        given = prompt[len(row.ids) :]
        row.ids += given + tokens
        row.trained += [False] * len(given) + [True] * len(tokens)
        row.logprobs += [0.0] * len(given) + list(call.logprobs)
    return made


class ChatFormat(Protocol):
    """A chat template as tokens. Only ever appends: what an earlier prompt held is a prefix of every later one.

    Attributes:
        end_of_turn: the token id that ends an assistant turn; a model is trained to write it.
    """

    end_of_turn: int

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a whole conversation, ready for the assistant's next turn (generation prompt included)."""
        ...

    def extend(self, last: Sampled, messages: Sequence[Message]) -> list[int]:
        """Token ids of the prompt after `last`: its prompt, its sampled tokens, the end of turn where the sampler did not write
        it, then `messages` (all that followed the sampled turn) and the generation prompt. Nothing is tokenised again.
        """
        ...

    def supervised(self, messages: Sequence[Message]) -> Row:
        """A whole conversation with every assistant turn trained, its end-of-turn token included, and nothing else."""
        ...


@runtime_checkable
class RecordsTokens(Protocol):
    """A model backend that remembers what it sampled (`model=transformers`, `model=vllm`)."""

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        """Calls by `Request.chat`, for conversations whose name begins with `prefix` (a task's key + "|"), oldest first.

        They are forgotten here. Calls of a failed attempt of an episode are dropped by whoever starts the episode again.
        """
        ...


class Interrupted(AgentExpError):
    """The user stopped a training. Its checkpoint is saved: the same command goes on from there."""


class Evaluation(Protocol):
    """Plays a few tasks in the middle of a training. Implemented by `agentexp.training.evaluate`.

    Attributes:
        config: what is played, for the manifest.
    """

    config: Mapping[str, Any]

    def play(self, folder: Path, step: int, model: Any, tokenizer: Any) -> dict[str, float]:
        """Play with these weights, record the episodes below `folder`, and return numbers for `TrainRun.metrics`."""
        ...


class TrainRun(Protocol):
    """A training run as its trainer sees it: folder, settings, metrics. Implemented by `agentexp.training.job`.

    Attributes:
        folder: the run folder; exists. The trainer keeps its checkpoints in `folder/checkpoints` and its final model in
            `folder/model` (a Hugging Face folder: weights, config, tokenizer, chat template).
        config: the resolved config.
        seed: of everything random.
        planned_steps: optimiser steps of the whole training; set by the trainer once it knows, for the progress display.
        evaluation: plays with the weights as they are, where the user wants that; None: nobody does.
    """

    folder: Path
    config: Mapping[str, Any]
    seed: int
    planned_steps: int | None
    evaluation: Evaluation | None

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record numbers of one optimiser step: a line of `metrics.jsonl`, the tracker (W&B), the progress display.

        After a resume a step that is recorded already is replaced, so each step counts once.
        """
        ...

    def say(self, text: str) -> None:
        """One line for the user (and the log)."""
        ...

    def stopping(self) -> bool:
        """A signal asked to stop: save a checkpoint and raise `Interrupted`. To be asked after every optimiser step.

        A trainer that never asks is stopped where it is, and goes on from its last checkpoint.
        """
        ...


@runtime_checkable
class Trainer(Protocol):
    """What `train-sft`, `train-grpo` and `train-thinker` run: `trainer` of their configs."""

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """Train to the end, from the last checkpoint in the run folder where there is one, and save the model.

        The same call after a kill goes on with the same data order.

        Returns:
            The result for `summary.json` (JSON values): steps, tokens, and what the trainer measured.
        """
        ...
