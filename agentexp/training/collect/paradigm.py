"""Map, check the map against the engine, act on what is left of it: the episodes that MAP-2K is made of (MAP, appendix B.2).

The same as `MapThenAct` with the goal hidden while exploring, so its conversations are those of `paradigm=map` with the same
settings, byte for byte. Entries of the map that contradict the engine's state at reset are deleted before acting, so the actor
never follows a hallucination.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from agentexp.capabilities import Alignment, HasAlignment
from agentexp.core import CognitiveMap, stable_seed
from agentexp.errors import UserError
from agentexp.hooks import Context
from agentexp.paradigms.checks import is_test_split, usable_splits
from agentexp.paradigms.map.cognitive_map import to_record
from agentexp.paradigms.map.extractor import Extractor
from agentexp.paradigms.map.paradigm import MapThenAct
from agentexp.paradigms.map.stopping import Stopping
from agentexp.paradigms.react import Form
from agentexp.prompts import Style
from agentexp.rollout import Rollout


class CollectMaps(MapThenAct):
    """Map-then-act episodes of training tasks. Notes of an episode, beyond those of `MapThenAct`:

    "map" is the corrected map, "map_written" the map before (only where something was deleted), "alignment" the comparison:
    {"right", "wrong": [[list, index in the map before], ...], "unjudged", "found", "places"}.

    Args:
        stage1: put K_g into the prompts.
        extractor: see `MapThenAct`.
        goal_visible: let the explorer see the goal; the paper hides it (B.2).
        k_g: see `MapThenAct`.
        stopping: see `MapThenAct`.
        map_tokens: see `MapThenAct`.
        mapping_steps: mapping budgets, one of which is drawn for each instance, so that a model learns to use long and short
            ones; None: the run's budget for all.
        style: see `MapThenAct`, as for the rest. Evaluate a trained model with the same.
        form: see `MapThenAct`.
        show_admissible: see `MapThenAct`.
        show_steps_left: see `MapThenAct`.
        examples: see `MapThenAct`.
    """

    name = "map2k"

    def __init__(
        self,
        stage1: bool = False,
        extractor: Extractor = "llm",
        goal_visible: bool = False,
        k_g: str | None = None,
        stopping: Stopping | None = None,
        map_tokens: int = 2048,
        mapping_steps: list[int] | None = None,
        style: Style = "full",
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        if mapping_steps is not None and (not mapping_steps or min(mapping_steps) < 1):
            raise UserError("paradigm.mapping_steps must be a list of numbers of at least 1, or null for the run's budget.")
        self.mapping_steps = mapping_steps
        super().__init__(
            stage1=stage1,
            extractor=extractor,
            goal_visible=goal_visible,
            k_g=k_g,
            stopping=stopping,
            map_tokens=map_tokens,
            style=style,
            form=form,
            show_admissible=show_admissible,
            show_steps_left=show_steps_left,
            examples=examples,
        )

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """As `MapThenAct.prepare`. Raises `UserError` for test tasks and for worlds that cannot check a map, too."""
        held_out = next((task for task in ctx.tasks if is_test_split(task.split)), None)
        if held_out is not None:
            raise UserError(
                f"paradigm=map2k collects training data, and env.split={held_out.split} is held out for tests. "
                f"Set env.split to one of: {usable_splits(ctx.env)}."
            )
        if not isinstance(ctx.env, HasAlignment):
            raise UserError(f"env={ctx.env.name} cannot compare a map with its state, so paradigm=map2k is not possible.")
        return await super().prepare(ctx)

    async def __call__(self, ro: Rollout) -> None:
        """One episode."""
        if self.mapping_steps is not None:
            drawn = stable_seed("mapping steps", ro.task.env, ro.task.id, ro.task.seed) % len(self.mapping_steps)
            ro.budget = replace(ro.budget, mapping=self.mapping_steps[drawn])
        await super().__call__(ro)

    async def _map(self, ro: Rollout) -> None:
        """Stage 2, then the check: a reset, since the map has to describe the state at reset."""
        await super()._map(ro)
        if ro.map is None:
            return
        written = ro.map
        await ro.reset()
        found: Alignment = await ro.world.call("align", written)
        ro.note("alignment", {**found._asdict(), "wrong": [list(entry) for entry in found.wrong]})
        if found.wrong:
            ro.map = corrected(written, found.wrong)
            ro.note("map_written", to_record(written))
            ro.note("map", to_record(ro.map))


def corrected(known: CognitiveMap, wrong: Collection[tuple[str, int]]) -> CognitiveMap:
    """The map without the entries (list, index) that do not hold."""
    gone = set(wrong)
    lists = {
        name: [entry for i, entry in enumerate(getattr(known, name)) if (name, i) not in gone]
        for name in ("spatial", "absent", "affordances")
    }
    return replace(known, **lists)
