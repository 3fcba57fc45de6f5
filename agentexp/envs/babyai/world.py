"""The BabyAI environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, FactTracker, Policy, Step, Task
from agentexp.envs.babyai import alignment, checkpoints, expert, levels, policies, protocol, questions
from agentexp.envs.babyai.engine import Engine
from agentexp.envs.babyai.frame import Frame
from agentexp.envs.babyai.progress import Progress
from agentexp.envs.babyai.scene import Scene
from agentexp.envs.babyai.tracker import GridTracker
from agentexp.errors import UserError
from agentexp.packages import version_of

LOGIC = "1"  # changes when the same actions on the same instance would be answered differently

CARD = EnvCard(
    intro="You are a small robot in a grid of rooms. You see only what is in front of you.",
    actions="turn left | turn right | move forward | go to {thing} {number} | pickup {thing} {number} | drop | "
    "go through {open door} {number} | toggle and go through {closed or locked door} {number} | toggle | "
    "check available actions",
    notes='A thing in view is named with its number, as in "red ball 1" or "blue closed door 2"; numbers are given anew with '
    'every observation, the nearest of a name is 1. You can carry one thing. "toggle" opens the door right in front of you. A '
    "locked door opens only with a key of its colour in your hand.",
    aliases=((r"pick up (.+)", r"pickup \1"),),
    info_actions=r"^check\b",
    plays_on=True,
)


class BabyAI:
    """BabyAI as an `Env`: pure Python on minigrid, about a millisecond a step.

    Success is minigrid's own verdict (with one repair, see `Engine.move`), the score AgentBoard's progress rate on
    sub-goals of ours (see `progress`). A mission that forbids a mistake ("strict") ends unsolved with it; AgentBoard lets
    one play on there. The world has no step limit of its own: minigrid's counts moves, AgentBoard's counts actions (30).

    Args:
        goal_wording: "minigrid" gives the mission as it is; "agentboard" writes "and" for "then" and "after you", as
            AgentBoard's agents see it, though the order still counts.
    """

    name = levels.NAME
    card = CARD
    deterministic = True

    def __init__(self, goal_wording: Literal["minigrid", "agentboard"] = "minigrid") -> None:
        self._wording = goal_wording
        self._engine: Engine | None = None
        self.scene: Scene
        self._options: protocol.Options
        self._progress: Progress
        self._frame: Frame
        self._goal = ""
        self._over = self._won = False

    # --------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return tuple(levels.SEEDS)

    def tasks(self, split: str) -> list[Task]:
        """See `levels.tasks`."""
        return levels.tasks(split)

    def versions(self) -> dict[str, str]:
        """Version of the engine and of the protocol."""
        return {"minigrid": version_of("minigrid"), "babyai_logic": LOGIC, "babyai_goal": self._wording}

    # ------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """Build the instance. Level and seed make it; the run's seed changes nothing."""
        engine = self._engine = Engine(*levels.read_id(task))
        self.scene = engine.scene()
        self._progress, self._frame = Progress(engine.clauses(), self.scene), Frame(self.scene, engine.room_size)
        self._over = self._won = False
        self._goal = engine.mission
        if self._wording == "agentboard":
            self._goal = self._goal.replace("then", "and").replace("after you", "and")
        return self._answer(protocol.describe(self.scene), goal=self._goal)

    def step(self, action: str) -> Step:
        """Carry out one action, move by move until one of them changes nothing; `error` if none did.

        `info["moves"]` holds minigrid's actions that changed something, so a record can be replayed without this protocol.
        After the end of the episode the grid goes on answering.
        """
        engine = self._running()
        action = action.lower().strip()
        if "check" in action:
            return self._answer(protocol.listing(self._options))
        moves = self._options.moves.get(action)
        if not moves:
            return self._answer(protocol.NO_CHANGE if moves == () else self._options.refusal(action), error=True)
        done, was_over = 0, self._over
        for move in moves:
            verdict = engine.move(move)
            if not self._over and verdict != "continue":
                self._over, self._won = True, verdict == "success"
            before, self.scene = self.scene, engine.scene()
            if before.key == self.scene.key:
                break
            done += 1
        if not was_over:
            self._progress.observe(self.scene, self._won)
        text = protocol.describe(self.scene) + (protocol.COMPLETED if self._won and not was_over else "")
        return self._answer(text, error=not done, moves=moves[:done])

    def close(self) -> None:
        """Forget the instance."""
        self._engine = None

    def _running(self) -> Engine:
        if self._engine is None:
            raise UserError("babyai: call reset first.")
        return self._engine

    def _answer(self, text: str, *, error: bool = False, goal: str = "", moves: Sequence[int] = ()) -> Step:
        self._options = protocol.options(self.scene)
        return Step(
            text,
            done=self._over,
            success=self._won,
            score=self._progress.rate,
            error=error,
            admissible=tuple(self._options.moves),
            goal=goal,
            info={"moves": list(moves), **self._frame.info(self.scene)},
        )

    # -------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """Actions from the current state to success. Raises `UserError` where there is no way, naming the reason."""
        engine = self._running()
        if self._won:
            return []
        if self._over:
            raise UserError("babyai's expert knows no way from here: the mission has failed by a mistake that it forbids.")
        return expert.solve(self.scene, engine.pending())

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `babyai.checkpoints`."""
        return checkpoints.checkpoints(self.scene, self._frame, self._running().clauses(), relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `babyai.checkpoints.GridMatcher`."""
        return checkpoints.GridMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `babyai.questions`."""
        engine = self._running()
        return questions.questions(self.scene, self._frame, engine.clauses(), self._goal, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `babyai.alignment`."""
        self._running()
        return alignment.align(self.scene, self._frame, known)

    def fact_tracker(self) -> FactTracker:
        """See `GridTracker`."""
        return GridTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """curious, myopic or mapuser."""
        return policies.make(name, seed)
