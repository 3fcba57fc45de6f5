"""What an episode, and a whole run, may use: steps per phase, tokens, money and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from agentexp.core import Task


@dataclass(frozen=True, slots=True)
class Budget:
    """Environment steps per phase. Baselines without a mapping phase act for `total` steps (MAP, section 4.1).

    `exploring`: steps of a goal-free exploration, which stands in place of mapping; None: none, or the paradigm's own setting.
    """

    mapping: int
    acting: int
    exploring: int | None = None

    @property
    def total(self) -> int:
        """Steps of an episode over all phases."""
        return self.mapping + self.acting + (self.exploring or 0)

    def of(self, task: Task) -> Budget:
        """The budget of one task: acting takes no more than `Task.spec["acting_steps"]`, where the world gives that."""
        own = task.spec.get("acting_steps")
        return replace(self, acting=min(self.acting, own)) if isinstance(own, int) else self


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps per episode and per run; None = no cap.

    Attributes:
        invalid_in_a_row: unreadable replies in a row after which the episode ends ("invalid_limit").
        tokens: prompt + completion tokens ("token_limit").
        cost: US dollars ("token_limit").
        seconds: wall-clock seconds of one attempt ("timeout", a harness error: the machine or the server was too slow).
        attempts: tries per episode when the engine or the API fails.
        context: what to do when a conversation no longer fits into the model's context. "fail": the episode ends
            ("context_limit"); "drop_oldest": its oldest observations are left out of what the model is sent, which the record
            marks. The task, the rules K_g and the map are never left out.
        run_tokens: prompt + completion tokens of the whole run, after which no new episode begins.
        run_cost: US dollars of the whole run, likewise.
        run_seconds: wall-clock seconds of one process of the run, after which it stops as it does for Ctrl-C.
    """

    invalid_in_a_row: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    attempts: int = 2
    context: Literal["fail", "drop_oldest"] = "fail"
    run_tokens: int | None = None
    run_cost: float | None = None
    run_seconds: float | None = None
