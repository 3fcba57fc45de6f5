"""A simulated vision model: knows what is in the picture from the world itself, and errs as a real one does.

A thing is named with probability

    sigmoid((log2(pixels) - size) / spread) * visible ** 0.5

so small and half-hidden things are missed, and with probability `false_names` it is called something else. It never looks at
the world but for keyframes, in the tick when each was taken, and nothing but its answers reaches the agent.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from math import exp, log2
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from agentexp.core import stable_seed
from agentexp.errors import ModelError, UserError
from agentexp.wise.core import Record
from agentexp.wise.knowledge import KnowledgeBase

COMMON = (
    *("cow", "sheep", "pig", "chicken", "horse", "rabbit"),
    *("log", "water", "sand", "stone", "dirt", "gravel", "pumpkin", "coal_ore", "iron_ore"),
)


class Sighting(NamedTuple):
    """A thing in the frame.

    Attributes:
        name: the world's name of it ("cow", "log", "water").
        pixels: how many pixels of the frame show it.
        visible: share of it that is not hidden by something else, in (0, 1].
    """

    name: str
    pixels: int
    visible: float = 1.0


@runtime_checkable
class Witness(Protocol):
    """A world that can say what its last frame shows. For simulated vision models and for scoring only."""

    def sightings(self) -> Sequence[Sighting]:
        """The things in the frame returned last."""
        ...


class SimulatedVision:
    """See the module's text. One per episode: `bind` it to the episode's world before the first frame.

    Args:
        knowledge: what it knows of affordances.
        size: log2 of the pixels at which half of the things are named.
        spread: how gradual that is; 0 = a sharp threshold.
        false_names: probability that a named thing gets a wrong name of the same kind (mobs for mobs).
        confusions: the wrong names; None = what is common in a landscape, so that errors matter to tasks.
        false_affordances: probability that an affordance names a wrong resource, to try the filters.
        fail_every: every so many requests fail as a dead endpoint does; 0 = none.
        seed: of the errors; equal keyframes get equal answers, whatever the batches.

    Attributes:
        truth: names of what each keyframe showed, by tick; for scoring.

    Raises:
        UserError: a probability is outside [0, 1].
    """

    def __init__(
        self,
        *,
        knowledge: KnowledgeBase | None = None,
        size: float = 3.2,
        spread: float = 0.6,
        false_names: float = 0.01,
        confusions: list[str] | None = None,
        false_affordances: float = 0.0,
        fail_every: int = 0,
        seed: int = 0,
    ) -> None:
        if not (0 <= false_names <= 1 and 0 <= false_affordances <= 1):
            raise UserError("vision.false_names and vision.false_affordances must be between 0 and 1.")
        self.knowledge = knowledge or KnowledgeBase()
        self.size, self.spread, self.seed = size, spread, seed
        self.false_names, self.false_affordances, self.fail_every = false_names, false_affordances, fail_every
        self._world: Witness | None = None
        self._seen: dict[int, Sequence[Sighting]] = {}
        self.truth: dict[int, list[str]] = {}
        self._requests = 0
        self.confusions = [name for one in confusions or COMMON if (name := self.knowledge.source(one))]

    def bind(self, world: object) -> SimulatedVision:
        """The same for one episode in `world`.

        Raises:
            UserError: the world cannot tell what its frames show.
        """
        if not isinstance(world, Witness):
            raise UserError(
                "vision=simulated needs a world that knows what is in view (world=sim); choose vision=openai or vision=replay."
            )
        bound = copy.copy(self)
        bound._world, bound._seen, bound.truth, bound._requests = world, {}, {}, 0
        return bound

    def note(self, record: Record) -> None:
        """Look at the world while the keyframe's frame is its last one."""
        if self._world is None:
            raise UserError("The simulated vision model is bound to no world: call bind(world) first.")
        self._seen[record.id] = list(self._world.sightings())
        self.truth[record.tick] = [sighting.name for sighting in self._seen[record.id]]

    def label_now(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """The answer in the form of the paper's appendix A.9. Raises `ModelError` where `fail_every` says so."""
        self._requests += 1
        if self.fail_every and self._requests % self.fail_every == 0:
            raise ModelError("The simulated endpoint is down.")
        return {"frames": [self._frame(record) for record in keyframes]}

    async def label(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """As `label_now`."""
        return self.label_now(keyframes)

    def chance(self, sighting: Sighting) -> float:
        """Probability that a thing is named."""
        if sighting.pixels < 1:
            return 0.0
        above = log2(sighting.pixels) - self.size
        if self.spread <= 0:
            seen = float(above >= 0)
        else:
            seen = 1 / (1 + exp(min(60.0, -above / self.spread)))
        return float(seen * max(0.0, sighting.visible) ** 0.5)

    def _frame(self, record: Record) -> dict[str, Any]:
        rng = np.random.default_rng(stable_seed(self.seed, record.tick, *record.pose))
        names: list[str] = []
        for sighting in self._seen.pop(record.id, ()):
            # Three draws for each thing, so that changing one rate leaves the other errors where they are.
            named, wrong, which = rng.random(3)
            if named < self.chance(sighting):
                names.append(self._other(sighting.name, which) if wrong < self.false_names else sighting.name)
        names = list(dict.fromkeys(names))
        affordances = [self._affordance(rng, *fact[:3]) for name in names for fact in self.knowledge.outcomes(name)]
        together = [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]]
        return {"timestep": record.tick, "entities": names, "affordances": affordances, "co_occurrences": together}

    def _other(self, said: str, which: float) -> str:
        name = self.knowledge.source(said) or said
        others = [one for one in self.confusions if one != name]
        alike = [one for one in others if self.knowledge.kind(one) == self.knowledge.kind(name)] or others
        return alike[int(which * len(alike))] if alike else said

    def _affordance(self, rng: np.random.Generator, source: str, relation: str, target: str) -> dict[str, str]:
        wrong, which = rng.random(2)
        if wrong < self.false_affordances:
            target = self._other(target, which)
        return {"source": source, "relation": relation, "target": target}
