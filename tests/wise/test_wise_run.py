"""`agentexp wise-run`: the command, its run folder, resuming, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="needs the extra wise")
pytest.importorskip("networkx", reason="needs the extra wise")

from agentexp.cli import main
from agentexp.store import read_episodes
from agentexp.wise.measure import measure

SMALL = ("map=32", "budget=150", "workers=1", "progress=off")


def run(tmp_path: Path, *overrides: str, flags: tuple[str, ...] = (), code: int = 0) -> None:
    with pytest.raises(SystemExit) as end:
        main(["wise-run", *flags, *SMALL, f"output_root={tmp_path}", *overrides])
    assert (end.value.code or 0) == code


def folders(tmp_path: Path) -> dict[str, Path]:
    return {file.parent.parent.name: file.parent for file in tmp_path.rglob("summary.json")}


def test_runs_equal_direct_measurement_and_resume(tmp_path: Path) -> None:
    run(tmp_path, "method=wise,mrsteve,sweep", "seeds=2", flags=("-m",))
    found = folders(tmp_path)
    assert set(found) == {"wise", "mrsteve", "sweep"}
    for method, folder in found.items():
        summary = json.loads((folder / "summary.json").read_text())
        direct = measure(method, 32, range(2), 150)
        assert (summary["finished"], summary["harness_errors"], summary["method"]) == (2, 0, method)
        assert summary["coverage"] == pytest.approx(sum(record["final"] for record in direct) / 2)
        assert summary["success_rate"] is None  # there is nothing to win
        notes = [record["notes"]["coverage"] for record in read_episodes(folder)]
        assert [note["t90"] for note in sorted(notes, key=lambda note: note["seed"])] == [record["t90"] for record in direct]
        assert all(len(note["path"]) == len(note["curve"]) == note["steps"] // 10 + 1 for note in notes)
    before = (found["wise"] / "episodes.jsonl").read_bytes()
    run(tmp_path, "method=wise", "seeds=3")  # more seeds of the same plan go on in the same folder
    after = (found["wise"] / "episodes.jsonl").read_bytes()
    assert after.startswith(before) and after.count(b"\n") == 3
    assert folders(tmp_path) == found


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("method=wize", "Did you mean wise?"),
        ("map=0", "map must be greater than 0"),
        ("mapp=64", "Did you mean map?"),
        ("world.spawn=middle", "world.spawn=middle is not valid"),
        ("method.explorer.tiers=local", "method.explorer.tiers=local is not valid"),
        ("task=fly", "Choices of task: aba_sparse, abc_sparse"),
        ("world._target_=agentexp.envs.toy.ToyRooms", "is not a voxel world"),
        ("budget=0", "steps must be at least 1"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(
    tmp_path: Path, override: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, override, code=2)
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
    assert not folders(tmp_path)
