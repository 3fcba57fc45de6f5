import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import bench
from benchmarks import tables, turns
from benchmarks.workload import Load

TINY = dataclasses.replace(
    bench.SMALL, turns=(2, 3), least_turns=8, in_flight=2, many=3, waiting=3, finished=6, reported=6, shown=6
)


def quiet(_: str) -> None:
    """Says nothing."""


def test_turns_and_many_in_flight() -> None:
    results = bench.bench(["turns", "flight"], TINY, say=quiet)
    for name in turns.DRIVES:
        assert set(results[name]) == {"2", "3"} and all(0 < value < 1000 for value in results[name].values())
    assert results["setting"] == {"episodes_in_flight": 2, "reply_ms": 5.0}
    assert results["flatness"] > 0 and results["many_in_flight"]["in_flight"] == 3
    assert all(share > 0 for share in results["many_in_flight"]["share_of_server_rate"].values())
    assert set(results["load"]) == {"turns", "flight"}
    text = tables.text(results)
    assert len(text.splitlines()) == 5 and "3 turns over 2" in text


@pytest.mark.slow
def test_memory_startup_and_folders() -> None:
    results = bench.bench(["memory", "startup", "folders"], TINY, say=quiet)
    assert [found["turns"] for found in results["memory"]] == [0, 2]
    assert results["startup"]["toy"]["cpu_s"] > 0 and results["startup"]["floor_s"]["cpu_s"] > 0
    for name in ("one_owed", "all_finished", "issued_again"):
        assert results["resume"][name]["wall_s"] > 0
    assert results["report"]["episodes"] == 6 and results["page"]["page_bytes"] > 10_000
    assert "episodes, nothing new" in tables.text(results)


@pytest.mark.engine
def test_steps_of_a_world_in_this_process_and_of_one_in_workers() -> None:
    from benchmarks import engines

    found = engines.all_worlds(["pddl", "toy"], 2, 4, 1)
    assert not found["pddl"]["processes"] and found["pddl"]["cpu_ratio"] > 0 and found["toy"]["steps"] > 0
    settings, spec = engines.configured("toy")
    assert settings.in_process and spec == {"_target_": "agentexp.envs.toy.ToyRooms", "rooms": 5, "things": 4, "n_tasks": 8}


def test_a_world_that_cannot_run_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import engines

    from agentexp.errors import MissingDependency

    def missing(name: str) -> None:
        raise MissingDependency(f"env={name} needs a package.\nMore about it.")

    monkeypatch.setattr(engines, "configured", missing)
    found = engines.all_worlds(["jericho"], 1, 1, 1)
    assert found == {"jericho": {"skipped": "env=jericho needs a package."}}
    assert "skipped: env=jericho needs a package." in tables.markdown({"env_steps": found})


def test_a_load_is_whole_waves() -> None:
    assert Load.of(32, 10, 3200) == Load(32, 10, 320) and Load.of(32, 10, 3200).total == 3200
    assert Load.of(32, 100, 3200) == Load(32, 100, 32) and Load.of(32, 100, 1) == Load(32, 100, 32)


def test_flatness_is_the_median_of_the_rounds() -> None:
    assert turns.flatness([{10: 1.0, 30: 1.0, 100: 1.1}, {10: 2.0, 30: 1.0, 100: 9.0}, {10: 1.0, 100: 1.2}]) == 1.2
    assert turns.flatness([{10: 1.0}]) is None


PEERS = {
    "cpu_ms_per_turn": {"10": 0.5},
    "other": {"version": "1", "cpu_ms_per_turn": {"10": 4.0}, "times_ours": {"10": 8.0}},
}


def test_rows_say_whether_an_aim_is_met() -> None:
    (row,) = tables.rows({"peers": PEERS})
    assert (row.measured, row.ratio, row.aim, row.met) == ("4.0 ms", "8.0", "≥ 10", "no")


def test_the_page_gets_the_table_between_its_marks(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "bench.json"
    data.write_text(json.dumps({"peers": PEERS, "load": {"peers": [0.1, 2.0]}, "machine": {"cores": 2, "system": "Linux"}}))
    page.write_text(f"# Title\n{tables.BEGIN}\nold\n{tables.END}\nEnd.\n")
    script = Path(bench.__file__)
    for _ in range(2):
        subprocess.run([sys.executable, str(script), "--out", str(data), "--markdown", str(page)], check=True)
    text = page.read_text()
    assert text.startswith("# Title\n") and text.endswith("End.\n") and "old" not in text
    assert (
        text.count("| other 1, CPU per turn, 10 turns | 4.0 ms |") == 1
        and "Load average during the sections: 0.1 to 2.0" in text
    )
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="no place for the table"):
        tables.put_into(page, "x")


def test_sections_that_were_not_measured_again_are_kept() -> None:
    old, new = {"a": 1, "b": 2, "load": {"x": [0, 0], "y": [1, 1]}}, {"b": 3, "load": {"y": [2, 2]}}
    assert bench.merged(old, new) == {"a": 1, "b": 3, "load": {"x": [0, 0], "y": [2, 2]}}
