"""Map QA: a reader answers questions about an instance from its map alone (MAP, section 4.3, appendix C.3, figure 3).

map      as `MapThenAct` does in stage 2, or taken from an earlier `agentexp map`
reset    the questions, their answers and the check of the map come from the engine's own state
ask      one model call per question (role "reader", else "actor"), or a look-up by rule: the upper bound for this map
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from agentexp.actions import without_thinking
from agentexp.capabilities import Alignment, HasAlignment, HasQuestions, Question
from agentexp.core import CognitiveMap, Episode, stable_seed
from agentexp.errors import UserError
from agentexp.hooks import Context
from agentexp.metrics import map_qa
from agentexp.metrics.map_qa import CountsAs, Scope
from agentexp.paradigms.checks import require_choice
from agentexp.paradigms.json_reply import token_limit
from agentexp.paradigms.map.cognitive_map import Drop, map_texts
from agentexp.paradigms.map.extractor import Extractor
from agentexp.paradigms.map.knowledge import ROLES
from agentexp.paradigms.map.paradigm import MapThenAct
from agentexp.paradigms.map.stopping import Stopping
from agentexp.paradigms.react import Form
from agentexp.prompts import Style, render
from agentexp.rollout import Rollout

TITLES = {
    "spatial": "Where things are",
    "absent": "Not there",
    "affordances": "What actions do",
    "task_notes": "For the task",
    "unknown": "Not explored",
}


class MapQa:
    """Questions to a map. An episode ends as "completed"; its score is the share of right answers.

    Args:
        maps: run folder of an earlier `agentexp map` whose maps are read; None maps each instance first.
        reader: "model" asks the model of role "reader" (else "actor"); "rules" looks the answer up, without a call.
        scope: "observed" asks about what the exploration saw (fidelity of the map), "all" about anything (adds coverage).
        questions_per_category: at most so many of each of the four categories.
        unknown_counts_as: "wrong", or "left_out" of the score; "unknown" is counted apart in either case.
        answer_tokens: of one answer; the model's own limit where that is higher (reasoning models).
        drop: see `MapThenAct`, as for the rest; they matter where `maps` is None, save for `drop` and `style`.
        stage1: see `MapThenAct`.
        extractor: see `MapThenAct`.
        goal_visible: see `MapThenAct`.
        k_g: see `MapThenAct`.
        stopping: see `MapThenAct`.
        map_tokens: see `MapThenAct`.
        style: see `MapThenAct`.
        form: see `MapThenAct`.
        show_admissible: see `MapThenAct`.
        show_steps_left: see `MapThenAct`.
    """

    name = "map_qa"
    roles = ("reader", *ROLES)

    def __init__(
        self,
        maps: str | None = None,
        reader: Literal["model", "rules"] = "model",
        scope: Scope = "observed",
        questions_per_category: int = map_qa.PER_CATEGORY,
        unknown_counts_as: CountsAs = "wrong",
        answer_tokens: int = 64,
        drop: Drop = "none",
        stage1: bool = True,
        extractor: Extractor = "llm",
        goal_visible: bool = True,
        k_g: str | None = None,
        stopping: Stopping | None = None,
        map_tokens: int = 2048,
        style: Style = "full",
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
    ) -> None:
        require_choice("paradigm.reader", reader, ("model", "rules"))
        require_choice("paradigm.scope", scope, ("observed", "all"))
        require_choice("paradigm.unknown_counts_as", unknown_counts_as, ("wrong", "left_out"))
        if questions_per_category < 1:
            raise UserError(f"paradigm.questions_per_category must be at least 1, not {questions_per_category}.")
        self.maps, self.reader, self.scope, self.per_category = maps, reader, scope, questions_per_category
        self.unknown_counts_as, self.answer_tokens, self.style = unknown_counts_as, answer_tokens, style
        self.mapper = MapThenAct(
            stage1=stage1 and maps is None,
            drop=drop,
            extractor=extractor,
            goal_visible=goal_visible,
            act=maps is not None,  # only its `load_map` is used then
            maps=maps,
            k_g=k_g,
            stopping=stopping,
            map_tokens=map_tokens,
            style=style,
            form=form,
            show_admissible=show_admissible,
            show_steps_left=show_steps_left,
        )

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """What mapping needs, see `MapThenAct.prepare`. Raises `UserError` for a world without questions, too."""
        if not isinstance(ctx.env, HasQuestions):
            raise UserError(f"env={ctx.env.name} has no questions about its instances, so paradigm=map_qa is not possible.")
        return await self.mapper.prepare(ctx)

    async def __call__(self, ro: Rollout) -> None:
        """Map or load the map; reset; ask."""
        if self.maps is not None:
            saved = self.mapper.load_map(ro)
            turns = [map_qa.turn_text(*turn) for turn in saved.turns(ro.task)]
        else:
            await self.mapper(ro)
            turns = [map_qa.turn_text(action, step.observation) for action, step in ro.history]
        known = ro.map or CognitiveMap()
        first = await ro.reset()
        await self._align(ro, known)
        questions = await self._questions(ro, [first.observation, *turns])
        with ro.phase("questions", 0):
            await self._ask(ro, questions, known)
        ro.finish("completed")
        ro.episode.score = map_qa.accuracy(ro.episode.notes[map_qa.NOTE], self.unknown_counts_as) or 0.0

    async def finalise(self, ctx: Context, episodes: Sequence[Episode]) -> dict[str, Any]:
        """Accuracy per category over the run, see `MapQaSummary`."""
        records = [
            {"status": e.status, "task": {"id": e.task.id, "seed": e.task.seed}, "notes": dict(e.notes)} for e in episodes
        ]
        return asdict(map_qa.summarise_map_qa(records, self.unknown_counts_as))

    async def _align(self, ro: Rollout, known: CognitiveMap) -> None:
        if isinstance(ro.env, HasAlignment):
            found: Alignment = await ro.world.call("align", known)
            ro.note("alignment", {**found._asdict(), "wrong": [list(entry) for entry in found.wrong]})

    async def _questions(self, ro: Rollout, turns: Sequence[str]) -> list[Question]:
        seed = stable_seed("map_qa", ro.task.env, ro.task.split, ro.task.id)
        pool: list[Question] = await ro.world.call("questions", seed)
        return map_qa.choose(pool, turns, scope=self.scope, per_category=self.per_category, seed=seed)

    async def _ask(self, ro: Rollout, questions: Sequence[Question], known: CognitiveMap) -> None:
        rows = [map_qa.row(question, self.scope) for question in questions]
        ro.note(map_qa.NOTE, rows)  # filled one by one: a limit that ends the episode leaves the rest unanswered
        text = map_text(known)
        for i, question in enumerate(questions):
            rows[i] = map_qa.row(question, self.scope, await self._answer(ro, question, known, text))

    async def _answer(self, ro: Rollout, question: Question, known: CognitiveMap, text: str) -> str:
        if self.reader == "rules":
            assert isinstance(ro.env, HasQuestions)
            return ro.env.look_up(question, known)
        prompt = render(
            "map/qa",
            ro.task.env,
            style=self.style,
            map=text,
            question=question.text,
            choices=list(question.choices),
        )
        chat = ro.chat("question").user(prompt)
        tokens = token_limit(ro.models, "reader", self.answer_tokens)
        completion = await ro.ask(chat, role="reader", purpose="map_qa", max_tokens=tokens)
        chat.assistant(completion.text)
        return without_thinking(completion.text, ro.parsing)


def map_text(known: CognitiveMap) -> str:
    """The map as a reader sees it: the five lists under their titles."""
    texts = map_texts(known)
    blocks = [f"{TITLES[key]}:{' ' if key == 'unknown' else chr(10)}{texts[key]}" for key in TITLES if texts[key]]
    return "\n".join(blocks) or "(empty)"
