"""The numbers of one run: denominators, means and warnings (cases T01, T03, P10, E01)."""

import json

import pytest

from agentexp.metrics.behaviour import diagnose, failed
from agentexp.metrics.stats import wilson
from agentexp.metrics.summary import summarise


def episode(number, success=False, *, reason="", status="ok", score=None, kind="", steps=(), **more):
    task = {"id": f"task{number}", "env": "toy", "split": "test", "seed": 0, "repeat": 0, "kind": kind}
    return {
        "task": task,
        "status": status,
        "end_reason": reason or ("won" if success else "step_limit"),
        "success": success,
        "score": float(success) if score is None else score,
        "steps": len(steps),
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 50, "calls": 2, "cost": None},
        "seconds": 1.5,
        "trajectory": list(steps),
        **more,
    }


def step(status="ok", **more):
    return {"status": status, "action": "look" if status == "ok" else None, **more}


def test_harness_errors_are_no_failures_of_the_agent_and_both_rates_are_shown():
    """T01: 5 won, 2 lost, 1 loop of cut replies, 2 server errors."""
    records = [episode(i, True) for i in range(5)]
    records += [
        episode(5, reason="lost"),
        episode(6, reason="lost"),
        episode(7, reason="invalid_limit", steps=[step("truncated")]),
    ]
    records += [episode(8, reason="model_error", status="error"), episode(9, reason="model_error", status="error")]
    result = summarise(records, 10)
    assert (result["planned"], result["finished"], result["harness_errors"]) == (10, 8, 2)
    assert result["success_rate"] == 5 / 8
    assert result["success_rate_errors_as_failures"] == 5 / 10
    assert result["success_interval"] == list(wilson(5, 8))
    assert result["end_reasons"] == {"won": 5, "lost": 2, "model_error": 2, "invalid_limit": 1}
    assert any("harness errors" in warning for warning in result["warnings"])


@pytest.mark.parametrize("reason", ["token_limit", "context_limit", "invalid_limit", "step_limit", "lost"])
def test_what_the_agent_caused_counts_as_failure(reason):
    result = summarise([episode(0, True), episode(1, reason=reason)], 2)
    assert result["success_rate"] == 0.5
    assert result["harness_errors"] == 0


def test_a_context_that_is_mostly_full_is_a_loud_warning():
    """Such ends count as failures, but hundreds of them say something about a setting."""
    records = [episode(0, True), *(episode(i, reason="context_limit") for i in range(1, 4))]
    (warning,) = summarise(records, 4)["warnings"]
    assert warning.startswith("3 of 4 episodes ended because the conversation did not fit")
    assert summarise([*records[:2], episode(2, True)], 3)["warnings"] == []


def test_micro_macro_and_empty_categories():
    """T03: pick 24 games at 75 %, examine 18 games at 50 %, a kind without games."""
    records = [episode(i, i < 18, kind="pick") for i in range(24)] + [
        episode(100 + i, i < 9, kind="examine") for i in range(18)
    ]
    records.append(episode(999, kind="cool", status="error", reason="env_error"))
    result = summarise(records, 43)
    assert round(100 * result["success_rate"], 1) == 64.3
    assert round(100 * result["success_rate_macro"], 1) == 62.5
    assert result["by_kind"]["pick"] == {"n": 24, "success_rate": 0.75}
    assert result["by_kind"].get("cool", {"n": 0})["n"] == 0


def test_mean_score_is_not_the_success_rate():
    result = summarise([episode(0, True, score=1.0), episode(1, score=0.25), episode(2, score=0.4)], 3)
    assert round(100 * result["mean_score"], 1) == 55.0
    assert round(100 * result["success_rate"], 1) == 33.3


def test_success_is_the_worlds_word_not_done():
    """E01: an agent that only looks until the limit wins nothing, although the world says done."""
    looks = [step(done=True, success=False) for _ in range(5)]
    result = summarise([episode(i, reason="step_limit", steps=looks) for i in range(3)], 3)
    assert (result["success_rate"], result["end_reasons"]) == (0.0, {"step_limit": 3})
    assert summarise([episode(i, True) for i in range(3)], 3)["success_rate"] == 1.0


def test_rates_of_replies_and_the_loud_warning():
    """P10: shares are over replies, not over episodes; a run that is mostly unreadable is not a result."""
    steps = [
        step(),
        step(rewrite="LOOK"),
        step(error=True),
        step("invalid", flags=["empty"]),
        step("invalid", flags=["refusal"]),
    ]
    steps += [step("truncated"), step("truncated"), step("ambiguous"), step("invalid"), step("truncated")]
    result = summarise([episode(0, steps=steps)], 1)
    assert (result["invalid_rate"], result["truncated_rate"], result["ambiguous_rate"]) == (0.3, 0.3, 0.1)
    assert (result["rewritten_rate"], result["empty_rate"], result["refusal_rate"]) == (0.1, 0.1, 0.1)
    assert any(warning.startswith("70% of the replies could not be read") for warning in result["warnings"])
    assert summarise([episode(0, steps=[step()])], 1)["warnings"] == []


def test_tokens_and_cost_of_failed_episodes_count_too():
    records = [episode(0, True), episode(1, status="error", reason="timeout")]
    records[0]["usage"]["cost"] = 0.25
    result = summarise(records, 2)
    assert result["tokens"] == {"prompt": 200, "completion": 20, "cached": 100}
    assert (result["calls"], result["cost"], result["seconds"]) == (4, 0.25, 3.0)
    assert summarise([episode(0)], 1)["cost"] is None


def test_nothing_to_count_is_none_not_zero():
    for records, planned in (([], 20), ([episode(0, status="error", reason="env_error")], 20)):
        result = summarise(records, planned)
        for name in ("success_rate", "success_interval", "mean_steps", "mean_score", "invalid_rate", "cost"):
            assert result[name] is None, name
    explored = summarise([episode(0, reason="completed")], 1)
    assert explored["success_rate"] is None
    assert explored["finished"] == 1


def test_behaviour_on_failures_and_coverage_are_in_the_summary():
    """The same numbers as the functions give that the tables use."""
    steps = [step(phase="acting", error=False), step(phase="acting", error=False), step("invalid", phase="acting", error=True)]
    checkpoints = [{"kind": "place", "name": "a", "step": 2}, {"kind": "place", "name": "b", "step": None}]
    records = [episode(i, i == 0, steps=steps, notes={"checkpoints": checkpoints}) for i in range(3)]
    result = summarise(records, 3)
    wanted = diagnose(failed(records))
    assert result["on_failures"]["n_episodes"] == 2
    assert result["on_failures"]["repeated_action_rate"]["value"] == wanted.repeated_action_rate.value == 0.5
    assert result["ecc"]["ecc"]["value"] == 0.5
    assert result["ecc"]["curve"]["10"]["value"] == 0.5
    json.dumps(result)
    explored = summarise([episode(0, reason="completed", steps=steps)], 1)
    assert (explored["on_failures"], explored["ecc"]) == (None, None)
