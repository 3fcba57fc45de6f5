"""TTExplore (arXiv 2605.24828): an actor, and now and then a thinker who looks for the hidden rule behind what happened.

    act n steps     think . answer, one action a turn, as ReAct does
    think           the thinker reads actions, task, first observation and all that happened:  <deepthink> ... </deepthink>
    act n steps     the newest thought stands below the observation that it followed
    ...

Thinking costs no environment step. With n = 0 nobody thinks, and an episode is ReAct's, message for message. The thinker is a
role of its own ("thinker", by default the actor's model); its tokens are accounted to that role. It never sees the engine, and
a thought that cannot be read, or a history that no longer fits, is recorded and otherwise changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agentexp.core import Message, Step
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.checks import require_choice
from agentexp.paradigms.deepthink import Thought, read_thought
from agentexp.paradigms.json_reply import token_limit
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.record import trajectory_text
from agentexp.prompts import Style, render
from agentexp.rollout import Chat, Rollout

Trigger = Literal["schedule", "stuck", "both"]

THOUGHTS = "thoughts"  # the note with one entry per call of the thinker
CLIPS = (None, 500, 150)  # characters of an observation in the thinker's prompt, shorter while it does not fit


class TTExplore:
    """A ReAct actor guided by a thinker.

    Args:
        every: n, actor steps between two thoughts; 0 = never, which is ReAct. Papers of the second hand say 3 for larger and 6
            for smaller models.
        trigger: "schedule" thinks after every n steps; "stuck" (ours) when the last `stuck_after` steps were all refused or
            all repeated an earlier action with an earlier answer, whatever n is (but not 0); "both".
        stuck_after: steps that have to go wrong in a row; also the least distance of such a thought to the last one.
        keep_last_guidance: thoughts that stay in the actor's prompt; None = all.
        thinker_tokens: limit of a thought; the model's own where that is higher.
        style: of the actor's prompts, see `ReAct`.
        thinker_style: of the thinker's prompt; None = `style`.
        form: see `ReAct`; as the next three.
        show_admissible: see `ReAct`.
        show_steps_left: see `ReAct`.
        examples: see `ReAct`.
    """

    name = "ttexplore"
    roles: tuple[str, ...] = ("thinker",)

    def __init__(
        self,
        every: int = 6,
        trigger: Trigger = "schedule",
        stuck_after: int = 3,
        keep_last_guidance: int | None = 1,
        thinker_tokens: int = 1024,
        style: Style = "full",
        thinker_style: Style | None = None,
        form: Form = "think_answer",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        if every < 0:
            raise UserError(f"paradigm.every={every} must be 0 (nobody thinks) or a number of steps.")
        require_choice("paradigm.trigger", trigger, ("schedule", "stuck", "both"))
        if stuck_after < 1:
            raise UserError(f"paradigm.stuck_after={stuck_after} must be at least 1.")
        if keep_last_guidance is not None and keep_last_guidance < 1:
            raise UserError(f"paradigm.keep_last_guidance={keep_last_guidance} must be at least 1, or null for all.")
        self.every, self.trigger, self.stuck_after, self.keep = every, trigger, stuck_after, keep_last_guidance
        self.thinker_tokens, self.thinker_style = thinker_tokens, thinker_style or style
        self.actor = ReAct(style, form, show_admissible, show_steps_left, examples)

    async def __call__(self, ro: Rollout) -> None:
        """One episode: act for the whole budget, think when it is time, settle."""
        with ro.phase("acting", ro.budget.total):
            start = await ro.reset()
            if self.every:
                await self._play(ro, start)
            else:
                await self.actor.act(ro)
        ro.finish()

    async def _play(self, ro: Rollout, start: Step) -> None:
        thoughts: list[dict[str, Any]] = []
        ro.note(THOUGHTS, thoughts)
        actor, talk = self.actor, self.dialogue(ro)
        text = actor.first(start, ro.steps_left, ro.goal)
        while ro.steps_left > 0 and not ro.step.done:  # so nobody is asked for a thought that no step can follow
            reason = self.due(ro.history, thoughts[-1]["step"] if thoughts else 0)
            guidance = await self.advise(ro, start, reason, thoughts) if reason else ""
            turn = await ro.turn(talk.say(text, guidance), actor.form)
            text = actor.next(turn.step, ro.steps_left)

    def dialogue(self, ro: Rollout) -> Dialogue:
        """The actor's conversation with its system prompt; nothing is said yet."""
        block = render("ttexplore/actor", ro.task.env, style=self.actor.style)
        return Dialogue(ro, self.actor.system(ro.env.card, ro.task.env, block), self.keep)

    async def advise(self, ro: Rollout, start: Step, reason: str, thoughts: list[dict[str, Any]]) -> str:
        """Ask the thinker now; what the actor is told, empty where the thought could not be read.

        Args:
            ro: the episode; the thought also goes into `ro.knowledge["guidance"]`.
            start: answer to the reset.
            reason: for the record.
            thoughts: gets an entry.
        """
        thought = await self._think(ro, start, reason, thoughts)
        if not thought.text:
            return ""
        kept = [*ro.knowledge.get("guidance", ()), thought.text]
        ro.knowledge["guidance"] = kept if self.keep is None else kept[-self.keep :]
        return render("ttexplore/guidance", ro.task.env, style=self.actor.style, step=len(ro.history), deepthink=thought.text)

    def due(self, history: Sequence[tuple[str, Step]], last: int = 0) -> str:
        """Why it is time to think before the next step: "schedule", "stuck", or empty if it is not.

        Args:
            history: (action, answer) of the steps so far.
            last: number of steps after which the last thought came; 0: there was none.
        """
        done = len(history)
        if not self.every or not done:
            return ""
        if self.trigger != "stuck" and done % self.every == 0:
            return "schedule"
        if self.trigger != "schedule" and done - last >= self.stuck_after and is_stuck(history, self.stuck_after):
            return "stuck"
        return ""

    async def _think(self, ro: Rollout, start: Step, reason: str, thoughts: list[dict[str, Any]]) -> Thought:
        """Ask the thinker, with observations cut while the prompt does not fit. What came of it is added to `thoughts`."""
        entry: dict[str, Any] = {"step": len(ro.history), "reason": reason, "status": "context_limit", "text": "", "call": None}
        entry["score"] = ro.step.score
        steps = [(action, step.observation) for action, step in ro.history]
        chat = ro.chat("thinking")
        tokens = token_limit(ro.models, "thinker", self.thinker_tokens)
        for clip in CLIPS:
            chat.messages.clear()
            chat.user(
                render(
                    "ttexplore/thinker",
                    ro.task.env,
                    style=self.thinker_style,
                    actions=ro.env.card.actions,
                    task=ro.goal,
                    init_observation=start.observation,
                    history=trajectory_text(steps, clip=clip),
                )
            )
            try:
                reply = await ro.ask(chat, role="thinker", purpose="ttx_thinker", max_tokens=tokens)
            except ContextOverflow as overflow:
                entry["error"] = str(overflow)
                continue
            chat.assistant(reply.text)
            thought = read_thought(reply.text, reply.finish_reason, ro.parsing)
            entry |= {"status": thought.status, "text": thought.text, "call": len(ro.episode.calls) - 1}
            thoughts.append(entry)
            return thought
        thoughts.append(entry)
        return Thought("", "unreadable")


def is_stuck(history: Sequence[tuple[str, Step]], window: int) -> bool:
    """Whether the last `window` steps were all refused, or all had been seen before: the same action with the same answer."""
    if len(history) < window:
        return False
    if all(step.error for _, step in history[-window:]):
        return True
    pairs = [(action, step.observation) for action, step in history]
    return all(pairs[t] in pairs[:t] for t in range(len(pairs) - window, len(pairs)))


class Dialogue:
    """The actor's conversation. Guidance stands in the user message with the observation that it followed.

    It has no message of its own because many chat templates refuse two user messages in a row. Chats of an episode only grow;
    when an older thought is dropped, the dialogue goes on in a new one that never had it.
    """

    def __init__(self, ro: Rollout, system: str, keep: int | None) -> None:
        self._ro, self._keep = ro, keep
        self._chat = ro.chat("acting").system(system)
        self._plain: dict[int, str] = {}  # observation alone, by the number of a message that has guidance

    def say(self, observation: str, guidance: str = "") -> Chat:
        """Append the next user message and return the chat to answer."""
        if not guidance:
            return self._chat.user(observation)
        outdated = [] if self._keep is None else sorted(self._plain)[: max(0, len(self._plain) + 1 - self._keep)]
        if outdated:
            fresh = self._ro.chat("acting")
            fresh.messages.extend(self._chat.messages)
            for number in outdated:
                fresh.messages[number] = Message("user", self._plain.pop(number))
            self._chat = fresh
        self._plain[len(self._chat.messages)] = observation
        return self._chat.user(f"{observation}\n\n{guidance}")
