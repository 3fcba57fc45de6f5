"""The page of a run as a file: complete, harmless, and right about the run."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from view_kit import HOSTILE, episode, make_run

from agentexp.cli import main
from agentexp.core import Call, Usage
from agentexp.errors import UserError
from agentexp.records import episode_to_json
from agentexp.store import RunFolder
from agentexp.view import write_comparison, write_page
from agentexp.view.data import BLOCK_BYTES, by_kind, row_of
from agentexp.view.page import script_json


def meta_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="meta">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def episodes_of(page: Path, run: int = 0) -> list[dict[str, Any]]:
    blocks = re.findall(rf'id="block-{run}-\d+">([^<]*)</script>', page.read_text(encoding="utf-8"))
    return [record for block in blocks for record in json.loads(gzip.decompress(base64.b64decode(block)))]


def test_page_holds_every_episode_in_the_order_of_the_plan(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 10)
    page = write_page(run)
    assert page == run / "view.html"
    rows = meta_of(page)["runs"][0]["rows"]
    records = episodes_of(page)
    assert [row["key"] for row in rows] == [record["key"] for record in records] == [episode(i).task.key for i in range(10)]
    assert records[3] == json.loads(episode_to_json(episode(3)))


def test_blocks_and_positions_lead_to_the_episode(tmp_path: Path) -> None:
    page = write_page(make_run(tmp_path / "run", 30, steps=60))
    blocks = re.findall(r'id="block-0-(\d+)">([^<]*)</script>', page.read_text(encoding="utf-8"))
    assert len(blocks) > 2 and [int(n) for n, _ in blocks] == list(range(len(blocks)))
    inflated = [gzip.decompress(base64.b64decode(text)) for _, text in blocks]
    assert max(map(len, inflated)) < 2 * BLOCK_BYTES
    for row in meta_of(page)["runs"][0]["rows"]:
        assert json.loads(inflated[row["b"]])[row["p"]]["key"] == row["key"]


def test_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 5)
    assert write_page(run, tmp_path / "x.html").read_bytes() == write_page(run, tmp_path / "y.html").read_bytes()


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    text = write_page(make_run(tmp_path / "run", 3)).read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert "@import" not in text and "url(" not in text and str(tmp_path) not in text
    assert "default-src 'none'" in text


def test_text_of_models_never_becomes_markup(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 2)
    text = write_page(run).read_text(encoding="utf-8")
    assert "owned" not in re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert text.count("<script") == text.count("</script>") == 2 + len(re.findall('id="block-', text))


@pytest.mark.parametrize("value", ["</script>", "<!--<script>", "a\u2028b\u2029c", "\ud800", HOSTILE])
def test_embedded_json_is_safe_and_exact(value: str) -> None:
    text = script_json({"x": value})
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", text)
    assert json.loads(text)["x"] == value


def test_outcomes_keep_harness_errors_apart() -> None:
    rows = [row_of(json.loads(episode_to_json(episode(i)))) for i in range(8)]
    assert [row["outcome"] for row in rows] == ["won", "failed", "won", "failed", "won", "failed", "won", "error"]
    done = episode(0)
    done.end_reason, done.success = "completed", False
    assert row_of(json.loads(episode_to_json(done)))["outcome"] == "completed"


def test_rate_by_kind_leaves_errors_out() -> None:
    rows = [row_of(json.loads(episode_to_json(episode(i)))) for i in range(8)]
    by_name = {line["kind"]: line for line in by_kind(rows)}
    line = by_name["pick_two_obj_and_place"]  # episodes 3 (lost) and 7 (harness error)
    assert (line["n"], line["won"], line["rate"], line["errors"]) == (1, 0, 0.0, 1)
    assert line["interval"][0] == 0.0 and 0.7 < line["interval"][1] < 0.85  # Wilson, 0 of 1: 0.793


def test_phases_without_criterion_have_no_rate() -> None:
    rows = [row_of(json.loads(episode_to_json(episode(i)))) | {"outcome": "completed", "kind": "x"} for i in range(3)]
    (line,) = by_kind(rows)
    assert (line["n"], line["rate"], line["interval"], line["steps"]) == (3, None, None, 24.0)


def test_partial_run_has_a_fresh_summary(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 4, planned=9)
    with RunFolder(run) as folder:
        folder.append(episode_to_json(episode(4)))  # the run went on after its summary.json
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["planned"][4] = episode(4).task.key
    (run / "manifest.json").write_text(json.dumps(manifest))
    summary = meta_of(write_page(run))["runs"][0]["summary"]
    assert (summary["planned"], summary["finished"], summary["partial"]) == (9, 5, True)


def test_token_ids_stay_out_of_the_page(tmp_path: Path) -> None:
    done = episode(0)
    done.calls.append(
        Call("acting", 1, "actor", "act", "acting", Usage(calls=1), 0.1, "stop", token_ids=[1, 2], logprobs=[0.1])
    )
    with RunFolder(tmp_path / "run") as folder:
        folder.append(episode_to_json(done))
    (record,) = episodes_of(write_page(tmp_path / "run"))
    assert record["calls"][-1]["left_out"] == ["logprobs", "token_ids"] and "token_ids" not in record["calls"][-1]


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="not a run folder"):
            write_page(folder)


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--out"):
        write_page(run, tmp_path / "file" / "x.html")


def test_comparison_has_the_tasks_of_both_in_pairs(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", 12)
    b = make_run(tmp_path / "b", 12, paradigm="react", luck=1, first=4)
    page = write_comparison(a, b)
    meta = meta_of(page)
    rows_a, rows_b = (run["rows"] for run in meta["runs"])
    assert [row["key"] for row in rows_a] == [row["key"] for row in rows_b] == [episode(i).task.key for i in range(4, 12)]
    assert len(episodes_of(page, 0)) == len(episodes_of(page, 1)) == 8
    assert meta["only"] == [4, 4]
    pairs = [(x["outcome"], y["outcome"]) for x, y in zip(rows_a, rows_b, strict=True)]
    counted = [pair for pair in pairs if "error" not in pair]
    assert meta["paired"]["n"] == len(counted)
    assert meta["paired"]["won"] == [sum(pair[i] == "won" for pair in counted) for i in (0, 1)]
    assert ["paradigm.stage1", True, False] in meta["differences"]


def test_runs_without_a_common_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no task in common"):
        write_comparison(make_run(tmp_path / "a", 2), make_run(tmp_path / "b", 2, first=5))


def test_command_prints_the_path_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make_run(tmp_path / "a", 3), make_run(tmp_path / "b", 3)
    for arguments, expected in (
        (["view", str(a)], a / "view.html"),
        (["view", str(a), "--compare", str(b)], a / "compare-b.html"),
        (["view", str(a), "--out", str(tmp_path / "new" / "page.html")], tmp_path / "new" / "page.html"),
    ):
        with pytest.raises(SystemExit) as done:
            main(arguments)
        assert done.value.code == 0
        assert capsys.readouterr().out.strip() == str(expected) and expected.is_file()
