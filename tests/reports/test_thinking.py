"""What reports say of exploring, thinking and trying again: definitions, ratios, who the thinker was."""

import pytest
from report_kit import record, write_run

from agentexp.metrics.exploration import attempts, exploration, masked
from agentexp.reports.build import build
from agentexp.reports.measures import read
from agentexp.reports.runs import load_run, load_runs
from agentexp.reports.spec import parse_spec

RULE = "^move => out of"


def episode(number, steps, success=False, **more):
    """steps: (action, observation), "!" behind a refused action, None for an unreadable reply."""
    trajectory = [
        {
            **{"phase": "acting", "status": "invalid" if action is None else "ok", "observation": seen, "score": score},
            **{"action": action and action.rstrip("!"), "error": action is None or action.endswith("!"), "rewrite": ""},
        }
        for action, seen, score in ((*step, 0.0)[:3] for step in steps)
    ]
    usage = {"calls": 4, "prompt_tokens": 60, "completion_tokens": 40, "cost": None}
    found = record(number, success, steps=len(trajectory), **more)
    return {**found, "trajectory": trajectory, "usage": usage, "seconds": 2.0}


def value(name, one, at=None):
    part = read(one, [(name, at)]).get((name, at))
    return part and part[0] / part[1]


LOOP = episode(
    0, [("go to desk 1", "a mug 1"), ("look", "a mug 1"), ("go to desk 1", "a mug 1"), (None, "unreadable"), ("x!", "a mug 2")]
)


def test_exploration_counts():
    found = exploration(LOOP)
    assert (found.steps, found.actions, found.observations, found.repeated, found.invalid) == (5, 3, 2, 1, 2)
    assert value("action_diversity", LOOP) == 3 / 5 and value("observation_diversity", LOOP) == 2 / 5
    assert value("repetition", LOOP) == 1 / 5 and value("invalid", LOOP) == 2 / 5
    assert masked("On  the Desk 1,\nyou see a mug 12") == "on the desk <n>, you see a mug <n>"
    assert value("invalid", episode(0, [])) is None


def test_attempts_are_counted_apart():
    trials = [
        {"first_step": 0, "steps": 2, "success": False, "score": 0.5},
        {"first_step": 2, "steps": 2, "success": True, "score": 1.0},
    ]
    twice = episode(0, [("look", "o")] * 4, True, notes={"trials": trials, "chosen_trial": 1})
    assert [len(steps) for steps in attempts(twice)] == [2, 2]
    assert value("repetition", twice) == 2 / 4 and value("action_diversity", twice) == 2 / 4
    assert value("first_success", twice) == 1 / 2 and value("first_success", LOOP) == 0.0
    assert (
        value("progress", twice) == 1.0 and value("progress", {**twice, "notes": {"trials": trials, "chosen_trial": 0}}) == 0.5
    )


def test_the_process_score_never_falls():
    assert value("progress", episode(0, [("a", "o", 0.25), ("b", "o", 0.75), ("c", "o", 0.0)])) == 0.75
    assert value("progress", episode(0, [("a", "o", 0.5)], True)) == 1.0


def thinking(said, *, met=True, success=False):
    steps = [("move pen 1 to desk 1!" if met else "look", "o")]
    return episode(0, steps, success, notes={"thoughts": [{"text": text, "step": 1} for text in said]})


def test_rules_that_were_met_and_said():
    hit, miss, never = (
        thinking(["a", "take it out of there"], success=True),
        thinking(["a", ""]),
        thinking(["out of"], met=False),
    )
    assert [value("rule_met", one, RULE) for one in (hit, miss, never)] == [1.0, 1.0, 0.0]
    assert [value("rule_hit", one, RULE) for one in (hit, miss, never)] == [1.0, 0.0, None]
    assert value("rule_hit", episode(0, [("move pen 1 to desk 1!", "o")]), RULE) is None, "nobody thought"
    assert [value("success_hit", one, RULE) for one in (hit, miss, never)] == [1.0, None, None]
    assert [value("success_no_hit", one, RULE) for one in (hit, miss, never)] == [None, 0.0, None]
    assert (
        value("thoughts", hit) == 2
        and value("unreadable_thoughts", miss) == 1 / 2
        and value("unreadable_thoughts", LOOP) is None
    )


def test_tokens_of_a_role():
    one = {**LOOP, "usage_by_role": {"thinker": {"prompt_tokens": 7, "completion_tokens": 3}}}
    assert value("role_tokens", one, "thinker") == 10 and value("role_tokens", one, "actor") == 0


@pytest.mark.parametrize(
    ("paradigm", "every", "role", "labels"),
    [
        ("ttexplore", 0, None, ("tiny", "none")),
        ("ttexplore", 6, None, ("tiny", "same")),
        ("ttexplore", 6, {"_target_": "agentexp.models.openai_api.OpenAIModel", "name": "org/large"}, ("large", "other")),
        ("ttexplore", 0, {"_target_": "agentexp.models.openai_api.OpenAIModel", "name": "large"}, ("large", "none")),
        ("react", None, None, ("", "")),
    ],
)
def test_who_thinks(tmp_path, paradigm, every, role, labels):
    config = {"paradigm": {"every": every}, "roles": {"thinker": role} if role else {}}
    run = load_run(write_run(tmp_path / "run", [LOOP], paradigm=paradigm, config=config))
    assert (run.labels["thinker"], run.labels["thinking"]) == labels and run.labels["own_thinker"] is bool(role)


def test_a_ratio_is_mean_over_mean_of_the_shared_episodes(tmp_path):
    def runs(name, every, tokens):
        episodes = [episode(i, [("look", "o")]) for i in range(len(tokens))]
        for one, number in zip(episodes, tokens, strict=True):
            one["usage"] = {**one["usage"], "prompt_tokens": number, "completion_tokens": 0}
        write_run(tmp_path / name, episodes, paradigm="ttexplore", config={"paradigm": {"every": every}})

    runs("without", 0, [100, 300])
    runs("with", 6, [200, 400, 9999])
    column = {
        "title": "c",
        "relative": True,
        "metric": "tokens",
        "where": {"paradigm.every": 6},
        "versus": {"paradigm.every": 0},
    }
    spec = parse_spec("own", {"title": "t", "panels": ["p"], "rows": ["r"], "columns": [column]})
    ((_, (cell,)),) = build(spec, load_runs([tmp_path], {("tokens", None)})).panels[0].rows
    assert (cell.measured, cell.n, cell.difference, cell.digits) == (600 / 400, 2, False, 2)
    assert cell.low <= cell.measured <= cell.high
