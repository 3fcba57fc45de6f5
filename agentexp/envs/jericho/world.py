"""Jericho: interactive fiction on the z-machine (Hausknecht et al., 2020), as the text-adventure world of AgentBoard.

Without `games`: ten stories of our own, each in several variants; nothing to download. With `games`: the user's story files.

Progress is the story's score over its maximum, the highest so far. AgentBoard counts hand-written subgoal sentences that were
seen in the answers instead; its lists are not public in a form that could be had, so progress rates differ from published ones.
Success is the story's own good end, and only with it progress is 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, FactTracker, Policy, Step, Task
from agentexp.envs.jericho import alignment, checkpoints, policies, questions, roms, valid
from agentexp.envs.jericho.card import CARD, FORBIDDEN, NOT_HERE, REFUSED, first_sentence
from agentexp.envs.jericho.engine import Answer, Engine
from agentexp.envs.jericho.expert import solve
from agentexp.envs.jericho.matcher import StoryMatcher
from agentexp.envs.jericho.plans import PLANS
from agentexp.envs.jericho.scene import Scene
from agentexp.envs.jericho.stories import BY_NAME, STORIES, Story, games
from agentexp.envs.jericho.tracker import DARK, StoryTracker
from agentexp.envs.jericho.walkthrough import Walkthrough
from agentexp.errors import UserError
from agentexp.packages import version_of
from agentexp.paths import inside

LOGIC = "1"  # changes when the same story and actions would be answered differently
SPLITS = ("train", "dev", "test")
_END = re.compile(r"(\*\*\* [^*]+ \*\*\*).*", re.DOTALL)
_OVER = "The story has ended."


class Jericho:
    """Interactive fiction as an `Env` with expert, facts and scripted agents. Starts a z-machine at the first reset.

    A game of ours is a story in a variant (id "museum/1"): the variant draws where things lie and which number, lever or
    ingredient is the right one. Splits are by story, so a test story is never seen in training.

    Args:
        games: folder with story files of the user's (splits test: AgentBoard's 20 games, and all); null for our stories.
        admissible: list the valid actions at every step.
        allow_partial: accept a folder with fewer than AgentBoard's 20 games.
    """

    name = "jericho"
    card = CARD
    alternative_splits = ("all",)

    def __init__(self, games: str | None = None, admissible: bool = True, allow_partial: bool = False) -> None:
        self._games, self._list, self._partial = games, admissible, allow_partial
        if games is not None:
            self.card = replace(CARD, notes=CARD.notes + " Which verbs are understood differs from story to story.")
        self._engine: Engine | None = None
        self._story: Story | None = None
        self._best = 0.0
        self._ended: Step | None = None
        self._path: Walkthrough | None = None

    # --------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """Names of the splits: train, dev and test for our stories, test and all for a folder of the user's."""
        return SPLITS if self._games is None else roms.SPLITS

    def tasks(self, split: str) -> list[Task]:
        """Games of a split: train 24 of 2 stories, dev 10 of one, test 20 of 7; the kind is the story."""
        if split not in self.splits():
            raise UserError(f"env.split={split} does not exist in jericho; choose one of {', '.join(self.splits())}.")
        if self._games is not None:
            found = roms.games(self._games, split, self._partial)
            return [Task(name, self.name, split, kind=name, spec={"file": file}) for name, file in found]
        return [
            Task(f"{story.name}/{variant}", self.name, split, kind=story.name, spec={"story": story.name, "variant": variant})
            for story, variant in games(split)
        ]

    def versions(self) -> dict[str, str]:
        """Versions of jericho and of the stories' files, and of the logic."""
        digest = blake2b(digest_size=6)
        if self._games is None:
            files = [story.file for story in STORIES]
        else:
            files = [Path(self._games).expanduser() / name for name in roms.story_files(self._games).values()]
        for file in files:
            digest.update(file.name.encode() + file.read_bytes())
        return {"jericho": version_of("jericho"), "jericho_stories": digest.hexdigest(), "jericho_logic": LOGIC}

    # ------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """Start the story anew. The observation is its opening with the first room."""
        engine = self._engine = self._engine or Engine()
        self._best, self._ended, self._path = 0.0, None, None
        if self._games is None:
            name, _, number = task.id.partition("/")
            self._story = BY_NAME.get(name)
            if self._story is None or not number.isdecimal():
                raise UserError(f"jericho has no game {task.id!r}; ids come from `tasks` (story/variant).")
            engine.load(self._story.file, ours=True)
            answer, goal = engine.begin(int(number)), self._story.goal
        else:
            name = str(task.spec.get("file") or "-")
            file = inside(Path(self._games).expanduser(), name, f"The story of task {task.id}")
            if not file.is_file():
                raise UserError(f"env.games={self._games} has no file for the game {task.id!r}.")
            self._story = None
            engine.load(file, ours=False)
            answer = engine.begin()
            goal = f"Play the story {task.id} to its good end and score as many of its {engine.max_score} points as you can."
            self._path = Walkthrough(engine)
        return replace(self._step(answer, error=False), goal=goal)

    def step(self, action: str) -> Step:
        """Type the first sentence of the action. Commands that are no part of the story (save, undo, quit) are refused."""
        engine = self._running()
        if self._ended is not None:
            return replace(self._ended, observation=_OVER, error=True)
        command = first_sentence(action)
        if FORBIDDEN.search(command):
            return self._step(engine.unchanged(), error=True, text=NOT_HERE)
        answer = engine.send(command)
        if self._path is not None:
            self._path.sent(command)
        refused = answer.refused
        if refused is None:
            refused = bool(REFUSED.search(answer.text)) and not engine.has_changed()
        return self._step(answer, error=refused)

    def close(self) -> None:
        """Free the z-machine."""
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    def _step(self, answer: Answer, *, error: bool, text: str = "") -> Step:
        engine = self._running()
        top = engine.max_score
        share = max(answer.score, 0) / top if top > 0 else 0.0
        # A score may fall, and some stories go on after their last point: neither is progress.
        self._best = 1.0 if answer.won else max(self._best, min(share, 0.99))
        text = text or answer.text
        if self._story is not None:
            text = _END.sub(r"\1", text)
        step = Step(
            text.strip(),
            done=answer.over,
            success=answer.won,
            score=self._best,
            error=error and not answer.over,
            admissible=self._admissible(answer),
            info={"place": self._place(), "raw_score": answer.score},
        )
        if answer.over:
            self._ended = step
        return step

    def _place(self) -> str:
        """What the status line of the story shows."""
        engine = self._running()
        return DARK if self._story is not None and not engine.scene().lit() else engine.place()

    def _admissible(self, answer: Answer) -> tuple[str, ...] | None:
        if not self._list:
            return None
        if answer.over:
            return ()
        engine = self._running()
        return valid.valid_actions(engine) if self._story is not None else valid.valid_actions_of_any(engine)

    def _running(self) -> Engine:
        if self._engine is None:
            raise UserError("jericho: call reset first.")
        return self._engine

    # -------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """Actions from the current state to the good end.

        Our stories are planned from any state; `EngineError` where the story cannot be won any more or the expert knows no way.
        For the user's stories it is the rest of jericho's walkthrough, tried out first; `UserError` where there is none, or
        where the episode has left it.
        """
        engine = self._running()
        if self._ended is not None:
            return []
        return solve(engine, PLANS[self._story.name]) if self._story is not None else self._path_of_any().rest()

    def _path_of_any(self) -> Walkthrough:
        assert self._path is not None
        return self._path

    def scene(self) -> Scene:
        """The world now. Raises `UserError` for a story of the user's: its memory is not known."""
        engine = self._running()
        if self._story is None:
            raise UserError("Checkpoints, questions and alignment are known for our own stories only: leave env.games empty.")
        return engine.scene()

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `jericho.checkpoints`."""
        scene = self.scene()
        return checkpoints.checkpoints(scene, self.oracle(), relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `StoryMatcher`."""
        return StoryMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `jericho.questions`."""
        scene = self.scene()
        assert self._story is not None
        return questions.questions(scene, self._story.goal, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `jericho.alignment`."""
        return alignment.align(self.scene(), known)

    def fact_tracker(self) -> FactTracker:
        """See `StoryTracker`."""
        return StoryTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """See `jericho.policies`."""
        return policies.make(name, seed)
