"""Sparse tasks through `agentexp wise-run`: run folders, resuming, summaries, saved graphs, and vision endpoints that fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="needs the extra wise")
pytest.importorskip("networkx", reason="needs the extra wise")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # fake_server.py, wise_figures.py
import wise_figures
from fake_server import spawn

from agentexp.cli import main
from agentexp.store import read_episodes

SMALL = ("task=abc_sparse", "budget=260", "seeds=1", "workers=1", "progress=off", "task.spawn_tick=40")


def run(tmp_path: Path, *overrides: str, flags: tuple[str, ...] = (), code: int = 0) -> None:
    with pytest.raises(SystemExit) as end:
        main(["wise-run", *flags, *SMALL, f"output_root={tmp_path}", *overrides])
    assert (end.value.code or 0) == code


def folders(tmp_path: Path) -> dict[str, Path]:
    return {file.parent.parent.name: file.parent for file in tmp_path.rglob("summary.json")}


def notes(folder: Path) -> list[dict[str, Any]]:
    return [record["notes"]["wise"] for record in read_episodes(folder)]


def test_tasks_run_resume_and_are_summarised(tmp_path: Path) -> None:
    run(tmp_path, "method=wise,steve1", "save_memory=1", flags=("-m",))
    found = folders(tmp_path)
    assert set(found) == {"wise", "steve1"}
    for method, folder in found.items():
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["finished"], summary["harness_errors"], summary["method"]) == (1, 0, method)
        assert summary["success_rate"] in (0.0, 1.0) and 0 < summary["coverage"] <= 1 and summary["mean_steps"] <= 260
        assert sum(summary["wise"]["mode_share"].values()) == pytest.approx(1)
        assert len(summary["wise"]["subtasks_done"]) == 3 and summary["wise"]["runs"][0][1] == 1
        (note,) = notes(folder)
        assert [event["name"] for event in note["events"]] == ["cow", "cow"]
        assert all(abs(event["tick"] - 40) < 1 for event in note["events"])
    assert {file.name for file in (found["wise"] / "memory" / "0000").iterdir()} >= {"graph.graphml", "graph.json", "graph.png"}
    (note,) = notes(found["wise"])
    assert note["memory"]["keyframes"] > 0 and note["labels"]["keyframes"] > 0
    before = (found["wise"] / "episodes.jsonl").read_bytes()
    run(tmp_path, "method=wise", "seeds=2")  # more seeds go on in the same folder
    after = (found["wise"] / "episodes.jsonl").read_bytes()
    assert after.startswith(before) and after.count(b"\n") == 2
    assert wise_figures.main([str(tmp_path), "--out", str(tmp_path / "figures")]) == 0
    assert len(list((tmp_path / "figures").glob("*.png"))) == 2  # trajectories, and the graph


def test_what_a_method_does_not_use_is_no_part_of_its_run(tmp_path: Path) -> None:
    run(tmp_path, "method=mrsteve")
    run(tmp_path, "method=mrsteve", "vision.size=9.0", "vlm.batch=4")
    assert len(list(tmp_path.rglob("summary.json"))) == 1


def test_a_vision_endpoint_that_fails_in_every_way_ends_no_episode(tmp_path: Path) -> None:
    script = ["server_error", {"do": "ok", "content": "I see a cow."}, {"do": "ok", "content": "no"}, "drop", "never", "never"]
    with spawn("--script", json.dumps([*script, *script]), "--policy", '{"frames": []}', "--no-log") as url:
        run(
            tmp_path,
            "vision=openai",
            "vision.model.name=fake",
            f"vision.model.base_url={url}",
            "vision.model.max_retries=0",
            "vlm.timeout=1.0",
            "vlm.latency_ticks=30",
            "vlm.batch=2",
            "vlm.flush_ticks=40",
        )
    (folder,) = folders(tmp_path).values()
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["finished"], summary["harness_errors"], summary["model"]) == (1, 0, "fake")
    (note,) = notes(folder)
    memory = note["memory"]
    assert note["steps"] == 260 or note["success"]
    assert memory["failures"] == len(note["vision_failures"]) >= 3
    assert memory["failed_malformed"] >= 1 and memory["failed_timeout"] >= 1
    assert memory["requests"] == memory["answers"] + memory["failures"]
    assert summary["tokens"]["prompt"] > 0


def test_an_endpoint_that_dies_during_the_run_ends_no_episode(tmp_path: Path) -> None:
    with spawn("--script", json.dumps(["die"] * 4), "--policy", '{"frames": []}', "--no-log") as url:
        run(
            tmp_path,
            "vision=openai",
            "vision.model.name=fake",
            f"vision.model.base_url={url}",
            "vision.model.max_retries=0",
            "+vision.model.start_timeout=1",
            "vlm.timeout=2.0",
            "vlm.batch=2",
            "vlm.latency_ticks=30",
            "vlm.flush_ticks=40",
        )
    (folder,) = folders(tmp_path).values()
    (note,) = notes(folder)
    memory = note["memory"]
    assert memory["failures"] >= 2 and memory["requests"] == memory["answers"] + memory["failures"]
    assert json.loads((folder / "summary.json").read_text())["finished"] == 1


def test_an_endpoint_that_is_not_there_is_said_before_the_first_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = ("vision=openai", "vision.model.name=fake", "vision.model.base_url=http://127.0.0.1:9/v1")
    run(tmp_path, *overrides, "+vision.model.start_timeout=0.5", code=2)
    assert "No model server answers" in capsys.readouterr().err
    assert not list(tmp_path.rglob("episodes.jsonl"))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["method=sweep"], "explores and does nothing else"),
        (["task.spawn_within=0"], "spawn_within must be greater than 0"),
        (["method.memory.k=0"], "memory.k"),
        (["vision=openai"], "vision.model.name has no value"),
        (["controller._target_=agentexp.wise.explore.walk.Walk"], "is not a controller"),
        (["method.scheduler._target_=agentexp.wise.explore.walk.Walk"], "is not a scheduler"),
        (["+agent.arrives=3"], "Did you mean"),
        (["world.terrain.lakes=3"], "lakes"),
        (["text_query=all"], "text_query=all is not valid"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(
    tmp_path: Path, overrides: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, *overrides, code=2)
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
    assert not folders(tmp_path)
