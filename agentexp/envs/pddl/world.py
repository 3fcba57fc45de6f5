"""The PDDL environment: text on a STRIPS engine, in AgentBoard's conventions.

Answers. Gripper and blockworld tell the whole state after each action, barman and tyreworld only what has become true ("look
around" tells all). "check valid actions" lists what is possible. Both cost a step. An action that is not possible, or changes
nothing, is refused.

Score. AgentBoard's progress rate: the best part of the goal's conditions that held at once so far, 0 before the first action
that works; 1.0 exactly when the goal was reached, which is success.

Not AgentBoard's: the problems (see `generators`), some sentences (see `phrases`), the general text on the rules, and that an
action must be named without other words around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, FactTracker, Policy, Step, Task
from agentexp.envs.pddl import checkpoints, policies, questions
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.search import Planner, Unsolved
from agentexp.envs.pddl.suite import KINDS, SPLITS, Drawn, Folder
from agentexp.envs.pddl.tracker import PddlTracker
from agentexp.errors import EngineError, UserError

LOGIC = "1"  # changes when the same problem would play differently
REFUSED = (
    "The action is not valid and therefore takes no effect. Please remember to satisfy the restriction of actions. "
    "You can also check valid actions."
)
NOT_READ = "The action is not valid and therefore takes no effect. Please check valid actions."
CHECK, LOOK = "check valid actions", "look around"
INTROS = {
    "gripper": "A robot called Robby carries balls between rooms with its grippers.",
    "blockworld": "An arm moves blocks on a table, one at a time.",
    "barman": "A robot barman with two hands serves drinks in shot glasses, from dispensers and a shaker.",
    "tyreworld": "A car's wheels are changed with the tools in its boot.",
}


class Pddl:
    """Gripper, blockworld, barman and tyreworld, or any STRIPS domain, as an `Env`. Pure Python.

    Args:
        domains: which of the four kinds `tasks` gives; empty for all.
        problems: folder of PDDL files to use instead of the problems of this package; see `suite.Folder`.
        rules: whether the first text says what each action needs and changes; otherwise only the forms of the actions.
        search_limit: states that the planner may evaluate for one plan.
    """

    name = "pddl"
    card = EnvCard(
        intro="A world of objects and facts about them. The first text says what it is about, which actions there are and what "
        "holds at the start.",
        actions=f"the actions that the first text lists, with names instead of {{...}} | {CHECK} | {LOOK}",
        notes="An action works only where its conditions hold. Every action costs a step, also checking and looking around.",
        refusal=REFUSED,
        aliases=((r"pick up (b\d+)", r"pickup \1"), (r"put down (b\d+)", r"putdown \1")),
        info_actions=rf"^({CHECK}|{LOOK})",
        plays_on=True,
    )

    def __init__(
        self,
        domains: list[str] | None = None,
        problems: str | None = None,
        rules: bool = True,
        search_limit: int = 30_000,
    ) -> None:
        if odd := [kind for kind in domains or () if kind not in KINDS]:
            raise UserError(f"env.domains={odd} does not exist in pddl; choose from {', '.join(KINDS)}.")
        if search_limit < 1:
            raise UserError(f"env.search_limit={search_limit} must be 1 or more.")
        self._domains, self._rules, self._limit = tuple(domains or ()), rules, search_limit
        self._suite: Drawn | Folder = Folder(problems) if problems else Drawn()
        self._own = not problems
        self._ground: Ground | None = None
        self._planner: Planner | None = None
        self._state, self._best, self._won = 0, 0.0, False

    # ------------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return self._suite.splits()

    def tasks(self, split: str) -> list[Task]:
        """Problems of a split; the kind is the domain."""
        if split not in SPLITS:
            raise UserError(f"env.split={split} does not exist in pddl; choose one of {', '.join(SPLITS)}.")
        tasks = self._suite.tasks(split, self.name)
        chosen = [task for task in tasks if not self._domains or task.kind in self._domains]
        if not chosen:
            raise UserError(f"env.domains={list(self._domains)} leaves no problem of the split {split!r}.")
        return chosen

    def versions(self) -> dict[str, str]:
        """Version of the engine and hash of domains and problems."""
        return {"pddl_logic": LOGIC, "pddl_problems": ("own " if self._own else "folder ") + self._suite.digest()}

    # ----------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """The initial state. The seed changes nothing: a problem is one state and one goal."""
        domain, problem = self._suite.load(task.spec)
        self._ground, self._planner = Ground(domain, problem), None
        self._phrases = Phrases(domain)
        self._objects = set(problem.objects)
        self._state, self._best = self._ground.init, 0.0
        self._won = self._ground.solved(self._state)
        text = f"{self._about()}\n\n{self._phrases.sentences(self._ground.holding(self._state))}"
        goal = [self._phrases.fact(atom) for atom in problem.goal.positive]
        goal += [f"not: {self._phrases.fact(atom)}" for atom in problem.goal.negative]
        told = "The goal is to satisfy the following conditions: " + ", ".join(sorted(goal)) + "."
        return self._step(text, goal=told, info={"domain": self._phrases.kind})

    def step(self, action: str) -> Step:
        """Carry out one action, or answer "check valid actions" or "look around"."""
        ground = self._running()
        words = " ".join(action.lower().split()).rstrip(".")
        if words == CHECK:
            return self._step("Valid actions are: " + ", ".join(self._possible()))
        if words == LOOK:
            return self._step(self._phrases.sentences(ground.holding(self._state)))
        name = self._phrases.read_action(action)
        if name is None or not self._objects.issuperset(name[1:]):
            return self._step(NOT_READ, error=True)
        op = ground.by_name.get(name)
        if op is None or not op.possible(self._state) or op.after(self._state) == self._state:
            return self._step(REFUSED, error=True)
        before, self._state = self._state, op.after(self._state)
        self._best = max(self._best, ground.fraction(self._state))
        self._won = self._won or ground.solved(self._state)
        if self._phrases.news_only:
            text = self._phrases.sentences(ground.fluents(self._state & ~before)) or "Nothing new has become true."
        else:
            text = self._phrases.sentences(ground.holding(self._state)) or "No fact holds now."
        return self._step(text)

    def close(self) -> None:
        """Nothing to stop."""

    def _step(self, text: str, error: bool = False, goal: str = "", info: dict[str, Any] | None = None) -> Step:
        score = 1.0 if self._won else self._best
        listed = (*self._possible(), CHECK, LOOK)
        return Step(text, self._won, self._won, score, error, listed, goal, info or {})

    def _possible(self) -> list[str]:
        """Commands that change something now."""
        state = self._state
        ops = self._running().applicable(state)
        return [self._phrases.action(op.name) for op in ops if op.after(state) != state]

    def _about(self) -> str:
        phrases = self._phrases
        intro = INTROS.get(phrases.kind, f"This is the world {phrases.kind}.")
        line = phrases.rules if self._rules else phrases.form
        return "\n".join([intro, "Actions:", *(f"- {line(name)}" for name in phrases.actions), "What holds at the start:"])

    def _running(self) -> Ground:
        if self._ground is None:
            raise UserError("pddl: call reset before anything else.")
        return self._ground

    # ------------------------------------------------------------------------------------------------------ capabilities

    def oracle(self) -> list[str]:
        """Commands of a plan from the current state to the goal.

        Empty when the goal was reached, and when it is proved that it cannot be reached any more (in barman, a shaker may be
        spoilt): that is the agent's doing, not a failure of the planner.

        Raises:
            EngineError: no plan was found among `search_limit` states.
        """
        ground = self._running()
        if self._won:
            return []
        self._planner = self._planner or Planner(ground)
        try:
            plan = self._planner.plan(self._state, self._limit)
        except Unsolved as failure:
            if failure.proved:
                return []
            raise EngineError(
                f"The planner found no plan for {ground.problem.name} within env.search_limit={self._limit} states."
            ) from failure
        return [self._phrases.action(op.name) for op in plan]

    def fact_tracker(self) -> FactTracker:
        """See `PddlTracker`."""
        return PddlTracker(self._suite.phrases())

    def policy(self, name: str, seed: int) -> Policy:
        """Scripted agents; see `policies`."""
        return policies.make(name, seed, self._suite.phrases())

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `pddl.checkpoints`."""
        return checkpoints.checkpoints(self._running(), self._phrases, relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `pddl.checkpoints.PddlMatcher`."""
        return checkpoints.PddlMatcher(self._suite.phrases())

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `pddl.questions`."""
        return questions.questions(self._running(), self._phrases, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `pddl.questions`."""
        return questions.align(self._running(), self._phrases, known)
