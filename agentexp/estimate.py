"""What a run would cost at most, before any money is spent: `agentexp eval ... --estimate`.

A few episodes of the very run are played with a stand-in that answers at random and counts what a language model would be
sent: the prompts, steps and calls are real, the tokens are those of the text at `CHARS_PER_TOKEN`. A random agent seldom
reaches its goal, so it uses its whole budget; replies are counted at the length limit. Both make the result an upper bound
for an agent of the same prompts, up to the tokeniser and to the length of what goes back into the history.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.core import Completion, Model, Request, Usage
from agentexp.errors import UserError

if TYPE_CHECKING:
    from agentexp.models.pricing import Price
    from agentexp.run import Run

CHARS_PER_TOKEN = 4.0
"""Characters of English text per token of the usual tokenisers; other text has fewer."""

SAMPLE = 3
"""Episodes that are played for an estimate."""


class StandIn:
    """Answers at random in place of a model and says how many tokens that model would have read and may have written.

    Args:
        model: the model whose label, decoding settings and prices count.
    """

    def __init__(self, model: Model) -> None:
        from agentexp.models.scripted import ScriptedModel

        self.label, self.sampling = model.label, model.sampling
        self.price: Price | None = getattr(model, "price", None)
        self._agent = ScriptedModel("random")
        self._sent: dict[str, list[int]] = {}  # by conversation: characters of each message of its last prompt

    async def start(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""

    def versions(self) -> dict[str, str]:
        """See `Model`."""
        return self._agent.versions()

    async def chat(self, request: Request) -> Completion:
        """A scripted reply; `usage` is what the model's would be at most."""
        lengths = [len(message.content) for message in request.messages]
        before = self._sent.get(request.chat, [])
        repeated = sum(lengths[: len(before)]) if lengths[: len(before)] == before else 0
        self._sent[request.chat] = lengths
        prompt, cached = (round(n / CHARS_PER_TOKEN) for n in (sum(lengths), repeated))
        completion = await self._agent.chat(request)
        written = request.sampling.max_tokens
        cost = None if self.price is None else self.price.cost(prompt, written, cached)
        completion.usage = Usage(prompt, written, cached, 1, cost)
        return completion


@dataclass(slots=True)
class Estimate:
    """What a plan may cost at most.

    Attributes:
        planned: episodes of the plan.
        sampled: episodes that were played for the estimate.
        episode: mean use of one of them, by role.
        setup: use outside the episodes: stage 1 and what the paradigm prepares, by role; not multiplied.
        stopped: a sampled episode ended in a harness error, so the numbers may be too low.
    """

    planned: int
    sampled: int
    episode: dict[str, Usage] = field(default_factory=dict)
    setup: dict[str, Usage] = field(default_factory=dict)
    stopped: int = 0

    def of_role(self, role: str) -> Usage:
        """Of the whole run."""
        each, once = self.episode.get(role, Usage()), self.setup.get(role, Usage())
        return _scaled(each, self.planned) + once

    @property
    def roles(self) -> list[str]:
        """Roles that are asked, the actor first."""
        return sorted({*self.episode, *self.setup}, key=lambda role: (role != "actor", role))

    @property
    def total(self) -> Usage:
        """Of the whole run over all roles."""
        total = Usage()
        for role in self.roles:
            total += self.of_role(role)
        return total


def _scaled(usage: Usage, factor: float) -> Usage:
    return Usage(
        round(usage.prompt_tokens * factor),
        round(usage.completion_tokens * factor),
        round(usage.cached_tokens * factor),
        round(usage.calls * factor),
        None if usage.cost is None else usage.cost * factor,
    )


def estimate(make: Callable[[Path], Run], sample: int = SAMPLE) -> Estimate:
    """Play `sample` episodes with stand-ins in a temporary folder and extrapolate.

    Args:
        make: builds the run with the given folder as its output root.
        sample: episodes.

    Raises:
        UserError: the run cannot be planned, or no episode could be played.
    """
    from agentexp.run import plan_of
    from agentexp.runner import execute
    from agentexp.store import read_episodes
    from agentexp.tracking import NoLogger

    with tempfile.TemporaryDirectory(prefix="agentexp-estimate-") as name:
        root = Path(name)
        run = make(root)
        planned = len(plan_of(run)[1])
        run.models = _stand_ins(run.models)
        run.limit = sample if run.limit is None else min(sample, run.limit)
        run.seeds, run.repeats, run.shard = run.seeds[:1], 1, None
        run.logger, run.progress, run.nested = NoLogger(), "off", True
        asyncio.run(execute(run))
        records = list(read_episodes(run.folder))
        played = [record for record in records if record["status"] == "ok"]
        if not played:
            raise UserError(f"No episode could be played for an estimate: {records[0]['error'] if records else 'none planned'}")
        result = Estimate(planned, len(played), stopped=len(records) - len(played))
        for record in played:
            _add(result.episode, record["usage_by_role"], 1 / len(played))
        for folder in {file.parent for file in root.rglob("episodes*.jsonl")} - {run.folder}:  # stage 1
            for record in read_episodes(folder):
                _add(result.setup, record["usage_by_role"])
        for file in root.rglob("setup.jsonl"):
            _add_setup(result.setup, file)
    return result


def _stand_ins(models: Mapping[str, Model]) -> dict[str, Model]:
    return {role: StandIn(model) for role, model in models.items()}


def _add(to: dict[str, Usage], usage_by_role: Mapping[str, Any], factor: float = 1.0) -> None:
    for role, values in usage_by_role.items():
        # float counts while adding up: the mean of a few episodes is rounded once, at the end
        part: dict[str, Any] = {key: value * factor if value is not None else None for key, value in values.items()}
        to[role] = to.get(role, Usage()) + Usage(**part)


def _add_setup(to: dict[str, Usage], file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        _add(to, {call.get("role", "actor"): call["usage"]})


def show_estimate(result: Estimate) -> None:
    """Print the table and what it rests on."""
    from rich.console import Console
    from rich.table import Table

    from agentexp.progress import compact

    table = Table(title="At most")
    for column in ("role", "calls", "prompt tokens", "repeated", "reply tokens", "US dollars"):
        table.add_column(column, justify="left" if column == "role" else "right")
    for role in [*result.roles, ""]:
        usage = result.of_role(role) if role else result.total
        cost = "no price" if usage.cost is None else f"{usage.cost:.2f}"
        numbers = (usage.calls, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        table.add_row(role or "all", *(compact(number) for number in numbers), cost)
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    console.print(
        f"{result.planned} episodes, from {result.sampled} that a random agent played with this run's prompts and budgets; "
        f"{CHARS_PER_TOKEN:g} characters a token, replies at their length limit. Repeated: prompt tokens that a server with a "
        "prefix cache need not compute again.",
        markup=False,
    )
    if result.setup:
        once = sum(usage.calls for usage in result.setup.values())
        console.print(f"{once:.0f} of the calls are made once, outside the episodes (stage 1).", markup=False)
    unpriced = [role for role in result.roles if result.of_role(role).cost is None]
    if result.total.cost is not None and unpriced:
        console.print(f"Without a price, and not in the sum: {', '.join(unpriced)}.", markup=False)
    if result.total.cost is None:
        console.print("Set model.price_in and model.price_out (US dollars per million tokens) to see the cost.", markup=False)
    if result.stopped:
        console.print(f"{result.stopped} sampled episodes ended in a harness error and are left out.", markup=False)
