"""`agentexp compare`."""

import pytest
from report_kit import record, write_run

from agentexp.errors import UserError
from agentexp.metrics.stats import mcnemar
from agentexp.reports import compare
from agentexp.reports.pairs import compare_runs


def test_only_shared_finished_tasks_count(tmp_path):
    a = [record(i, i < 10) for i in range(30)] + [record(30, status="error")]
    b = [record(i, i < 25, steps=7) for i in range(5, 31)] + [record(40, True)]
    found = compare_runs(write_run(tmp_path / "a", a), write_run(tmp_path / "b", b, paradigm="map"))
    assert (found.n, found.instances, found.only_a, found.only_b, found.excluded) == (25, 25, 5, 1, 1)
    assert (found.success_a, found.success_b) == (5 / 25, 20 / 25)
    assert found.success.mean == pytest.approx(15 / 25)
    assert found.success.resolved
    assert found.steps.mean == 2.0
    left = {i: i < 10 for i in range(5, 30)}
    assert found.discordant == mcnemar(left, {i: i < 25 for i in left})


def test_text_says_what_is_not_resolved_and_which_settings_differ(tmp_path):
    a = write_run(tmp_path / "a", [record(i, i < 5) for i in range(20)], config={"model": {"temperature": 0.0}})
    b = write_run(tmp_path / "b", [record(i, i < 6) for i in range(20)], config={"model": {"temperature": 0.7}})
    text = compare(a, b)
    assert "20 tasks in both" in text
    assert "only a succeeded: 0, only b: 1, exact p = 1" in text
    assert "not resolved" in text
    assert "a: model.temperature=0.0" in text


def test_several_seeds_are_clusters_and_have_no_mcnemar(tmp_path):
    a = write_run(tmp_path / "a", [record(i, False, seed=s) for s in range(2) for i in range(4)])
    b = write_run(tmp_path / "b", [record(i, i < 2, seed=s) for s in range(2) for i in range(4)])
    found = compare_runs(a, b)
    assert (found.n, found.instances, found.discordant) == (8, 4, None)
    assert "8 episodes of 4 instances" in compare(a, b)


def test_runs_without_a_common_task_are_refused(tmp_path):
    a = write_run(tmp_path / "a", [record(1)])
    b = write_run(tmp_path / "b", [record(2)])
    with pytest.raises(UserError, match="share no finished task"):
        compare_runs(a, b)
    with pytest.raises(UserError, match="not a run folder"):
        compare_runs(a, tmp_path)


def test_explorations_are_compared_by_their_coverage(tmp_path):
    def explored(hits):
        points = [{"kind": "object", "name": f"o{i}", "step": 1 if i < hits else None} for i in range(4)]
        return {"checkpoints": points, "exploration": {"steps": 5, "budget": 5, "premature": False, "explorer": "e"}}

    a = write_run(tmp_path / "a", [record(i, notes=explored(1)) for i in range(6)])
    b = write_run(tmp_path / "b", [record(i, notes=explored(3)) for i in range(5)])
    found = compare_runs(a, b).ecc
    assert found is not None and (found.mean, found.n, found.resolved) == (0.5, 5, True)
    assert "ECC b - a     +50.0 points [+50.0, +50.0], n = 5" in compare(a, b)
    assert compare_runs(a, write_run(tmp_path / "c", [record(1)])).ecc is None
