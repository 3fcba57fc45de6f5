"""TTExplore: when the thinker is asked, what the actor sees of it, what it costs, and that n = 0 is ReAct."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from paradigm_kit import Talker, expert, run

from agentexp.core import Completion, Episode, Request, Step, Usage
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.react import ReAct
from agentexp.paradigms.ttexplore import TTExplore, is_stuck
from agentexp.rollout import Budget, Limits

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
LOOK = "<think>so be it</think> <answer>look</answer>"


def thinking(*thoughts: str) -> dict[str, Any]:
    return {"act": [LOOK], "ttx_thinker": list(thoughts) or ["<deepthink>Look no more.</deepthink>"]}


def steps_of_thoughts(episode: Episode) -> list[int]:
    return [thought["step"] for thought in episode.notes["thoughts"]]


def actor_prompts(model: Talker) -> list[str]:
    return ["\n".join(f"{m.role}: {m.content}" for m in messages) for messages in model.prompts("act")]


@pytest.mark.parametrize("every", [1, 3, 6, 10])
def test_the_thinker_is_asked_after_every_n_steps_and_not_after_the_last(every: int) -> None:
    episode, _ = run(TTExplore(every=every), Talker(**thinking()), budget=Budget(0, 30))
    assert steps_of_thoughts(episode) == list(range(every, 30, every))
    assert episode.steps == 30 and episode.end_reason == "step_limit", "thinking costs no step"


@pytest.mark.skipif(not (SHARED / "spec" / "testvectors.json").is_file(), reason="the specification is not beside the checkout")
def test_the_schedule_of_the_specification() -> None:
    vector = json.loads((SHARED / "spec" / "testvectors.json").read_text())["thinker_due"]
    paradigm, due = TTExplore(every=vector["n"]), vector["steps_with_thinking"]
    history = [("look", Step("o"))]
    assert [t for t in range(1, due[-1] + 1) if paradigm.due(history * (t - 1))] == due


def test_nobody_thinks_once_the_episode_has_ended() -> None:
    needed = run(ReAct(form="think_answer"), Talker(act=expert), budget=Budget(0, 30))[0].steps
    model = Talker(act=expert, ttx_thinker=["<deepthink>A</deepthink>"])
    episode, _ = run(TTExplore(every=1), model, budget=Budget(0, 30))
    assert (episode.end_reason, episode.steps) == ("won", needed)
    assert steps_of_thoughts(episode) == list(range(1, needed))
    episode, _ = run(TTExplore(every=needed), model, budget=Budget(0, 30))
    assert episode.success and steps_of_thoughts(episode) == []


def test_n_0_is_react_step_for_step() -> None:
    one, two = Talker(act=[LOOK]), Talker(act=[LOOK])
    a, _ = run(TTExplore(every=0, trigger="both"), one, budget=Budget(3, 9))
    b, _ = run(ReAct(form="think_answer"), two, budget=Budget(3, 9))
    assert [messages for _, messages, _ in one.requests] == [messages for _, messages, _ in two.requests]
    assert [(s.action, s.observation, s.score) for s in a.trajectory] == [
        (s.action, s.observation, s.score) for s in b.trajectory
    ]
    assert a.chats == b.chats and a.usage == b.usage and "thoughts" not in a.notes


def test_the_newest_guidance_stands_below_the_last_observation() -> None:
    model = Talker(**thinking("<deepthink>FIRST</deepthink>", "<deepthink>SECOND</deepthink>"))
    episode, _ = run(TTExplore(every=2), model, budget=Budget(0, 6))
    prompts = actor_prompts(model)
    assert "adviser" in prompts[0] and all("FIRST" not in p for p in prompts[:2])
    assert all(p.count("FIRST") == 1 and "SECOND" not in p for p in prompts[2:4])
    assert all(p.count("SECOND") == 1 and "FIRST" not in p for p in prompts[4:])
    last = model.prompts("act")[2][-1]
    assert last.role == "user" and last.content.startswith(episode.trajectory[1].observation)
    assert last.content.endswith("Guidance of the adviser after step 2:\nFIRST")
    roles = [m.role for m in model.prompts("act")[-1]]
    assert roles == ["system", *["user", "assistant"] * 5, "user"], "chat templates want roles to take turns"
    for call in episode.calls:  # the record knows the prompt of every call, also of those before a thought was dropped
        asked = model.requests[episode.calls.index(call)][1]
        assert episode.chats[call.chat][: call.upto] == asked


@pytest.mark.parametrize(("keep", "kept"), [(2, ["T2", "T3"]), (None, ["T1", "T2", "T3"])])
def test_more_guidance_can_be_kept(keep: int | None, kept: list[str]) -> None:
    model = Talker(**thinking(*(f"<deepthink>T{i}</deepthink>" for i in (1, 2, 3))))
    seen: list[list[str]] = []

    def act(request: Request) -> str:
        seen.append(list(request.view.knowledge.get("guidance", ())))
        return LOOK

    model.replies["act"] = act
    run(TTExplore(every=1, keep_last_guidance=keep), model, budget=Budget(0, 4))
    assert [t for t in ("T1", "T2", "T3") if t in actor_prompts(model)[-1]] == kept == seen[-1]


def test_an_unreadable_thought_changes_nothing_but_the_record() -> None:
    model = Talker(**thinking("<deepthink>KEPT</deepthink>", "<deepthink></deepthink>"))
    episode, _ = run(TTExplore(every=2), model, budget=Budget(0, 6))
    assert [t["status"] for t in episode.notes["thoughts"]] == ["ok", "unreadable"]
    assert "KEPT" in actor_prompts(model)[-1] and episode.steps == 6 and episode.status == "ok"


def test_a_history_that_does_not_fit_the_thinker_is_cut_and_then_left_out() -> None:
    replies: list[Any] = [ContextOverflow("too long"), "<deepthink>A</deepthink>", *[ContextOverflow("too long")] * 3]
    model = Talker(act=[LOOK], ttx_thinker=[*replies, "<deepthink>B</deepthink>"])
    episode, _ = run(TTExplore(every=1), model, budget=Budget(0, 4))
    assert [t["status"] for t in episode.notes["thoughts"]] == ["ok", "context_limit", "ok"]
    assert episode.notes["thoughts"][1]["error"] == "too long"
    assert (episode.status, episode.end_reason, episode.steps) == ("ok", "step_limit", 4)


def test_the_thinkers_tokens_are_its_own() -> None:
    model = Talker(**thinking())
    episode, _ = run(TTExplore(every=2), model, budget=Budget(0, 6))
    assert episode.usage_by_role == {"actor": Usage(60, 30, calls=6), "thinker": Usage(20, 10, calls=2)}
    assert episode.usage == Usage(80, 40, calls=8)
    assert [c.role for c in episode.calls if c.purpose == "ttx_thinker"] == ["thinker"] * 2
    calls = [episode.notes["thoughts"][i]["call"] for i in (0, 1)]
    assert [episode.calls[i].purpose for i in calls] == ["ttx_thinker"] * 2


def test_the_thinkers_prompt_holds_all_that_happened_and_no_engine() -> None:
    model = Talker(**thinking())
    episode, _ = run(TTExplore(every=3), model, budget=Budget(0, 5))
    (prompt,) = model.prompts("ttx_thinker")
    text = prompt[-1].content
    assert episode.goal in text and "<deepthink>" in text and text.count("look\n") == 3
    assert episode.chats["acting"][1].content.split("\n")[0] in text


def test_a_limit_on_tokens_ends_the_episode_also_while_thinking() -> None:
    episode, _ = run(TTExplore(every=1), Talker(**thinking()), budget=Budget(0, 9), limits=Limits(tokens=30, attempts=1))
    assert (episode.end_reason, episode.status) == ("token_limit", "ok") and episode.notes["thoughts"]


def refused(n: int) -> list[tuple[str, Step]]:
    return [("open door", Step("No.", error=True))] * n


def test_being_stuck() -> None:
    fine = [(f"go {i}", Step(f"room {i}")) for i in range(6)]
    assert not is_stuck([], 3) and not is_stuck(refused(2), 3) and is_stuck(refused(3), 3)
    assert not is_stuck(fine, 3) and is_stuck([*fine, *fine[:3]], 3) and not is_stuck([*fine, *fine[:2], ("x", Step("y"))], 3)


def test_trigger_stuck_waits_for_trouble_and_then_for_new_steps() -> None:
    stuck, both = TTExplore(every=4, trigger="stuck"), TTExplore(every=4, trigger="both")
    assert stuck.due(refused(3)) == "stuck" and stuck.due(refused(4), last=3) == "" and stuck.due(refused(6), last=3) == "stuck"
    assert stuck.due([("go", Step("a")), ("on", Step("b")), ("up", Step("c")), ("in", Step("d"))]) == ""
    assert both.due(refused(3)) == "stuck" and both.due(refused(4), last=3) == "schedule"
    assert TTExplore(every=0, trigger="both").due(refused(9)) == ""
    episode, _ = run(TTExplore(every=50, trigger="stuck"), Talker(**thinking()), budget=Budget(0, 10))
    # the second look shows what the first did: from then on every step is a repetition
    assert steps_of_thoughts(episode) == [4, 7] and {t["reason"] for t in episode.notes["thoughts"]} == {"stuck"}


def test_thoughts_are_recorded_with_an_untagged_and_a_cut_reply() -> None:
    model = Talker(act=[LOOK], ttx_thinker=["No marks.", Completion("<deepthink>half", finish_reason="length")])
    episode, _ = run(TTExplore(every=1), model, budget=Budget(0, 3))
    assert [(t["status"], t["text"]) for t in episode.notes["thoughts"]] == [("untagged", "No marks."), ("cut", "half")]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"every": -1}, "every"),
        ({"stuck_after": 0}, "stuck_after"),
        ({"keep_last_guidance": 0}, "keep_last"),
        ({"trigger": "x"}, "trigger"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        TTExplore(**settings)
