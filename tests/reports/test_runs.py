"""Reading run folders and pooling them into cells."""

import pytest
from report_kit import record, write_run

from agentexp.errors import UserError
from agentexp.metrics.stats import wilson
from agentexp.reports.cells import difference_cell, rate_cell
from agentexp.reports.runs import Group, differing, find_runs, load_run, load_runs, pooled


def only(runs):
    (members,) = pooled(runs)
    return Group(members)


def test_find_runs_at_and_below(tmp_path):
    a = write_run(tmp_path / "eval" / "x", [record(0)])
    b = write_run(tmp_path / "y", [record(0)])
    assert find_runs(tmp_path) == [a, b]
    assert find_runs(a) == [a]
    assert [run.folder for run in load_runs([a, tmp_path])] == [a, b]
    with pytest.raises(UserError, match="does not exist"):
        find_runs(tmp_path / "nothing")
    with pytest.raises(UserError, match="is not a run folder"):
        load_run(tmp_path)


def test_a_damaged_run_is_left_out(tmp_path, caplog):
    whole = write_run(tmp_path / "a", [record(0)])
    for name, text in (("b", "[1, 2]"), ("c", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
    assert [run.folder for run in load_runs([tmp_path])] == [whole]
    assert caplog.text.count("Left out") == 2
    with pytest.raises(UserError):
        load_runs([tmp_path / "b"])


def test_torn_line_and_retried_episodes(tmp_path):
    records = [record(0, status="error"), record(1, status="error"), record(0, True), record(2, True)]
    folder = write_run(tmp_path / "run", records)
    with (folder / "episodes.jsonl").open("a") as file:
        file.write('{"schema":1,"key":"alfworld/test/game3#seed0.0","sta')
    run = load_run(folder)
    assert {row.key[-15:]: (row.finished, row.success) for row in run.rows} == {
        "est/game0#seed0.0"[-15:]: (True, True),
        "est/game1#seed0.0"[-15:]: (False, False),
        "est/game2#seed0.0"[-15:]: (True, True),
    }


def test_one_run_has_the_wilson_interval_and_no_deviation(tmp_path):
    group = only([load_run(write_run(tmp_path / "a", [record(i, i < 78) for i in range(134)]))])
    cell = rate_cell(group, 61.1, comparable=True)
    assert (cell.measured, cell.n, cell.std, cell.marks) == (pytest.approx(100 * 78 / 134), 134, None, ())
    assert (cell.low, cell.high) == pytest.approx((49.74, 66.22), abs=0.01)
    assert cell.runs == (str(tmp_path / "a"),)


def test_several_seeds_are_a_mean_of_rates_with_seeds_kept_together(tmp_path):
    # the same games are won with every seed: three seeds are no more evidence than one
    for seed in range(3):
        write_run(tmp_path / str(seed), [record(i, i < 10, seed=seed) for i in range(20)], config={"seed": seed})
    cell = rate_cell(only(load_runs([tmp_path])))
    assert (cell.measured, cell.std, cell.seeds, cell.n, cell.planned) == (50.0, 0.0, 3, 60, 60)
    low, high = wilson(10, 20)
    assert cell.low == pytest.approx(100 * low, abs=5)
    assert cell.high == pytest.approx(100 * high, abs=5)


def test_deviation_over_seeds(tmp_path):
    for seed, won in ((0, 4), (1, 6), (2, 8)):
        write_run(tmp_path / str(seed), [record(i, i < won, seed=seed) for i in range(10)], config={"seed": seed})
    cell = rate_cell(only(load_runs([tmp_path])))
    assert (cell.measured, cell.std) == (pytest.approx(60.0), pytest.approx(20.0))


def test_all_won_with_several_seeds_is_not_certainty(tmp_path):
    records = [record(i, True, seed=seed) for seed in range(2) for i in range(5)]
    cell = rate_cell(only([load_run(write_run(tmp_path / "a", records))]))
    assert cell.low == pytest.approx(100 * wilson(5, 5)[0])


def test_errors_are_left_out_counted_and_marked(tmp_path):
    """Case T01."""
    records = [record(i, i < 5) for i in range(8)] + [record(8, status="error"), record(9, status="error")]
    cell = rate_cell(only([load_run(write_run(tmp_path / "a", records))]), comparable=True)
    assert (cell.measured, cell.as_failures, cell.n, cell.excluded, cell.marks) == (62.5, 50.0, 8, 2, ("‡",))


def test_partial_runs_and_unreadable_replies_are_marked(tmp_path):
    records = [record(i, True, unreadable=3) for i in range(5)]
    planned = [f"alfworld/test/game{i}#seed0.0" for i in range(20)]
    cell = rate_cell(only([load_run(write_run(tmp_path / "a", records, planned=planned))]), comparable=True)
    assert (cell.n, cell.planned, cell.marks) == (5, 20, ("†", "§"))
    empty = rate_cell(only([load_run(write_run(tmp_path / "b", [], planned=planned))]))
    assert (empty.measured, empty.n, empty.planned, empty.marks) == (None, 0, 20, ("*", "†"))


def test_runs_with_other_settings_are_never_pooled(tmp_path):
    for seed in range(2):
        for shown in (True, False):
            config = {"seed": seed, "model": {"seed": seed}, "env": {"show_admissible": shown}, "concurrency": seed + 1}
            write_run(tmp_path / f"{seed}{shown}", [record(0, shown, seed=seed)], config=config)
    a, b = pooled(load_runs([tmp_path]))
    assert set(differing([a[0].settings, b[0].settings])) == {"env.show_admissible=True", "env.show_admissible=False"}
    assert [len(Group(members).finished) for members in (a, b)] == [2, 2]
    assert differing([{"x": 1}]) == [""]


def test_copies_of_a_run_count_once(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / name, [record(i, True) for i in range(4)])
    assert rate_cell(only(load_runs([tmp_path]))).n == 4


def test_paired_difference_and_its_marks(tmp_path):
    lost = Group((load_run(write_run(tmp_path / "a", [record(i, i < 10) for i in range(40)])),))
    won = Group((load_run(write_run(tmp_path / "b", [record(i, i < 30) for i in range(10, 50)])),))
    cell = difference_cell(lost, won, comparable=True)
    assert (cell.measured, cell.n, cell.difference) == (pytest.approx(100 * 20 / 30), 30, True)
    assert cell.low is not None and cell.low > 0
    assert cell.marks == ()
    assert difference_cell(lost, lost, comparable=True).marks == ("≈",)
    assert difference_cell(lost, None, 29.3).measured is None
