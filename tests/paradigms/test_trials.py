"""Reflexion and Best-of-N: attempts, results, what is counted, and what is refused."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from paradigm_kit import RunContext, Talker, action, expert, run

from agentexp.core import Request, Sampling
from agentexp.envs.toy import ToyRooms
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.best_of_n import BestOfN
from agentexp.paradigms.reflexion import Reflexion
from agentexp.rollout import Budget, Limits

LOOK = action("look")


def warm(**replies: Any) -> Talker:
    model = Talker(**replies)
    model.sampling = Sampling(temperature=0.7)
    return model


def from_trial(number: int) -> Any:
    """Looks around until attempt `number` (from 0), then plays like the expert. An attempt begins with an empty history."""
    begun = -1

    def act(request: Request) -> str:
        nonlocal begun
        begun += not request.view.history
        return expert(request) if begun >= number else LOOK

    return act


def test_reflexion_begins_again_with_what_it_resolved() -> None:
    model = Talker(act=from_trial(2), reflexion_reflect=["<think>hm</think>Walk east.", "Take the thing."])
    episode, world = run(Reflexion(), model, budget=Budget(0, 12))
    assert (episode.success, episode.end_reason, world.resets) == (True, "won", 3)
    trials = episode.notes["trials"]
    assert [t["success"] for t in trials] == [False, False, True] and episode.notes["chosen_trial"] == 2
    assert [t.get("reflection") for t in trials] == ["Walk east.", "Take the thing.", None]
    assert episode.steps == sum(t["steps"] for t in trials) == len(episode.trajectory)
    assert [t["first_step"] for t in trials] == [0, 12, 24]
    systems = [messages[0].content for messages in model.prompts("act")]
    assert "Walk east." not in systems[0] and "Walk east." in systems[12] and "Take the thing." not in systems[12]
    assert "Walk east." in systems[24] and "Take the thing." in systems[24]


def test_every_token_of_every_attempt_counts() -> None:
    model = Talker(act=[LOOK], reflexion_reflect=["Again."])
    episode, _ = run(Reflexion(trials=3), model, budget=Budget(0, 4))
    assert not episode.success and episode.end_reason == "step_limit"
    assert episode.usage_by_role["actor"].calls == 12 and episode.usage_by_role["reflector"].calls == 2
    assert sum(t["calls"] for t in episode.notes["trials"]) == 12
    assert len(model.prompts("reflexion_reflect")) == 2, "nobody reflects after the last attempt"


def test_reflexion_stops_at_success_and_keeps_the_last_reflections() -> None:
    episode, world = run(Reflexion(), Talker(act=expert), budget=Budget(0, 12))
    assert episode.success and world.resets == 1 and len(episode.notes["trials"]) == 1
    model = Talker(act=[LOOK], reflexion_reflect=[f"R{i}" for i in range(4)])
    run(Reflexion(trials=4, memory=1), model, budget=Budget(0, 1))
    last = model.prompts("act")[-1][0].content
    assert "R2" in last and "R1" not in last


def test_a_full_context_ends_an_attempt_and_not_the_episode() -> None:
    replies: list[Any] = [LOOK, ContextOverflow("full"), LOOK]
    model = Talker(act=replies, reflexion_reflect=[ContextOverflow("full")])
    episode, _ = run(Reflexion(trials=2), model, budget=Budget(0, 3))
    assert [t["end_reason"] for t in episode.notes["trials"]] == ["context_limit", "step_limit"]
    assert (episode.status, episode.end_reason) == ("ok", "step_limit") and episode.notes["trials"][0]["reflection"] == ""
    bad = Talker(act=["?"], reflexion_reflect=["R"])
    episode, _ = run(Reflexion(trials=2), bad, budget=Budget(0, 9), limits=Limits(invalid_in_a_row=2, attempts=1))
    assert [t["steps"] for t in episode.notes["trials"]] == [2, 2] and episode.end_reason == "invalid_limit"


def test_best_of_n_takes_the_best_and_says_what_one_attempt_is_worth() -> None:
    episode, world = run(BestOfN(n=4), warm(act=from_trial(1)), budget=Budget(0, 12))
    assert episode.success and world.resets == 4 and episode.notes["chosen_trial"] == 1
    assert episode.notes["best_of_n"]["pass_at_1"] == 0.75 and episode.notes["best_of_n"]["pass_at_n"] == 1.0
    first, _ = run(BestOfN(n=4, select="first"), warm(act=from_trial(1)), budget=Budget(0, 12))
    assert not first.success and first.end_reason == "step_limit" and first.notes["best_of_n"]["pass_at_n"] == 1.0


def test_attempts_have_seeds_of_their_own() -> None:
    model = warm(act=[LOOK])
    run(BestOfN(n=2), model, budget=Budget(0, 2))
    seeds = [request.sampling.seed for _, _, request in model.requests]
    assert len(set(seeds)) == 4 and None not in seeds


def test_best_of_n_refuses_models_that_do_not_draw(tmp_path: Any) -> None:

    with pytest.raises(UserError, match=r"model\.temperature above 0"):
        asyncio.run(BestOfN().prepare(RunContext(Talker(act=[LOOK]), tmp_path)))
    ranking = warm(act=[LOOK])
    ranking.decode = "rank"  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="decode=rank"):
        asyncio.run(BestOfN().prepare(RunContext(ranking, tmp_path)))
    seeded = warm(act=[LOOK])
    seeded.sampling = replace(seeded.sampling, seed=1)
    with pytest.raises(UserError, match="seed"):
        asyncio.run(BestOfN().prepare(RunContext(seeded, tmp_path)))
    assert asyncio.run(BestOfN().prepare(RunContext(warm(act=[LOOK]), tmp_path))) == {}


class Shifting(ToyRooms):
    perturbs = True

    def perturb(self, seed: int) -> None:
        return None


@pytest.mark.parametrize("paradigm", [Reflexion(), BestOfN()])
def test_worlds_that_change_in_mid_episode_are_refused(paradigm: Any, tmp_path: Any) -> None:

    with pytest.raises(UserError, match=r"env\.perturb=none"):
        asyncio.run(paradigm.prepare(RunContext(warm(act=[LOOK]), tmp_path, Shifting())))


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"trials": 0}, {"memory": 0}):
        with pytest.raises(UserError):
            Reflexion(**wrong)
    with pytest.raises(UserError, match=r"paradigm\.n"):
        BestOfN(n=0)
