"""`AlfWorld`: official or generated household games behind the `Env` protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, Step, Task
from agentexp.envs.alfworld import alignment, checkpoints, games, generator, moves, questions, variants, wheel
from agentexp.envs.alfworld.card import PUT, card
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.goals import KINDS, SHORT, Goal, parse_goal
from agentexp.envs.alfworld.memorised import make
from agentexp.envs.alfworld.oracle import Household, plan
from agentexp.envs.alfworld.policies import HousePolicy
from agentexp.envs.alfworld.problem import Problem
from agentexp.envs.alfworld.progress import Progress
from agentexp.envs.alfworld.texts import NOTHING
from agentexp.errors import EngineError, UserError

if TYPE_CHECKING:
    from agentexp.envs.alfworld.engine import Answer, Engine


class AlfWorld:
    """ALFWorld on the real TextWorld engine (Shridhar et al. 2021). Implements Env, HasOracle, HasFacts, HasPolicies.

    The engine always runs the wheel's own domain and grammar; of a game file only the problem and the goal sentence are used.
    Success is the engine's own goal test; the world ends with it. The score is AgentBoard's progress rate, see `progress`. The
    first text is the description of the room, without the engine's banner and without the goal. The admissible list is the
    engine's, sorted, complete, "help" included. One engine quirk is kept: "go to Y" is not admissible (answer "Nothing
    happens.") where Y shares the location that the agent is at.

    Args:
        data: folder of `alfworld-download` (or its json_2.1.1), or a folder with packed SPLIT.jsonl.xz files. None: generated
            games, no download. The variable ALFWORLD_DATA is not read.
        logic: "new" is alfworld >= 0.4 ("move X to Y"); "old" is the logic inside the json_2.1.1 files ("put X in/on Y", "You
            arrive at loc N.", no help), derived from the installed one.
        train: number of generated games of split train.
        dev: number of generated games of split dev.
        test: number of generated games of split test.
        generator_seed: another seed gives other generated games. Splits never share a floor plan.
        task_types: keep these task types only (full names, or pick, light, clean, heat, cool, two); None keeps all six.
        allow_partial: accept an official split with missing games.
        variant: change every game (paper 001, appendix F): relocation, precondition or distractors, see `variants`. Ids stay,
            so runs with and without can be compared pair by pair.
        distractor_kind: what variant distractors adds: 3 things of similar types, 2 more of the same type, or both. Goals ask
            for any thing of a type, so more of the same make a game easier.
        variant_seed: another seed draws other changes of the same kind.
        perturb: "relocate" moves the wanted things in mid-episode (MAP, appendix C.4), see `perturb` and `agentexp.perturbing`.
    """

    name = "alfworld"

    def __init__(
        self,
        data: str | None = None,
        logic: wheel.Logic = "new",
        train: int = 600,
        dev: int = 100,
        test: int = 200,
        generator_seed: int = 0,
        task_types: list[str] | None = None,
        allow_partial: bool = False,
        variant: variants.Variant = "none",
        distractor_kind: variants.DistractorKind = "similar",
        variant_seed: int = 0,
        perturb: Literal["none", "relocate"] = "none",
    ) -> None:
        if logic not in PUT:
            raise UserError(f"env.logic={logic} is unknown. Choose one of: {', '.join(PUT)}.")
        kinds = {SHORT.get(kind, kind) for kind in (KINDS if task_types is None else task_types)}
        if not kinds or kinds - set(KINDS):
            wrong = ", ".join(sorted(kinds - set(KINDS))) or "nothing"
            raise UserError(f"env.task_types holds {wrong}. Choose from: {', '.join([*SHORT, *KINDS])}.")
        if min(train, dev, test) < 0:
            raise UserError("env.train, env.dev and env.test are numbers of games and cannot be negative.")
        for key, value, known in (
            ("variant", variant, ("none", *variants.VARIANTS)),
            ("distractor_kind", distractor_kind, variants.DISTRACTORS),
            ("perturb", perturb, ("none", "relocate")),
        ):
            if value not in known:
                raise UserError(f"env.{key}={value} is unknown. Choose one of: {', '.join(known)}.")
        self.card = card(logic)
        self.perturbs = perturb == "relocate"
        self._data = Path(data).expanduser() if data else None
        self._logic: wheel.Logic = logic
        self._sizes = {"train": train, "dev": dev, "test": test}
        self._generator_seed = generator_seed
        self._kinds = frozenset(kinds)
        self._allow_partial = allow_partial
        self._variant: dict[str, Any] = {}
        if variant != "none":
            self._variant = {"variant": variant, "variant_seed": variant_seed, "variant_version": variants.VERSION}
        if variant == "distractors":
            self._variant["distractors"] = distractor_kind
        self._games: dict[str, dict[str, games.Game]] = {}
        self._engine: Engine | None = None
        self._goal = ""
        self._progress = Progress(None)

    # ------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """train, dev, test for generated games; train, valid_seen, valid_unseen, valid_train (and others found) for data."""
        return games.available(self._data) if self._data else generator.SPLITS

    def tasks(self, split: str) -> list[Task]:
        """All games of a split: official ones sorted by id, generated ones in drawing order (task types take turns)."""
        if split not in self.splits():
            raise UserError(f"env.split={split} is not a split of alfworld here. Choose one of: {', '.join(self.splits())}.")
        if self._data:
            found = [
                Task(
                    game.id,
                    self.name,
                    split,
                    kind=game.kind,
                    spec={"task": game.task, "plan": game.plan, "digest": game.digest, **self._variant},
                )
                for game in self._official(split).values()
            ]
        else:
            specs = (generator.draw(split, self._generator_seed, index) for index in range(self._sizes[split]))
            found = [
                Task(spec.id, self.name, split, kind=spec.kind, spec={**_to_json(spec), **self._variant}) for spec in specs
            ]
        return [task for task in found if task.kind in self._kinds]

    def problem(self, task: Task) -> Problem:
        """The house of a task as data, without the engine: ground truth for questions, checkpoints and variants."""
        varied = self.varied(task)
        return varied.problem if varied else Problem.parse(self._original(task))

    def varied(self, task: Task) -> variants.Varied | None:
        """What the task's variant changed, with the expert's plan, without the engine; None for an unchanged game."""
        spec = task.spec
        if "variant" not in spec or "problem" in spec:
            return None
        if spec["variant_version"] != variants.VERSION:
            raise UserError(f"Task {task.id} is of variant version {spec['variant_version']}, not {variants.VERSION}.")
        goal = _readable(str(spec["task"]))
        original = Problem.parse(self._original(task))
        return variants.vary(
            original,
            goal,
            spec["variant"],
            int(spec["variant_seed"]),
            f"{task.split}/{task.id}",
            spec.get("distractors", "similar"),
        )

    def _official(self, split: str) -> dict[str, games.Game]:
        if self._data is None:
            raise UserError(f"env.data must name the official games to run split {split}.")
        if split not in self._games:
            self._games[split] = {game.id: game for game in games.load(self._data, split, self._allow_partial)}
        return self._games[split]

    def _problem_text(self, task: Task) -> str:
        varied = self.varied(task)
        return varied.problem.render() if varied else self._original(task)

    def _original(self, task: Task) -> str:
        if "problem" in task.spec:  # a house of one's own
            return str(task.spec["problem"])
        if "generator" in task.spec:
            version = task.spec["generator"]
            if version != generator.VERSION:
                raise UserError(f"Task {task.id} was made by generator version {version}, not {generator.VERSION}.")
            return generator.build(_from_json(task)).render()
        game = self._official(task.split).get(task.id)
        if game is None or game.digest != task.spec.get("digest", game.digest):
            raise UserError(f"env.data: game {task.id} of split {task.split} is missing or differs from the planned one.")
        return game.problem

    # ------------------------------------------------------------------------------------------------------ playing

    def reset(self, task: Task) -> Step:
        """Load the game. The task's seed changes nothing: the game is the whole instance."""
        wheel.require_engine()
        problem = self._problem_text(task)
        if self._engine is None:
            from agentexp.envs.alfworld.engine import Engine

            self._engine = Engine()
        answer = self._engine.start(self._logic, problem, task.id)
        self._goal = str(task.spec["task"])
        self._progress = Progress(parse_goal(self._goal))
        return self._step(answer, _without_frame(answer.text), goal=f"{self._goal}.")

    def step(self, action: str) -> Step:
        """Carry out one command."""
        answer = self._running().step(action)
        return self._step(answer, answer.text)

    def close(self) -> None:
        """Hand the engine back to the process."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def oracle(self) -> list[str]:
        """Commands of the expert from the current state; empty when the goal holds. See `oracle.plan`."""
        goal, engine = _readable(self._goal), self._running()
        try:
            return plan(engine.facts(), engine.names(), goal, PUT[self._logic])
        except ValueError as error:
            raise EngineError(f"The scripted expert is stuck: {error}.") from error

    def perturb(self, seed: int) -> dict[str, Any] | None:
        """Move all things of the goal's type elsewhere while the game goes on; see `HasPerturbation` and `moves.relocation`.

        The engine is started anew from its own facts with the things at their new places. What the agent has in hand, has
        opened or treated, where it stands, and all names stay as they are.

        Returns:
            {"moved": {thing: [old places, new place]}, "admissible": the commands that are possible now}; None: not now.
        """
        goal, engine = _readable(self._goal), self._running()
        facts, names = engine.facts(), engine.names()
        to = moves.relocation(sorted(facts), names, goal, seed)
        if to is None:
            return None
        home = Household(facts)
        was = moves.lying(home, goal.thing)
        answer = engine.go_on(moves.moved(facts, home, to))
        told = {names[thing]: [[names[place] for place in was[thing]], names[place]] for thing, place in to.items()}
        return {"moved": told, "admissible": list(answer.commands)}

    def _running(self) -> Engine:
        if self._engine is None:
            raise EngineError("AlfWorld.step and AlfWorld.oracle need a reset first.")
        return self._engine

    def _step(self, answer: Answer, text: str, goal: str = "") -> Step:
        return Step(
            observation=text,
            done=answer.won,
            success=answer.won,
            score=self._progress.observe(text, answer.won),
            error=text == NOTHING,
            admissible=answer.commands,
            goal=goal,
        )

    # -------------------------------------------------------------------------------------------------- capabilities

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `alfworld.checkpoints`."""
        engine = self._running()
        return checkpoints.checkpoints(engine.facts(), engine.names(), parse_goal(self._goal), relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `alfworld.checkpoints.HouseMatcher`."""
        return checkpoints.HouseMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `alfworld.questions`."""
        engine = self._running()
        return questions.questions(engine.facts(), engine.names(), parse_goal(self._goal), self._goal, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `alfworld.alignment`."""
        engine = self._running()
        return alignment.align(engine.facts(), engine.names(), known)

    def fact_tracker(self) -> HouseFacts:
        """A fresh tracker."""
        return HouseFacts()

    def policy(self, name: str, seed: int) -> HousePolicy:
        """See `memorised.make`."""
        return make(name, seed, self._logic, lambda task: Problem.parse(self._original(task)))

    def versions(self) -> dict[str, str]:
        """Packages, logic, and where the games come from (without the path)."""
        source = f"games in {self._data.name}" if self._data else f"generator {generator.VERSION}, seed {self._generator_seed}"
        found = {**wheel.versions(), "alfworld logic": self._logic, "alfworld games": source}
        if self._variant:
            found["alfworld variant"] = ", ".join(str(value) for value in self._variant.values())
        return found


def _readable(task: str) -> Goal:
    goal = parse_goal(task)
    if goal is None:
        raise UserError(
            f"The goal {task!r} is not one of ALFWorld's own wordings, which expert, variants and perturbation need."
        )
    return goal


def _without_frame(text: str) -> str:
    """The first text without banner and goal."""
    return "\n\n".join(
        part for part in text.split("\n\n") if not part.startswith(("-= Welcome to TextWorld, ALFRED! =-", "Your task is to:"))
    )


def _to_json(spec: generator.Spec) -> dict[str, str | int]:
    return {
        "generator": generator.VERSION,
        "seed": spec.seed,
        "index": spec.index,
        "thing": spec.thing,
        "place": spec.place,
        "lamp": spec.lamp,
        "plan": spec.plan,
        "task": spec.task,
    }


def _from_json(task: Task) -> generator.Spec:
    spec = task.spec
    return generator.Spec(
        split=task.split,
        seed=int(spec["seed"]),
        index=int(spec["index"]),
        kind=task.kind,
        thing=str(spec["thing"]),
        place=str(spec["place"]),
        lamp=str(spec["lamp"]),
        plan=int(spec["plan"]),
        task=str(spec["task"]),
    )
