import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentexp.core import CognitiveMap, EnvCard, Message, Request, Sampling, Step, Task, View
from agentexp.envs.pool import EnvPool
from agentexp.envs.toy import ToyRooms
from agentexp.errors import UserError
from agentexp.models.scripted import KNOWN, ScriptedModel, works
from agentexp.paradigms.map.cognitive_map import read_map
from agentexp.paradigms.map.knowledge import read_knowledge

TASKS = ToyRooms().tasks("test")


class Game:
    """Plays one episode by hand, so that every request is under the test's control."""

    def __init__(self, model: ScriptedModel, env: Any = None, task: Task = TASKS[1], form: str = "") -> None:
        self.model, self.env, self.task, self.form = model, env or ToyRooms(), task, form
        self.memory: dict[str, Any] = {}
        self.asked = 0
        self.phase = "acting"
        self.map: CognitiveMap | None = None
        self.reset()

    def reset(self, phase: str = "acting") -> None:
        self.phase, self.history = phase, list[tuple[str, Step]]()
        self.step = self.env.reset(self.task)
        self.goal = self.step.goal
        self.tracker = self.env.fact_tracker() if hasattr(self.env, "fact_tracker") else None
        if self.tracker:
            self.tracker.observe(None, self.step)

    async def oracle(self) -> list[str]:
        self.asked += 1
        plan: list[str] = self.env.oracle()
        return plan

    def view(self) -> View:
        env, memory = self.env, self.memory
        return View(
            self.task, self.goal, self.phase, self.step, self.history, 9, self.map, {}, self.tracker, env, self.oracle, memory
        )

    def reply(self, purpose: str = "act") -> str:
        request = Request([Message("user", "?")], Sampling(), purpose, self.form, self.view(), "chat")
        completion = asyncio.run(self.model.chat(request))
        assert completion.usage.calls == 1 and completion.usage.prompt_tokens == completion.usage.completion_tokens == 0
        return completion.text

    def do(self, action: str) -> None:
        self.step = self.env.step(action)
        self.history.append((action, self.step))
        if self.tracker:
            self.tracker.observe(action, self.step)

    def play(self, steps: int = 40) -> list[str]:
        actions: list[str] = []
        while len(actions) < steps and not self.step.done:
            actions.append(self.reply())
            self.do(actions[-1])
        return actions


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_oracle_asks_once_and_wins(task: Task) -> None:
    game = Game(ScriptedModel("oracle"), task=task)
    plan = game.env.oracle()
    assert game.play() == plan
    assert game.step.success and game.asked == 1


def test_oracle_plans_again_after_refusal_deviation_and_reset() -> None:
    game = Game(ScriptedModel("oracle"))
    first = game.reply()
    game.do("take nothing")  # refused
    assert game.reply() == first and game.asked == 2
    game.do(first)
    game.reply()
    game.do("look")  # not what was said, and not refused: the plan's next action may still be possible
    game.play()
    assert game.step.success
    game.reset()
    asked = game.asked
    assert game.reply() == first and game.asked == asked + 1


def test_plan_action_that_became_inadmissible_is_not_sent() -> None:
    game = Game(ScriptedModel("oracle"), task=TASKS[0])
    while not (action := game.reply()).startswith("take"):
        game.do(action)
    game.do(action)
    assert game.step.success


def test_oracle_surveys_while_mapping() -> None:
    game = Game(ScriptedModel("oracle"))
    game.reset("mapping")
    game.play(16)
    assert game.asked == 0 and not game.step.success
    assert game.tracker is not None and len(game.tracker.rooms) == 5
    blind = Game(ScriptedModel("oracle", explorer="nobody"))
    blind.reset("mapping")
    assert blind.reply() in (blind.step.admissible or ())


def test_map_shortens_the_search() -> None:
    with_map = without = 0
    for task in TASKS:
        survey = Game(ScriptedModel("mapuser"), task=task)
        survey.reset("mapping")
        survey.play(16)
        assert survey.tracker is not None
        found = survey.tracker.map(survey.goal)
        for given in (None, found):
            survey.map = given
            survey.reset()
            steps = len(survey.play())
            assert survey.step.success
            with_map, without = with_map + (steps if given else 0), without + (0 if given else steps)
    assert with_map == sum(len(_plan(task)) for task in TASKS) < without


def _plan(task: Task) -> list[str]:
    env = ToyRooms()
    env.reset(task)
    return env.oracle()


@pytest.mark.parametrize("policy", [name for name in KNOWN if works(ToyRooms(), name)])
def test_replies_are_deterministic_and_seeded(policy: str) -> None:
    runs = [Game(ScriptedModel(policy, seed=seed)).play(12) for seed in (0, 0)]
    assert runs[0] == runs[1]


def test_random_depends_on_seed_repeat_and_phase() -> None:
    games = [
        Game(ScriptedModel("random")),
        Game(ScriptedModel("random", seed=1)),
        Game(ScriptedModel("random"), task=replace(TASKS[1], repeat=1)),
    ]
    played = [tuple(game.play(12)) for game in games]
    assert len(set(played)) == 3


def test_error_rate() -> None:
    always, never = Game(ScriptedModel("oracle", error_rate=1.0)), Game(ScriptedModel("random"))
    assert always.model.label == "scripted-oracle-p1" and never.model.label == "scripted-random"
    assert always.play(6) != _plan(TASKS[1])[:6]
    some = [Game(ScriptedModel("oracle", error_rate=0.3), task=task) for task in TASKS]
    lengths = [len(game.play()) for game in some]
    assert all(game.step.success for game in some)
    assert sum(lengths) > sum(len(_plan(task)) for task in TASKS)
    with pytest.raises(UserError, match="from 0 to 1"):
        ScriptedModel(error_rate=2)


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("", r"(?P<a>[a-z ]+)"),
        ("thought_action", r"Thought: .+\nAction: (?P<a>[a-z ]+)"),
        ("think_answer", r"<think>.+</think> <answer>(?P<a>[a-z ]+)</answer>"),
        ("map_think_act", r"Map: .+\nThought: .+\nAction: (?P<a>[a-z ]+)"),
    ],
)
def test_forms(form: str, pattern: str) -> None:
    game = Game(ScriptedModel("oracle"), form=form)
    for action in _plan(TASKS[1]):
        match = re.fullmatch(pattern, game.reply())
        assert match and match["a"] == action
        game.do(action)


def test_map_line_tells_what_is_new() -> None:
    game = Game(ScriptedModel("oracle"), form="map_think_act")
    assert "room" in game.reply().splitlines()[0]
    game.do("inventory")
    assert game.reply().startswith("Map: no change\n")


class Bare:
    """A world without any optional capability and without a list of actions."""

    name = "bare"
    card = EnvCard("A void.", "look | throw {thing} at {thing} | restart", forbidden="^restart$")

    def reset(self, task: Task) -> Step:
        return Step("A stone and a window.", goal="Break it.")

    def step(self, action: str) -> Step:
        return Step("A stone and a window.")

    def splits(self) -> Sequence[str]:
        return ["test"]

    def tasks(self, split: str) -> list[Task]:
        return [Task("1", "bare", "test")]

    def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {"bare": "1"}


def test_impossible_policies_name_the_possible_ones() -> None:
    for policy in ("oracle", "myopic", "orcale"):
        with pytest.raises(UserError, match=rf"model\.policy={policy} .* choose from random, repetitive\."):
            Game(ScriptedModel(policy), env=Bare()).reply()
    with pytest.raises(UserError, match=r"choose from oracle, random, repetitive, myopic, curious, systematic, mapuser\."):
        ScriptedModel("orcale").check(ToyRooms())
    for policy in ("oracle", "random", "repetitive", "myopic", "curious", "systematic", "mapuser"):
        ScriptedModel(policy).check(ToyRooms())


def test_systematic_is_another_name_of_curious() -> None:
    played = [Game(ScriptedModel(policy)) for policy in ("systematic", "curious")]
    for game in played:
        game.reset("exploring")
    first, second = (game.play(20) for game in played)
    assert first == second and played[0].model.label == "scripted-systematic"


@pytest.mark.parametrize("task", TASKS[:6], ids=lambda task: task.id)
def test_repetitive_is_random_until_it_is_caught_in_a_loop(task: Task) -> None:
    loop, free = Game(ScriptedModel("repetitive"), task=task), Game(ScriptedModel("random"), task=task)
    for game in (loop, free):
        game.reset("exploring")
        game.play(40)
    actions = [action for action, _ in loop.history]
    accepted = list(dict.fromkeys(action for action, step in loop.history if not step.error))
    first = next(i for i in range(11) if i == 10 or len({a for a, s in loop.history[:i] if not s.error}) == 3)
    assert actions[:first] == [action for action, _ in free.history[:first]]
    assert len(actions) == 40 and set(actions[first:]) <= set(accepted[:3])
    assert actions[first:-3] == actions[first + 3 :] or len(accepted) < 3


def test_repetitive_repeats_a_refusal_when_nothing_was_accepted() -> None:
    class Deaf(Bare):
        def step(self, action: str) -> Step:
            return Step("No.", error=True)

    actions = Game(ScriptedModel("repetitive"), env=Deaf()).play(30)
    assert len(set(actions[10:])) == 1 and len(set(actions)) > 1


def test_random_without_a_list_uses_the_card() -> None:
    game = Game(ScriptedModel("random"), env=Bare())
    actions = set(game.play(40))
    assert "look" in actions and "restart" not in actions
    assert "throw stone at window" in actions and not any("{" in action for action in actions)


# ------------------------------------------------------------------------------------------------------------ other purposes


def surveyed() -> Game:
    game = Game(ScriptedModel("oracle"))
    game.reset("mapping")
    game.play(14)
    game.do("fly")
    return game


def test_extractor_writes_the_trackers_map() -> None:
    game = surveyed()
    found, mended = read_map(json.loads(game.reply("map_extractor")))
    assert game.tracker is not None and found == game.tracker.map(game.goal) and not mended
    assert found.spatial and found.affordances
    bare = Game(ScriptedModel("random"), env=Bare())
    assert read_map(json.loads(bare.reply("map_extractor")))[0].is_empty()


def test_distiller_writes_rules_without_instances() -> None:
    text = surveyed().reply("map_distiller")
    rules, mended = read_knowledge(json.loads(text), 8)
    assert not mended
    assert {rule["action"] for rule in rules["interaction_rules"]} == {"take", "drop"}
    assert rules["error_patterns"][0]["message"] == "That is not possible."
    assert rules["action_syntax"][0] == "go east"


def test_other_prompts_of_map() -> None:
    game = surveyed()
    points = json.loads(game.reply("map_focus_analyzer"))["focus_points"]
    assert 1 <= len(points) <= 8 and all(set(point) == {"question", "how_to_test", "why"} for point in points)
    lesson = json.loads(game.reply("map_reflector"))
    assert set(lesson) == {"cause", "rule", "next_time"} and '"fly"' in lesson["cause"]
    assert set(json.loads(Game(ScriptedModel("random")).reply("map_reflector"))) == {"cause", "rule", "next_time"}


def test_prose() -> None:
    game = surveyed()
    summary = game.reply("eta_summarize")
    for heading in ("Layout -", "Affordances -", "Preconditions -", "Constraints and failures -", "Not explored -"):
        assert heading in summary
    assert re.fullmatch(r"<deepthink>\n.*fly.*</deepthink>", game.reply("ttx_thinker"), re.S)
    assert game.reply("something new") and game.reply("map_qa") == "unknown" and game.reply("reflexion_reflect")


def test_lifecycle() -> None:
    async def main() -> None:
        model = ScriptedModel()
        await model.start()
        await model.close()
        assert set(model.versions()) == {"scripted"}
        async with (
            EnvPool({"_target_": "agentexp.envs.toy.ToyRooms"}, 1, 9, 60, in_process=True) as pool,
            pool.lease() as world,
        ):
            await world.reset(TASKS[0])
            assert await world.call("oracle") == _plan(TASKS[0])

    asyncio.run(main())


@pytest.mark.parametrize("turns", [2, 10, 100])
def test_toy_episodes_of_given_length(turns: int) -> None:
    game = Game(ScriptedModel("oracle"), env=ToyRooms(turns=turns), task=ToyRooms(turns=turns).tasks("test")[3])
    assert len(game.play(turns)) == turns and game.step.success
