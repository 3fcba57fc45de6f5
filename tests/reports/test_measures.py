"""Measures against the metrics modules, and a whole table against its golden text."""

import pytest
from report_kit import load, record, write_run

from agentexp.metrics.behaviour import diagnose, failed
from agentexp.metrics.efficiency import cost_of_episode
from agentexp.metrics.perturbation import perturbation
from agentexp.reports.measures import MEASURES, read
from agentexp.reports.tables import to_text, turned

USAGE = {"calls": 3, "prompt_tokens": 100, "completion_tokens": 20, "cost": None}


def episode(number, success=False, actions=(), **more):
    seen = {"phase": "acting", "status": "ok", "observation": "", "score": 0.0}
    steps = [{**seen, "action": a.rstrip("!"), "error": a.endswith("!")} for a in actions]
    return record(number, success, steps=len(steps), **more) | {"trajectory": steps, "usage": USAGE, "seconds": 2.0}


EPISODES = [
    episode(0, actions=["go to desk 1", "go to desk 1", "look", "take mug 1!", "go to bed 1"]),
    episode(1, actions=["a", "b", "a", "b", "x!", "x!"], notes={"perturbation": {"step": 2, "origins": ["desk 1"]}}),
    episode(2, True, actions=["go to bed 1", "go to sofa 1"], notes={"perturbation": {"step": 0, "origins": ["bed 1"]}}),
]


def value(name, at=None, episodes=EPISODES):
    parts = [found[name, at] for one in episodes if (name, at) in (found := read(one, [(name, at)]))]
    return sum(a for a, _ in parts) / sum(b for _, b in parts)


def test_rates_are_those_of_the_diagnostics():
    wanted = diagnose(failed(EPISODES))
    assert value("repeated") == wanted.repeated_action_rate.value
    assert value("loop") == wanted.loop_rate.value
    assert value("info_seeking") == wanted.info_seeking_rate.value
    assert value("recovery") == wanted.error_recovery_rate.value
    assert value("recovery_1") == wanted.error_recovery_rate_1.value


def test_perturbation_is_over_the_rollouts_in_which_it_happened():
    wanted = perturbation(EPISODES, EPISODES)
    assert value("delta_steps") == wanted.delta_steps.value == pytest.approx((6 - 2 - 1 + 2 - 0 - 1) / 2)
    assert value("reexplored") == wanted.re_exploration == 0.5


def test_costs_and_traces():
    assert value("tokens") == cost_of_episode(EPISODES[0]).tokens == 120
    trace = [
        {"t": 1, "delta_k": 4, "novelty": 1.0, "window_mean": 1.0},
        {"t": 2, "delta_k": 0, "novelty": 0.7, "window_mean": 0.85},
    ]
    mapped = [
        episode(0, notes={"stop_trace": trace, "stop": {"reason": "converged", "t": 2}}),
        episode(1, notes={"stop_trace": trace[:1], "stop": {"reason": "world_done", "t": 1}}),
    ]
    assert (value("delta_k", 1, mapped), value("delta_k", 2, mapped)) == (4, 0)
    assert (value("converged", 1, mapped), value("converged", 2, mapped)) == (0, 0.5)
    rows = [
        {"category": "affordance", "correct": True, "unknown": False},
        {"category": "negative", "correct": False, "unknown": True},
    ]
    asked = [episode(0, notes={"map_qa": rows})]
    assert (value("map_qa", None, asked), value("map_qa", "affordance", asked), value("map_qa_unknown", None, asked)) == (
        0.5,
        1,
        0.5,
    )


def test_what_an_episode_says_nothing_about_is_left_out():
    keys = [(name, None) for name in MEASURES]
    bare = read(episode(0, True, actions=["look"]), keys)
    assert {name for name, _ in bare} == {
        *("success", "instances", "steps", "turns", "calls", "tokens", "seconds", "progress", "first_success"),
        *("action_diversity", "observation_diversity", "repetition", "invalid"),
    }


GOLDEN = [
    *("ALFWorld variants (paper 001, table 6)", "ALFWorld", ""),
    *("games solved by the expert % steps of the expert", ""),
    *("original 6* 100.0 [61.0, 100.0]* 5.0 [5.0, 5.0]*", "n=6, paper 274 n=6 n=6"),
    *("object relocation 5*† 80.0 [37.6, 96.4]*† 4.6 [3.8, 5.0]*†", "n=5/6, paper 274 n=5/6 n=5/6"),
    *("interaction precondition paper 274 – –", "distractor injection paper 274 – –"),
]


def test_golden_table(tmp_path):
    config = {"env": {"variant": "none", "distractor_kind": "similar", "perturb": "none"}}
    write_run(tmp_path / "a", [record(i, True) for i in range(6)], model="scripted-oracle", config=config)
    config = {"env": {**config["env"], "variant": "relocation"}}
    planned = [f"alfworld/test/game{i}#seed0.0" for i in range(6)]
    records = [record(i, i > 0, steps=5 if i else 3) for i in range(5)]
    write_run(tmp_path / "b", records, model="scripted-oracle", config=config, planned=planned)
    table = load("ecc-table6", tmp_path)
    lines = [" ".join(line.strip(" ─").split()) for line in to_text(table).splitlines()]
    assert lines[: len(GOLDEN)] == GOLDEN
    total = dict(table.panels[0].rows)["total"]
    assert (total[0].measured, total[0].published, total[1].measured) == (11, 1096, pytest.approx(1000 / 11))
    assert dict(turned(table).panels[0].rows)["games"] == [line[0] for _, line in table.panels[0].rows]
