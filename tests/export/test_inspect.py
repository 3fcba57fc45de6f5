"""Logs of Inspect AI, read back with its own reader. Skipped where inspect-ai is not installed (extra agentexp[inspect])."""

import json

import pytest
from export_kit import LONE, empty_run, hand_made, toy_run

from agentexp.errors import MissingDependency, UserError
from agentexp.export import export
from agentexp.export.inspect_log import sample_ids
from agentexp.store import read_episodes


@pytest.fixture
def inspect_log():
    return pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed (extra agentexp[inspect])")


@pytest.mark.parametrize("suffix", ["eval", "json"])
@pytest.mark.parametrize("paradigm", ["react", "explore_then_act"])
def test_a_real_run(paradigm, suffix, tmp_path, inspect_log):
    folder = toy_run(tmp_path, paradigm, repeats=2)
    file, lines = export([folder], "inspect", tmp_path / f"log.{suffix}")
    log = inspect_log.read_eval_log(str(file), resolve_attachments=True)
    assert lines == [f"log.{suffix}: 6 samples"]
    assert (log.status, log.eval.task, log.eval.model, log.eval.solver) == ("success", "toy/test", "scripted-oracle", paradigm)
    records = {(record["task"]["id"], record["task"]["repeat"] + 1): record for record in read_episodes(folder)}
    assert {(sample.id, sample.epoch) for sample in log.samples} == set(records) and log.eval.config.epochs == 2
    for sample in log.samples:
        record = records[sample.id, sample.epoch]
        kept = [(name, m["role"], m["content"]) for name, chat in record["chats"].items() for m in chat]
        assert [(m.metadata["chat"], m.role, m.text) for m in sample.messages] == kept
        assert sample.scores["success"].value is True and sample.scores["score"].value == 1.0
        models = [event for event in sample.events if event.event == "model"]
        for event, call in zip(models, record["calls"], strict=True):
            prompt = record["chats"][call["chat"]][: call["upto"]]
            assert [(m.role, m.text) for m in event.input] == [(m["role"], m["content"]) for m in prompt]
        times = [event.timestamp for event in sample.events]
        assert sorted(set(times)) == times  # the viewer sorts by time, and would shuffle equal ones
        steps = [event.data for event in sample.events if event.event == "info"]
        assert [step["observation"] for step in steps] == [step["observation"] for step in record["trajectory"]]
    assert log.results.scores[0].metrics["mean"].value == 1.0 and log.results.total_samples == 6


def test_errors_limits_usage_and_text(tmp_path, inspect_log):
    folder = hand_made(tmp_path / "run", config={"roles": {"extractor": {}}})
    file, _ = export([folder], "inspect", tmp_path / "log.eval")
    log = inspect_log.read_eval_log(str(file), resolve_attachments=True)
    won, failed, broken, explored = log.samples
    assert log.status == "cancelled"  # a plan of five, four records
    assert (log.results.total_samples, log.results.completed_samples) == (5, 3)
    assert log.results.scores[0].metrics["mean"].value == 0.5 and log.results.scores[0].unscored_samples == 2
    assert won.id == "g/0" and won.error is None and won.limit is None
    assert failed.scores["success"].value is False and failed.scores["score"].value == 0.25
    assert failed.limit.type == "custom" and failed.limit.limit == 2
    assert broken.error.message == "env_error: EngineError: it died" and "Traceback" in broken.error.traceback
    assert broken.scores is None and explored.scores is None and broken.events[-2].event == "error"
    usage = won.model_usage["made-up"]
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens, usage.total_tokens) == (120, 80, 20, 220)
    assert usage.total_cost == pytest.approx(0.02) and won.role_usage["extractor"].output_tokens == 10
    assert won.model_usage["extractor"].output_tokens == 10  # it has a model of its own
    assert log.stats.model_usage["made-up"].total_tokens == 4 * 220
    calls = [event for event in won.events if event.event == "model"]
    assert calls[0].output.message.content[0].reasoning == "Hm." and calls[0].output.message.text == "I ponder."
    assert calls[1].output.stop_reason == "max_tokens" and calls[1].output.completion.endswith("Observation: gold")
    assert won.metadata["notes"]["odd"] == LONE.encode("utf-8", "backslashreplace").decode()
    order = [event.event for event in won.events]
    assert order == ["span_begin", "model", "info", "model", "info", "model", "span_end"]


def test_several_runs_and_an_empty_one(tmp_path, inspect_log):
    hand_made(tmp_path / "runs" / "a" / "one"), empty_run(tmp_path / "runs" / "b")
    folder, _ = export([tmp_path / "runs"], "inspect", tmp_path / "logs")
    assert sorted(file.name for file in folder.iterdir()) == ["a_one.eval", "b.eval"]
    assert inspect_log.read_eval_log(str(folder / "b.eval")).samples in (None, [])
    assert len(inspect_log.list_eval_logs(str(folder))) == 2
    assert json.loads(inspect_log.read_eval_log(str(folder / "a_one.eval")).model_dump_json())["status"] == "cancelled"
    with pytest.raises(UserError, match="2 runs"):
        export([tmp_path / "runs"], "inspect", tmp_path / "log.eval")


def test_sample_ids_are_as_short_as_they_can_be():
    def record(split, seed, repeat):
        return {"task": {"id": "t", "env": "e", "split": split, "seed": seed, "repeat": repeat}}

    assert list(sample_ids([record("a", 0, 0), record("a", 0, 1)]).values()) == ["t", "t"]
    assert list(sample_ids([record("a", 0, 0), record("a", 1, 0)]).values()) == ["t#seed0", "t#seed1"]
    assert list(sample_ids([record("a", 0, 0), record("b", 0, 0)]).values()) == ["e/a/t#seed0", "e/b/t#seed0"]
    assert sample_ids([]) == {}


def test_without_inspect(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai", None)
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.log", None)
    with pytest.raises(MissingDependency, match=r"inspect-ai, which is not installed.*agentexp\[inspect\]"):
        export([hand_made(tmp_path / "run")], "inspect")
