"""MAP: map first, then act (MAP, section 3.2), with the switches of its ablations.

    stage 1  K_g, once per world: see `stage1.py`; comes in through `prepare`
    stage 2  reset; map for at most `budget.mapping` steps until the stop rule fires; extract M
    stage 3  reset; act for at most `budget.acting` steps with K_g and M in the system prompt

Only stage 3 counts: a world that ends while it is being mapped ends the mapping, and its reward is ignored. Mapping steps that
were not used are not carried over. Readings of the paper that are ours are marked in the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from agentexp.capabilities import HasFacts
from agentexp.errors import ContextOverflow, HarnessError, UserError
from agentexp.hooks import Context
from agentexp.paradigms.checks import check_sources, require_choice
from agentexp.paradigms.map.cognitive_map import Drop, dropped, from_record, map_texts, to_record
from agentexp.paradigms.map.extractor import Extractor, extract_map
from agentexp.paradigms.map.knowledge import ROLES, as_document, knowledge_text, load_knowledge
from agentexp.paradigms.map.saved import SavedMaps
from agentexp.paradigms.map.stopping import DualConvergence, Stopping, Watch, observation_key
from agentexp.paradigms.react import Form, ReAct
from agentexp.prompts import Style, render
from agentexp.rollout import Rollout

STOP_WORD = "finish mapping"
COMPACT_RULES = 3  # items of each K_g list in compact prompts


class MapThenAct:
    """MAP's three stages.

    Args:
        stage1: use K_g (False = ablation "w/o stage 1").
        stage2: map the instance (False = ablation "w/o stage 2"; its steps then go to acting, so the total stays equal).
        drop: part of the map that the actor does not get.
        extractor: who writes the map: the model, or the rules of the fact tracker (no model call).
        goal_visible: the mapper knows the task (eq. 6); False for collecting MAP-2K (appendix B.2).
        reset_between_stages: act from the initial state. The paper does not say; otherwise a mapper's mistakes would be final.
        act: False stops after stage 2 (`agentexp map`).
        maps: run folder of an earlier `agentexp map`; its maps replace stage 2 (`agentexp act`).
        k_g: a kg.json or the folder of an explore run; None = built before the first episode.
        stopping: the stop rule of stage 2; None = `DualConvergence()`.
        map_tokens: of the extractor's reply.
        style: see `ReAct`, as for the next three.
        form: see `ReAct`.
        show_admissible: see `ReAct`.
        show_steps_left: see `ReAct`.
        examples: see `ReAct`; for stage 3.
    """

    name = "map"
    roles = ROLES

    def __init__(
        self,
        stage1: bool = True,
        stage2: bool = True,
        drop: Drop = "none",
        extractor: Extractor = "llm",
        goal_visible: bool = True,
        reset_between_stages: bool = True,
        act: bool = True,
        maps: str | None = None,
        k_g: str | None = None,
        stopping: Stopping | None = None,
        map_tokens: int = 2048,
        style: Style = "full",
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        require_choice("paradigm.drop", drop, ("none", "spatial", "affordances"))
        require_choice("paradigm.extractor", extractor, ("llm", "rules"))
        if not act and (maps is not None or not stage2):
            raise UserError("paradigm.act=false builds maps, so it needs paradigm.stage2=true and paradigm.maps=null.")
        if maps is not None and not stage2:
            raise UserError("paradigm.maps gives the result of stage 2; leave it out together with paradigm.stage2=false.")
        if not reset_between_stages and (not goal_visible or maps is not None):
            raise UserError("paradigm.reset_between_stages=false needs paradigm.goal_visible=true and paradigm.maps=null.")
        self.stage1, self.stage2, self.drop, self.extractor = stage1, stage2, drop, extractor
        self.goal_visible, self.reset_between, self.acts = goal_visible, reset_between_stages, act
        self.k_g, self.stopping, self.map_tokens, self.style = k_g, stopping or DualConvergence(), map_tokens, style
        self.maps = maps
        self.saved: SavedMaps | None = None
        self.actor = ReAct(style, form, show_admissible, show_steps_left, examples)

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Check the settings against the world and the plan; load K_g or have it built. Returns {"k_g", "k_g_from"}."""
        if self.maps is not None:
            self.saved = SavedMaps(self.maps)
            self.saved.check(ctx.tasks)
        elif self.stage2 and not isinstance(ctx.env, HasFacts):
            if self.stopping.needs_facts:
                raise UserError(
                    f"env={ctx.env.name} counts no facts, so the knowledge condition of stopping=dual can never "
                    "hold. Choose stopping=fixed or stopping=none."
                )
            if self.extractor == "rules":
                raise UserError(f"env={ctx.env.name} counts no facts, so paradigm.extractor=rules is not possible; use llm.")
        if not self.stage1:
            return {}
        where = self.k_g or "the explore run"
        document = load_knowledge(self.k_g) if self.k_g else as_document(await ctx.knowledge(), where)
        check_sources(document, ctx.env, where)
        return {"k_g": document["k_g"], "k_g_from": {key: value for key, value in document.items() if key != "k_g"}}

    async def __call__(self, ro: Rollout) -> None:
        """Stages 2 and 3 of one episode."""
        if self.stage1:
            if "k_g" not in ro.artefacts:
                raise HarnessError("MapThenAct with stage1=true needs the artefacts of its `prepare`.")
            ro.knowledge["k_g"] = ro.artefacts["k_g"]
        if self.maps is not None:
            self.load_map(ro)
        elif self.stage2:
            with self._uncounted(ro):
                await self._map(ro)
        if not self.acts:
            ro.finish("completed")
            return
        with ro.phase("acting", ro.budget.acting if self.stage2 else ro.budget.total):
            if self.reset_between or not self.stage2:
                await ro.reset()
            await self.actor.act(ro, self._knowledge(ro))
        ro.finish()

    # -------------------------------------------------------------------------------------------------------- stage 2

    async def _map(self, ro: Rollout) -> None:
        """Explore until the rule, the model, the world or the budget says stop; then extract, note and keep the map."""
        with ro.phase("mapping", ro.budget.mapping):
            first = await ro.reset(show_goal=self.goal_visible)
            watch = self.stopping.start(ro.budget.mapping)
            watch.begin(ro.tracker.facts() if ro.tracker else ())
            reason = await self._explore(ro, watch)
            ro.note("stop", {"reason": reason, "t": watch.t, "known": watch.trace[-1].known if watch.trace else 0})
            ro.note("stop_trace", [asdict(record) for record in watch.trace])
            if watch.t:
                found = await extract_map(
                    ro,
                    first.observation,
                    extractor=self.extractor,
                    goal_visible=self.goal_visible,
                    reset=self.reset_between,
                    k_g=self._rules(ro),
                    style=self.style,
                    max_tokens=self.map_tokens,
                )
                ro.note("map", to_record(found))
                ro.map = dropped(found, self.drop)

    async def _explore(self, ro: Rollout, watch: Watch) -> str:
        chat = ro.chat("mapping").system(self._mapping_prompt(ro))
        text = self.actor.first(ro.step, ro.steps_left)
        while not (reason := watch.reason):
            listens = self.stopping.listens_from is not None and watch.t >= self.stopping.listens_from
            try:
                turn = await ro.turn(chat.user(text), self.actor.form, stop_word=STOP_WORD if listens else "")
            except ContextOverflow:
                return "context_limit"  # what was seen so far can still be put into a map
            if turn.stopped:
                return "model"
            key = observation_key(self.stopping.key, turn.step.observation, ro.tracker)
            watch.update(key, ro.tracker.facts() if ro.tracker else ())
            if turn.step.done:
                return "world_done"
            text = self.actor.next(turn.step, ro.steps_left)
        return reason

    def _mapping_prompt(self, ro: Rollout) -> str:
        card = ro.env.card
        return render(
            "map/mapping",
            ro.task.env,
            style=self.style,
            intro=card.intro,
            actions=card.actions,
            notes=card.notes,
            k_g=self._rules(ro),
            task=ro.goal if self.goal_visible else "",
            goal_visible=self.goal_visible,
            budget=ro.budget.mapping,
            stop_word=STOP_WORD if self.stopping.listens_from is not None else "",
            stop_from=self.stopping.listens_from,
            format=self.actor.format(ro.task.env),
        )

    @contextmanager
    def _uncounted(self, ro: Rollout) -> Iterator[None]:
        """Nothing that happens while mapping counts, also when a limit ends the whole episode there."""
        try:
            yield
        finally:
            if self.reset_between:
                ro.step = replace(ro.step, success=False, score=0.0)

    def load_map(self, ro: Rollout) -> SavedMaps:
        """Take the map of an earlier run; returns all of that run's maps."""
        self.saved = saved = self.saved or SavedMaps(self.maps or "")
        saved.check([ro.task])
        notes = saved.find(ro.task) or {}
        ro.note("map", notes["map"])
        ro.note("map_source", f"saved:{notes.get('map_source', '')}")
        ro.map = dropped(from_record(notes["map"]), self.drop)
        return saved

    # -------------------------------------------------------------------------------------------------------- stage 3

    def _rules(self, ro: Rollout) -> str:
        return knowledge_text(ro.knowledge.get("k_g", {}), COMPACT_RULES if self.style == "compact" else None)

    def _knowledge(self, ro: Rollout) -> str:
        """The block with K_g and M in the acting prompt; empty if there is neither."""
        k_g, known = self._rules(ro), ro.map is not None and not ro.map.is_empty()
        if not k_g and not known:
            return ""
        texts = (
            map_texts(ro.map)
            if ro.map is not None
            else dict.fromkeys(("spatial", "absent", "affordances", "task_notes", "unknown"), "")
        )
        return render("map/act_block", ro.task.env, style=self.style, k_g=k_g, reset=self.reset_between, **texts)
