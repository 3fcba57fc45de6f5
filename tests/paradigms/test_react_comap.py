"""ReAct and CoMAP: budget, ends, what the prompts hold, what stays in the history."""

import pytest
from paradigm_kit import Talker, action, expert, run

from agentexp.core import Paradigm
from agentexp.envs.toy import ToyRooms
from agentexp.paradigms.comap import CoMap
from agentexp.paradigms.react import MAX_LISTED, ReAct
from agentexp.rollout import Budget


@pytest.mark.parametrize("paradigm", [ReAct(), CoMap()])
def test_baselines_act_for_mapping_and_acting_steps(paradigm: Paradigm) -> None:
    episode, world = run(paradigm, Talker(act=[action("look")]), budget=Budget(10, 50))
    assert (episode.status, episode.end_reason, episode.success) == ("ok", "step_limit", False)
    assert episode.steps_by_phase == {"acting": 60}
    assert len(episode.calls) == 60 and world.resets == 1


def test_stops_when_the_task_is_solved() -> None:
    episode, _ = run(ReAct(), Talker(act=expert), budget=Budget(10, 50))
    assert (episode.end_reason, episode.success, episode.score) == ("won", True, 1.0)
    assert episode.steps == episode.steps_by_phase["acting"] < 60


def test_first_message_names_goal_and_later_ones_do_not() -> None:
    model = Talker(act=[action("look")])
    episode, _ = run(ReAct(show_steps_left=True), model, budget=Budget(0, 3))
    last = model.prompts("act")[-1]
    assert [m.role for m in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert ToyRooms.card.actions in last[0].content and "Action:" in last[0].content
    assert f"Goal: {episode.goal}" in last[1].content and "Steps left: 3" in last[1].content
    assert "Goal:" not in last[3].content and "Steps left: 2" in last[3].content


@pytest.mark.parametrize(("style", "shown", "expected"), [("full", None, False), ("compact", None, True), ("full", True, True)])
def test_admissible_actions_are_shown_on_demand_or_in_compact_style(style: str, shown: bool | None, expected: bool) -> None:
    model = Talker(act=[action("look")])
    run(ReAct(style=style, show_admissible=shown), model, budget=Budget(0, 2))  # type: ignore[arg-type]
    assert all(("Allowed now: go " in m.content) is expected for m in model.prompts("act")[-1] if m.role == "user")


def test_a_long_list_of_actions_is_cut_and_says_so() -> None:
    from agentexp.core import Step

    text = ReAct(show_admissible=True).next(Step("o", admissible=tuple(f"use tool {i}" for i in range(MAX_LISTED + 7))), 1)
    assert f"use tool {MAX_LISTED - 1}; and 7 more" in text and f"use tool {MAX_LISTED};" not in text


def test_the_map_part_of_comap_stays_in_the_history() -> None:
    model = Talker(act=["Map: the hall is empty\nThought: on\nAction: look"])
    run(CoMap(), model, budget=Budget(0, 2))
    prompt = model.prompts("act")[-1]
    assert "world model" in prompt[0].content and "Map:" in prompt[0].content
    assert "Map: the hall is empty" in prompt[2].content


def test_comap_is_react_plus_a_block() -> None:
    card = ToyRooms.card
    react = ReAct(form="map_think_act").system(card, "toy")
    comap = CoMap().system(card, "toy")
    assert [line for line in react.splitlines() if line not in comap.splitlines()] == []
