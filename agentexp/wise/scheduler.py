"""Which subtask is next: the opportunistic scheduler (paper 004, 3.2) and the fixed order that it is compared with.

    Priority(tau_i, t) = w_u U + w_a A + w_n (1 - N)                    (7)
    U = 1 - (i - 1) / m, or by age where `ageing` is set                (8, reconstructed)
    A = max over C_i of AffordanceMatch * kappa                         (9, reconstructed)
    N = min(1, dist(P_t, x*) / d_max), 1 where nothing is known         (10)

U falls with the place in the queue, since a large w_u must lead back to the fixed order (B.3.2). kappa is 1 for what is in
view, else exp(-age / `fading`), and 1 by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from agentexp.errors import UserError
from agentexp.wise.core import Frame, Opportunity, Subtask
from agentexp.wise.parts import again


@dataclass(frozen=True, slots=True)
class Terms:
    """The three terms of eq. 7, each in [0, 1], and the priority."""

    urgency: float
    affordance: float
    cost: float
    priority: float


class OpportunisticScheduler:
    """Equations 7 to 10.

    Args:
        urgency: w_u.
        affordance: w_a.
        navigation: w_n.
        d_max: distance in blocks that costs all of w_n; the diagonal of a 128 x 128 map by default (not given in the paper).
        ageing: ticks of waiting after which a subtask is as urgent as the first one; None = urgency is order alone.
        fading: T_A in ticks; None = memories do not fade.

    Raises:
        UserError: weights are negative or do not add up to 1, or another setting is not above 0.
    """

    def __init__(
        self,
        *,
        urgency: float = 0.3,
        affordance: float = 0.5,
        navigation: float = 0.2,
        d_max: float = 181.0,
        ageing: int | None = None,
        fading: float | None = None,
    ) -> None:
        if min(urgency, affordance, navigation) < 0 or abs(urgency + affordance + navigation - 1) > 1e-6:
            raise UserError("scheduler.urgency, scheduler.affordance and scheduler.navigation must add up to 1, none negative.")
        if d_max <= 0 or (ageing is not None and ageing <= 0) or (fading is not None and fading <= 0):
            raise UserError("scheduler.d_max, scheduler.ageing and scheduler.fading must be above 0 (the last two or null).")
        self.urgency, self.affordance, self.navigation = urgency, affordance, navigation
        self.d_max, self.ageing, self.fading = d_max, ageing, fading
        self._since: dict[Subtask, int] = {}

    def fresh(self) -> OpportunisticScheduler:
        """One for another episode."""
        return again(self)

    def order(
        self, pending: Sequence[Subtask], candidates: Mapping[int, Sequence[Opportunity]], frame: Frame
    ) -> list[tuple[int, float]]:
        """See `Scheduler.order`. `pending` is in the task's own order, also after subtasks were preempted."""
        terms = self.terms(pending, candidates, frame)
        return sorted(((i, term.priority) for i, term in enumerate(terms)), key=lambda pair: (-pair[1], pair[0]))

    def terms(self, pending: Sequence[Subtask], candidates: Mapping[int, Sequence[Opportunity]], frame: Frame) -> list[Terms]:
        """The terms of eq. 7 for each pending subtask."""
        found: list[Terms] = []
        for i, subtask in enumerate(pending):
            offers = candidates.get(i, ())
            u = self._urgency(i, len(pending), subtask, frame.tick)
            a = max((offer.affordance * self._kappa(offer, frame.tick) for offer in offers), default=0.0)
            n = min(1.0, frame.pose.distance(offers[0].x, offers[0].z) / self.d_max) if offers else 1.0
            priority = self.urgency * u + self.affordance * a + self.navigation * (1 - n)
            found.append(Terms(u, a, n, priority))
        return found

    def _urgency(self, i: int, m: int, subtask: Subtask, tick: int) -> float:
        by_order = 1 - i / m
        if self.ageing is None:
            return by_order
        waited = tick - self._since.setdefault(subtask, tick)
        return max(by_order, min(1.0, waited / self.ageing))

    def _kappa(self, offer: Opportunity, tick: int) -> float:
        return 1.0 if offer.in_view or self.fading is None else exp(-max(0, tick - offer.tick) / self.fading)


class FixedOrder:
    """The task's own order (MrSteve, and "WISE without scheduler")."""

    def fresh(self) -> FixedOrder:
        """One for another episode."""
        return FixedOrder()

    def order(
        self, pending: Sequence[Subtask], candidates: Mapping[int, Sequence[Opportunity]], frame: Frame
    ) -> list[tuple[int, float]]:
        """See `Scheduler.order`: as they come, with order-based urgency as the priority."""
        return [(i, 1 - i / len(pending)) for i in range(len(pending))]


def preempts(order: Sequence[tuple[int, float]], active: int | None, margin: float = 0.0) -> bool:
    """Whether another subtask takes over from the active one.

    Args:
        order: of a scheduler.
        active: index of the subtask that is being done; None = none.
        margin: by how much the first one's priority must exceed the active one's; 0 is the paper's rule.
    """
    if not order or active is None:
        return bool(order)
    priorities = dict(order)
    return order[0][0] != active and order[0][1] > priorities.get(active, -1.0) + margin
