"""The part of the environment check that plays: resets, a random walk and its replay, the expert, facts, and odd texts."""

from __future__ import annotations

import json
import pickle
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentexp.capabilities import HasFacts, HasOracle
from agentexp.core import CognitiveMap, Env, Fact, FactTracker, Step, Task, View
from agentexp.envs.check import CheckSettings, Findings
from agentexp.envs.pool import EnvPool
from agentexp.envs.worker import attempt
from agentexp.models.scripted_random import random_action
from agentexp.rollout import World

NONSENSE = "flumph the quuxwort"
ODD_TEXTS = (
    "",
    "   ",
    NONSENSE,
    NONSENSE + "\nlook",
    "x" * 20_000,
    "l\u00f6\u00f6k \u2603 \u706b \U0001f600",
    "\u0000\u001b[31m\t",
    'it\'s "quoted" \\',
    "{thing} {0} %s %(x)d $HOME `ls`",
    "[(*+?",
    "<b>&amp;</b>",
    "0",
    "-1",
    "None",
)


@dataclass(slots=True)
class _Walk:
    actions: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)  # one more than actions


async def check_play(task: Task, env: Env, pool: EnvPool, other: EnvPool, found: Findings, settings: CheckSettings) -> None:
    """Play one task in every way that the contract speaks of."""
    play = _Play(task, env, found, settings, deterministic=bool(getattr(env, "deterministic", True)))
    walk = _Walk()

    async def walked(world: World) -> None:
        walk.actions, walk.steps = await play.walk(world)

    await found.guard("Reset", play.leased(pool, play.resets))
    await found.guard("Walk", play.leased(pool, walked))
    if walk.steps:
        await found.guard("Replay", play.leased(pool, lambda world: play.replay(world, walk, "Replay")))
        if not pool.in_process:
            await found.guard("ReplayElsewhere", play.leased(other, lambda world: play.replay(world, walk, "ReplayElsewhere")))
        read, failure = attempt(play.facts, walk)
        if not read:
            found.add("fail", "Facts", f"The fact tracker raised. {failure.message}")
    if isinstance(env, HasOracle):
        await found.guard("Oracle", play.leased(pool, play.oracle))
    await found.guard("OddTexts", play.leased(pool, play.odd_texts))
    if env.card.complete_admissible:
        await found.guard("AdmissibleWorks", play.leased(pool, play.admissible))


class _Play:
    def __init__(self, task: Task, env: Env, found: Findings, settings: CheckSettings, *, deterministic: bool) -> None:
        self.task, self.env, self.found, self.settings, self.deterministic = task, env, found, settings, deterministic

    async def leased(self, pool: EnvPool, part: Callable[[World], Awaitable[None]]) -> None:
        async with pool.lease() as world:
            await part(world)
            output = getattr(world, "output", str)()
        mend = f"Nothing should be printed; a worker's output costs time and hides real messages: {output[-120:]!r}."
        self.found.expect(not output, "Quiet", "Nothing is printed.", mend, "warn")

    # ------------------------------------------------------------------------------------------------------------- steps

    async def resets(self, world: World) -> None:
        started = time.perf_counter()
        first = await world.reset(self.task)
        seconds = time.perf_counter() - started
        expect = self.found.expect
        expect(isinstance(first, Step), "StepType", "reset() and step() return a Step.", "Return an agentexp.core.Step.")
        expect(
            bool(first.observation.strip()), "FirstObservation", "reset() gives an observation.", "Give a first observation."
        )
        expect(bool(first.goal.strip()), "Goal", "reset() gives a goal.", "Set Step.goal in reset().")
        leaks = bool(first.goal.strip()) and _plain(first.goal) in _plain(first.observation)
        mend = "Take the goal out of the observation: paradigms without a goal would show it."
        expect(not leaks, "GoalApart", "The goal is not in the observation.", mend)
        fresh = not (first.done or first.success or first.error)
        expect(fresh, "FreshStart", "A new instance is neither done nor won.", f"{self.task.id} starts as done, won or error.")
        self._ranges(first)
        again = await world.reset(self.task)
        self._same([first], [again], "SecondReset", "A second reset")
        self.found.add("ok", "ResetTime", f"The first reset of {self.task.id} took {seconds * 1000:.1f} ms.")

    async def walk(self, world: World) -> tuple[list[str], list[Step]]:
        rng = random.Random(self.settings.seed)
        actions, steps, seconds = list[str](), [await world.reset(self.task)], list[float]()
        tracker = self.env.fact_tracker() if isinstance(self.env, HasFacts) else None
        if tracker is not None and not attempt(tracker.observe, None, steps[0])[0]:
            tracker = None  # `facts` will report it
        for _ in range(self.settings.steps):
            if steps[-1].done:
                break
            actions.append(random_action(self._view(steps, actions, tracker, world), rng))
            started = time.perf_counter()
            step = await world.step(actions[-1])
            seconds.append(time.perf_counter() - started)
            self._ranges(step)
            self.found.expect(not step.goal, "GoalOnce", "Only reset() sets the goal.", "Leave Step.goal empty in step().")
            if tracker is not None and not attempt(tracker.observe, actions[-1], step)[0]:
                tracker = None
            steps.append(step)
        if seconds:
            self.found.add(
                "ok", "StepTime", f"A step takes {statistics.median(seconds) * 1000:.2f} ms (median of {len(seconds)})."
            )
        return actions, steps

    async def replay(self, world: World, walk: _Walk, name: str) -> None:
        steps = [await world.reset(self.task), *[await world.step(action) for action in walk.actions]]
        where = "The same actions" if name == "Replay" else "The same actions in another process with another hash seed"
        self._same(walk.steps, steps, name, where)

    async def oracle(self, world: World) -> None:
        for prefix in (0, 3):
            steps = [await world.reset(self.task)]
            rng = random.Random(self.settings.seed + 1)
            for _ in range(prefix):
                if not steps[-1].done:
                    steps.append(await world.step(random_action(self._view(steps, [], None, world), rng)))
            if steps[-1].done:
                return
            plan: list[str] = await world.call("oracle")
            again: list[str] = await world.call("oracle")
            mend = "Asking the oracle twice gives two plans: it must not change the state, and must not draw."
            self.found.expect(plan == again, "OracleIsPure", "Asking the oracle changes nothing.", mend, self._level())
            won, refused = False, ""
            for action in plan:
                step = await world.step(action)
                self._ranges(step)
                refused = refused or (action if step.error else "")
                won = step.success
                if step.done:
                    break
            after = f"after {prefix} random actions in {self.task.id}" if prefix else f"in {self.task.id}"
            bad = f"The oracle's plan {after} does not end in success" + (f"; {refused!r} was refused." if refused else ".")
            name = "OracleFromAnywhere" if prefix else "Oracle"
            self.found.expect(won, name, f"The oracle reaches success {after}.", bad, "warn" if prefix else "fail")

    async def odd_texts(self, world: World) -> None:
        first = await world.reset(self.task)
        for text in ODD_TEXTS:
            step = await world.step(text)
            self._ranges(step)
            if text == NONSENSE:
                mend = f"Set Step.error when an action is refused or not understood ({text!r} gave {step.observation[:60]!r})."
                self.found.expect(step.error, "ErrorFlag", "Nonsense is flagged as an error.", mend)
                self.found.expect(not step.success, "NonsenseDoesNotWin", "Nonsense wins nothing.", "Nonsense led to success.")
            if step.done:
                await world.reset(self.task)
        again = await world.reset(self.task)
        self._same([first], [again], "ResetAfterOddTexts", "A reset after odd texts")
        self.found.add("ok", "OddTexts", f"step() took {len(ODD_TEXTS)} odd texts without raising.")

    async def admissible(self, world: World) -> None:
        first = await world.reset(self.task)
        listed = first.admissible
        if listed is None:
            self.found.add("fail", "AdmissibleWorks", "card.complete_admissible is set, but Step.admissible is None: fill it.")
            return
        refused = []
        for action in random.Random(self.settings.seed).sample(listed, min(5, len(listed))):
            await world.reset(self.task)
            if (await world.step(action)).error:
                refused.append(action)
        mend = f"Listed as admissible, but refused: {refused}. Take them out or unset card.complete_admissible."
        self.found.expect(not refused, "AdmissibleWorks", "Admissible actions are accepted.", mend)

    # ------------------------------------------------------------------------------------------------------------- facts

    def facts(self, walk: _Walk) -> None:
        """Read the walk with two trackers."""
        if not isinstance(self.env, HasFacts):
            return
        expect = self.found.expect
        one, two = self.env.fact_tracker(), self.env.fact_tracker()
        known: dict[tuple[str, tuple[str, ...]], str] = {}
        lost, unsaid = list[Any](), list[Any]()
        for action, step in zip([None, *walk.actions], walk.steps, strict=True):
            said = one.observe(action, step)
            two.observe(action, step)
            now = {(fact.kind, fact.subject): fact.value for fact in one.facts()}
            lost += [key for key in known if key not in now]
            changed = {(Fact(*key, value)) for key, value in now.items() if known.get(key) != value}
            unsaid += sorted(changed.symmetric_difference(said))
            known = now
        expect(
            not lost, "FactsStay", "Facts change but never vanish.", f"facts() lost {lost[:2]}: keep the key, change the value."
        )
        mend = f"observe() must return exactly the facts that are new or changed; see {unsaid[:2]}."
        expect(not unsaid, "FactsReturned", "observe() returns what is new.", mend)
        expect(
            bool(known),
            "FactsFound",
            f"{len(known)} facts in {len(walk.actions)} steps.",
            "No facts were found: check the patterns.",
        )
        same = (one.facts(), one.map("x"), one.place()) == (two.facts(), two.map("x"), two.place())
        expect(same, "FactsDeterministic", "Two trackers agree.", "Two trackers read the same walk differently: sort sets.")
        masks = [one.mask(step.observation) for step in walk.steps]
        expect(all(isinstance(mask, str) for mask in masks), "Mask", "mask() gives text.", "mask() must return a string.")
        wrong = _map_mistakes(one.map(walk.steps[0].goal))
        expect(not wrong, "Map", "map() has the form of CognitiveMap.", f"map(): {wrong}.")

    # ------------------------------------------------------------------------------------------------------------ helpers

    def _level(self) -> Any:
        return "fail" if self.deterministic else "warn"

    def _ranges(self, step: Step) -> None:
        expect = self.found.expect
        expect(0.0 <= step.score <= 1.0, "ScoreRange", "Scores are in [0, 1].", f"Scale the score {step.score} to [0, 1].")
        types = isinstance(step.observation, str) and all(type(flag) is bool for flag in (step.done, step.success, step.error))
        expect(
            types, "StepTypes", "Texts are str, flags are bool.", "Use str for observation and bool for done, success, error."
        )
        listed = step.admissible is None or (
            isinstance(step.admissible, tuple) and all(isinstance(a, str) for a in step.admissible)
        )
        expect(
            listed, "AdmissibleType", "admissible is a tuple of strings or None.", "Make Step.admissible a tuple of strings."
        )
        if step.success:
            mend = f"A solved task should have score 1, not {step.score}."
            expect(step.score == 1.0, "SuccessScore", "Success comes with score 1.", mend, "warn")
        try:
            pickle.dumps(step)
            json.dumps(dict(step.info), allow_nan=False)
        except (TypeError, ValueError, AttributeError, pickle.PicklingError) as error:
            self.found.add("fail", "StepInfo", f"Put only JSON values into Step.info ({error}).")

    def _same(self, old: Sequence[Step], new: Sequence[Step], name: str, what: str) -> None:
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            x, y = self._comparable(a), self._comparable(b)
            if x != y:
                part = next(key for key in x if x[key] != y[key])
                values = f"{str(x[part])[:80]!r}, then {str(y[part])[:80]!r}"
                text = f"{what} gave another {part} at step {i} of {self.task.id}: {values}."
                mend = " Seed every draw with task.instance_seed and sort sets, or declare `deterministic = False`."
                self.found.add(self._level(), name, text + (mend if self.deterministic else ""))
                return
        self.found.add("ok", name, f"{what} give{'' if what.startswith('The same') else 's'} the same answers.")

    def _comparable(self, step: Step) -> dict[str, Any]:
        shown: dict[str, Any] = asdict(step)
        if not self.deterministic:
            shown["observation"] = sorted(step.observation.splitlines())
            shown["admissible"] = sorted(step.admissible or ())
            del shown["info"]
        return shown

    def _view(self, steps: list[Step], actions: list[str], tracker: FactTracker | None, world: World) -> View:
        async def no_plan() -> list[str]:
            return []

        history = list(zip(actions, steps[1:], strict=False))
        return View(self.task, steps[0].goal, "check", steps[-1], history, 1, None, {}, tracker, self.env, no_plan, {})


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


def _map_mistakes(found: CognitiveMap) -> str:
    """What is wrong with the form of a map; "" if nothing."""
    forms = {"spatial": {"thing", "relation", "place"}, "absent": {"place", "what"}}
    forms["affordances"] = {"action", "target", "works", "effect", "requires"}
    for name, keys in forms.items():
        if bad := next((entry for entry in getattr(found, name) if set(entry) != keys), None):
            return f"an entry of {name} needs the keys {sorted(keys)}, not {bad}"
    if bad := next((e for e in found.spatial if e["relation"] not in ("in", "on", "at", "connects", "contains", "is")), None):
        return f"{bad['relation']!r} is no relation of a map"
    for name in ("task_notes", "unknown"):
        if not all(isinstance(text, str) for text in getattr(found, name)):
            return f"{name} holds sentences"
    return ""
