"""Stage 1 of MAP: explore a few training tasks and distil K_g, the general rules of a world (MAP, section 3.2.1).

    Focus Analyzer   world card + recorded expert episodes -> focus points                          (`prepare`)
    Explorer         each task up to `max_attempts` times; after a failure the Reflector writes a lesson     (episode)
    Distiller        all attempts, good and bad -> K_g                                              (`finalise`)

One task is one episode; its attempts are resets within it. The record keeps every attempt, so K_g can be traced to its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentexp.actions import without_thinking
from agentexp.capabilities import HasOracle
from agentexp.core import Completion, Env, Episode, Task, Usage
from agentexp.errors import ContextOverflow, LimitReached
from agentexp.hooks import ARTEFACTS_FILE, Context
from agentexp.paradigms.checks import check_not_test
from agentexp.paradigms.json_reply import BadReply, ask_json, token_limit
from agentexp.paradigms.map.cognitive_map import capped
from agentexp.paradigms.map.distiller import distill
from agentexp.paradigms.map.knowledge import ROLES
from agentexp.paradigms.map.tasks import select_tasks
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.record import trajectory_text
from agentexp.prompts import Style, hashes, render
from agentexp.rollout import Chat, Rollout
from agentexp.store import read_json

LESSON_CHARS = 400  # of a reflection that is not JSON: kept as plain text, as Reflexion does


class GlobalExploration:
    """Explore training tasks; `finalise` gives K_g. Each attempt may take `budget.acting` steps.

    Args:
        n_tasks: training tasks (ours; one per kind of task where that is possible).
        max_attempts: tries per task, with a reflection after each failure.
        shown_reflections: newest reflections that an attempt sees.
        n_demos: recorded expert episodes of other training tasks for the Focus Analyzer (F_manual), where there is an expert.
        max_focus_points: most focus points.
        max_items: most items in each list of K_g.
        split: where the tasks come from; test splits are refused.
        batch_chars: recordings in one Distiller prompt, in characters.
        reply_tokens: limit of the Focus Analyzer's, Reflector's and Distiller's replies; the model's own where that is higher.
        style: see `ReAct`, as for the next three.
        form: see `ReAct`.
        show_admissible: see `ReAct`.
        show_steps_left: see `ReAct`.
    """

    name = "explore"
    roles = ROLES

    def __init__(
        self,
        n_tasks: int = 6,
        max_attempts: int = 3,
        shown_reflections: int = 3,
        n_demos: int = 2,
        max_focus_points: int = 8,
        max_items: int = 8,
        split: str = "train",
        batch_chars: int = 24000,
        reply_tokens: int = 2048,
        style: Style = "full",
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
    ) -> None:
        self.n_tasks, self.max_attempts, self.shown_reflections = n_tasks, max_attempts, shown_reflections
        self.n_demos, self.max_focus_points, self.max_items, self.split = n_demos, max_focus_points, max_items, split
        self.batch_chars, self.reply_tokens, self.style = batch_chars, reply_tokens, style
        self.actor = ReAct(style, form, show_admissible, show_steps_left)

    def plan(self, env: Env, seed: int = 0) -> list[Task]:
        """The training tasks to explore."""
        return select_tasks(env, self.n_tasks, self.split, seed)

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Refuse test tasks, then ask the Focus Analyzer, once per run: a resumed run goes on with the points it began with.

        Returns:
            {"focus_points": sentences, "focus_source": "llm", "repaired" or, if the model gave nothing usable, "default"}.
        """
        check_not_test(ctx.tasks, ctx.env)
        if (earlier := read_json(ctx.folder / ARTEFACTS_FILE)) is not None:
            return earlier
        demos = await self._demos(ctx) if self.n_demos and isinstance(ctx.env, HasOracle) else []
        card = ctx.env.card
        prompt = render(
            "map/focus_analyzer",
            ctx.env.name,
            intro=card.intro,
            actions=card.actions,
            notes=card.notes,
            demos="\n\n".join(demos),
            max_points=self.max_focus_points,
        )

        async def ask(chat: Chat) -> Completion:
            tokens = token_limit(ctx.models, "focus_analyzer", self.reply_tokens)
            return await ctx.ask(chat.messages, purpose="map_focus_analyzer", role="focus_analyzer", max_tokens=tokens)

        try:
            points, source = await ask_json(ask, Chat("focus").user(prompt), self._read_focus, ctx.parsing)
        except (BadReply, ContextOverflow):
            return {"focus_points": render("map/default_focus", ctx.env.name).splitlines(), "focus_source": "default"}
        return {"focus_points": points, "focus_source": source}

    def _read_focus(self, value: dict[str, Any]) -> tuple[list[str], bool]:
        entries = value.get("focus_points")
        if not isinstance(entries, list):
            raise BadReply('"focus_points" must be a list.')
        points = []
        for entry in entries:
            fields = entry if isinstance(entry, dict) else {"question": entry}
            question, test = (str(fields.get(key) or "").strip() for key in ("question", "how_to_test"))
            if question:
                points.append(f"{question} (test: {test})" if test else question)
        if not points:
            raise BadReply("it names no focus point.")
        return points[: self.max_focus_points], len(points) < len(entries)

    async def _demos(self, ctx: Context) -> list[str]:
        """F_manual: what the world's own expert does on training tasks that are not explored."""
        tasks = select_tasks(ctx.env, self.n_demos, self.split, skip=ctx.tasks)
        texts = []
        for task in tasks:
            async with ctx.lease() as world:
                start = await world.reset(task)
                steps = [(action, (await world.step(action)).observation) for action in await world.call("oracle")]
            texts.append(f"Task: {start.goal}\n{trajectory_text(steps, start.observation, clip=500)}")
        return texts

    # -------------------------------------------------------------------------------------------------------- episode

    async def __call__(self, ro: Rollout) -> None:
        """Try one training task until it is solved or the attempts are used up, reflecting in between."""
        attempts: list[dict[str, Any]] = []
        reflections: list[dict[str, str]] = []
        ro.note("attempts", attempts)
        ro.note("reflections", reflections)
        for number in range(1, self.max_attempts + 1):
            lessons = [_lesson(reflection) for reflection in reflections[-self.shown_reflections :]]
            attempts.append(await self._attempt(ro, lessons))
            if attempts[-1]["success"] or number == self.max_attempts:
                break
            reflections.append(await self._reflect(ro, attempts[-1]))
        ro.finish("completed")

    async def _attempt(self, ro: Rollout, lessons: list[str]) -> dict[str, Any]:
        first = len(ro.episode.trajectory)
        with ro.phase("exploring", ro.budget.acting):
            start = await ro.reset()
            reason = ""
            try:
                await self._explore(ro, lessons)
            except ContextOverflow:
                reason = "context_limit"
            except LimitReached as limit:
                if limit.reason != "invalid_limit":  # tokens or money: the whole episode ends
                    raise
                reason = limit.reason
        success = ro.step.success
        return {
            "first": first,
            "steps": len(ro.episode.trajectory) - first,
            "start": start.observation,
            "success": success,
            "score": ro.step.score,
            "reason": reason or ("won" if success else "lost" if ro.step.done else "step_limit"),
            "affordances": capped(ro.tracker.map(ro.goal)).affordances if ro.tracker else [],
        }

    async def _explore(self, ro: Rollout, lessons: list[str]) -> None:
        card = ro.env.card
        chat = ro.chat("explorer").system(
            render(
                "map/explorer",
                ro.task.env,
                style=self.style,
                intro=card.intro,
                actions=card.actions,
                notes=card.notes,
                focus_points=ro.artefacts.get("focus_points", []),
                reflections=lessons,
                format=self.actor.format(ro.task.env),
            )
        )
        await self.actor.play(ro, chat)

    async def _reflect(self, ro: Rollout, attempt: dict[str, Any]) -> dict[str, str]:
        """The Reflector's nu: {"cause", "rule", "next_time"}; a reply that stays unreadable is kept as plain advice."""
        replies: list[str] = []

        async def ask(chat: Chat) -> Completion:
            tokens = token_limit(ro.models, "reflector", self.reply_tokens)
            reply = await ro.ask(chat, role="reflector", purpose="map_reflector", max_tokens=tokens)
            replies.append(without_thinking(reply.text, ro.parsing))
            return reply

        for clip in (500, 100):
            prompt = render(
                "map/reflector",
                ro.task.env,
                goal=ro.goal,
                reason=attempt["reason"],
                trajectory=trajectory_text(((action, step.observation) for action, step in ro.history), attempt["start"], clip),
            )
            try:
                reflection, _ = await ask_json(ask, ro.chat("reflector").user(prompt), _read_reflection, ro.parsing)
            except ContextOverflow:
                continue
            except BadReply:
                break
            return reflection
        return {"cause": "", "rule": "", "next_time": " ".join(replies[-1].split())[:LESSON_CHARS] if replies else ""}

    # ------------------------------------------------------------------------------------------------------- finalise

    async def finalise(self, ctx: Context, episodes: Sequence[Episode]) -> dict[str, Any]:
        """Distil K_g from all finished episodes. Returns the document that the runner saves as `kg.json`."""
        done = [episode for episode in episodes if episode.status == "ok"]
        check_not_test((episode.task for episode in done), ctx.env)
        distilled = await distill(
            ctx, done, max_items=self.max_items, batch_chars=self.batch_chars, max_tokens=self.reply_tokens
        )
        attempts = [attempt for episode in done for attempt in episode.notes.get("attempts", [])]
        usage = sum((episode.usage for episode in done), ctx.usage)
        return {
            "schema": 1,
            "env": ctx.env.name,
            "model": ctx.models["actor"].label,
            "source": distilled.source,
            "k_g": distilled.k_g,
            "provenance": {
                "tasks": [{"id": e.task.id, "split": e.task.split, "seed": e.task.seed, "kind": e.task.kind} for e in done],
                "attempts": len(attempts),
                "solved": sum(attempt["success"] for attempt in attempts),
                "steps": sum(attempt["steps"] for attempt in attempts),
                "reflections": sum(len(episode.notes.get("reflections", [])) for episode in done),
                "focus_points": list(ctx.artefacts.get("focus_points", [])),
                "focus_source": ctx.artefacts.get("focus_source", ""),
                "batches": distilled.batches,
                "problems": distilled.problems,
                "prompts": {name: value for name, value in hashes().items() if name.startswith(("map/", "format/", "react/"))},
                "usage": _usage(usage),
            },
        }


def _read_reflection(value: dict[str, Any]) -> tuple[dict[str, str], bool]:
    fields = {key: str(value.get(key) or "").strip() for key in ("cause", "rule", "next_time")}
    if not fields["rule"] and not fields["next_time"]:
        raise BadReply('it needs the keys "cause", "rule" and "next_time".')
    return fields, False


def _lesson(reflection: dict[str, str]) -> str:
    return " ".join(text for key in ("cause", "rule", "next_time") if (text := reflection[key]))


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "calls": usage.calls,
        "cost": usage.cost,
    }
