from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_fakes import CountingWorld, GoModel, Plain, make_run
from speaker import Speaker

from agentexp.core import Completion, Env, Episode, Message, Request, Task, Usage
from agentexp.errors import ContextOverflow, ModelError, UserError
from agentexp.paradigms.context import Context
from agentexp.records import dump
from agentexp.rollout import Limits, Rollout
from agentexp.run import Run, plan_of
from agentexp.runner import execute, exit_code, run_sync
from agentexp.store import read_episodes, read_json
from agentexp.summary import Summary


def model_of(run: Run) -> GoModel:
    model = run.models["actor"]
    assert isinstance(model, GoModel)
    return model


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (run.folder / "episodes.jsonl").read_text().splitlines()]


def results(run: Run) -> list[tuple[str, bool, int]]:
    return [(record["key"], record["success"], record["steps"]) for record in read_episodes(run.folder)]


def test_a_run_from_plan_to_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, tasks=6, seeds=[0, 1])
    summary, code = run_sync(run)
    assert code == 0
    assert summary["planned"] == 12
    assert summary["finished"] == 12
    assert summary["harness_errors"] == 0
    assert summary["success_rate"] == pytest.approx(8 / 12)
    assert not summary["partial"]
    assert read_json(run.folder / "summary.json") == json.loads(json.dumps(summary))
    assert len({record["key"] for record in lines(run)}) == 12
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == str(run.folder)
    assert any("success rate" in text for text in out)


def test_a_finished_run_starts_nothing(tmp_path: Path) -> None:
    run_sync(make_run(tmp_path))
    opened: list[Run] = []
    again = make_run(tmp_path, pool=lambda run: opened.append(run))
    before = (again.folder / "episodes.jsonl").read_bytes()
    summary, code = run_sync(again)
    assert (code, summary["finished"]) == (0, 12)
    assert (model_of(again).starts, model_of(again).calls, opened) == (0, 0, [])
    assert (again.folder / "episodes.jsonl").read_bytes() == before


def test_models_are_started_once_and_closed_also_when_roles_share_them(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    model = model_of(run)
    run_sync(replace(run, models={"actor": model, "extractor": model}))
    assert (model.starts, model.closes) == (1, 1)


def test_a_larger_limit_adds_only_the_new_tasks(tmp_path: Path) -> None:
    run_sync(make_run(tmp_path, limit=4, seeds=[0, 1]))
    run = make_run(tmp_path, limit=6, seeds=[0, 1])
    summary, code = run_sync(run)
    assert (code, summary["planned"], summary["finished"]) == (0, 12, 12)
    assert len(lines(run)) == 12
    assert {text["task"]["id"] for text in lines(run)[8:]} == {"t4", "t5"}
    smaller, _ = run_sync(make_run(tmp_path, limit=2, seeds=[0, 1]))
    assert (smaller["planned"], smaller["finished"]) == (4, 4)


def test_another_model_gets_another_folder_and_in_the_same_folder_it_is_refused(tmp_path: Path) -> None:
    first = make_run(tmp_path)
    run_sync(first)
    assert make_run(tmp_path, model_name="gone").folder != first.folder
    with pytest.raises(UserError, match=r'config.model.name: "go" -> "gone"') as refusal:
        run_sync(make_run(tmp_path, model_name="gone", folder=first.folder))
    assert "model: " in str(refusal.value)
    assert "resume=ignore" in str(refusal.value)
    assert len(lines(first)) == 12


@pytest.mark.parametrize(
    ("change", "named"),
    [({"world": {"version": "2"}}, "env_versions.counting"), ({"tasks": 13}, "task_list.hash"), ({"repeats": 2}, "repeats")],
)
def test_what_changes_results_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    first = make_run(tmp_path)
    run_sync(first)
    with pytest.raises(UserError, match=named):
        run_sync(make_run(tmp_path, folder=first.folder, **change))
    summary, code = run_sync(make_run(tmp_path, folder=first.folder, resume="ignore", **change))
    assert code == 0
    assert summary["finished"] == summary["planned"]
    assert named in read_json(first.folder / "manifest.json")["history"][0]["changes"]  # type: ignore[index]


def test_what_does_not_change_results_may_differ(tmp_path: Path) -> None:
    first = make_run(tmp_path, config={"concurrency": 4, "limits": {"seconds": 5, "tokens": 9}, "logger": {"mode": "offline"}})
    run_sync(first)
    other = {"concurrency": 1, "limits": {"seconds": 9, "tokens": 9}, "logger": None, "progress": "rich"}
    again = make_run(tmp_path, config=other, concurrency=1)
    assert again.folder == first.folder
    assert run_sync(again)[1] == 0


def test_an_empty_folder_of_another_run_is_taken_over(tmp_path: Path) -> None:
    broken = make_run(tmp_path, model=GoModel(fatal_after=0))
    assert run_sync(broken)[1] == 1
    assert run_sync(make_run(tmp_path, folder=broken.folder, world={"version": "2"}))[1] == 0


def test_errors_are_kept_apart_and_owed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T01: ten episodes, two server errors; nothing leaves the denominator, nothing counts as the agent's loss."""
    run = make_run(tmp_path, tasks=10, fail=["t1", "t7"])
    summary, code = run_sync(run)
    assert code == 1
    assert (summary["planned"], summary["harness_errors"], summary["partial"]) == (10, 2, False)
    assert summary["finished"] == 8
    assert "run them again" in capsys.readouterr().err
    errors = [record for record in lines(run) if record["status"] == "error"]
    assert {record["task"]["id"] for record in errors} == {"t1", "t7"}
    assert all(record["end_reason"] == "model_error" and "500" in record["error"] for record in errors)
    again = make_run(tmp_path, tasks=10)
    summary, code = run_sync(again)
    assert (code, summary["harness_errors"], summary["finished"]) == (0, 0, 10)
    assert len(lines(run)) == 12
    assert results(again) == results_of_uninterrupted(tmp_path / "other", 10)


def results_of_uninterrupted(root: Path, tasks: int) -> list[tuple[str, bool, int]]:
    run = make_run(root, tasks=tasks)
    run_sync(run)
    return results(run)


def test_a_run_that_could_hardly_be_read_ends_with_a_loud_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P10: the success rate of such a run means nothing."""
    mumbler = make_run(tmp_path, limit=2, model_name="mumbler")
    summary, code = run_sync(replace(mumbler, models={"actor": Speaker("Well, where to begin?")}))
    assert (code, summary["invalid_rate"]) == (0, 1.0)
    assert "Warning: 100% of the replies could not be read as an action" in capsys.readouterr().err
    run_sync(make_run(tmp_path, limit=2))
    assert "Warning" not in capsys.readouterr().err


def test_an_engine_that_breaks_costs_its_episode_only(tmp_path: Path) -> None:
    run = make_run(tmp_path, world={"break_at": ["t3"]})
    summary, code = run_sync(run)
    assert (code, summary["harness_errors"], summary["finished"]) == (1, 1, 11)
    assert [r["end_reason"] for r in lines(run) if r["status"] == "error"] == ["env_error"]


def test_a_fatal_error_stops_the_run_and_it_can_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, model=GoModel(fatal_after=5), concurrency=2)
    summary, code = run_sync(run)
    assert code == 1
    assert summary["partial"]
    assert summary["stopped_by"] == "fatal"
    finished = len(lines(run))
    assert 0 < finished < 12
    err = capsys.readouterr().err
    assert "The server refuses the key (401)." in err
    assert f"{finished} of 12" in err
    assert "same command again" in err
    assert "Traceback" not in err
    assert model_of(run).closes == 1
    again = make_run(tmp_path)
    assert run_sync(again)[1] == 0
    assert results(again) == results_of_uninterrupted(tmp_path / "other", 12)


def test_concurrency_is_bounded_and_used(tmp_path: Path) -> None:
    run = make_run(tmp_path, tasks=30, concurrency=5, delay=0.002)
    run_sync(run)
    assert model_of(run).most == 5
    one = make_run(tmp_path / "one", tasks=30, concurrency=1)
    run_sync(one)
    assert model_of(one).most == 1
    assert results(run) == results(one)


def test_a_long_plan_makes_no_task_per_owed_episode(tmp_path: Path) -> None:
    run = make_run(tmp_path, tasks=20_000, concurrency=3, model=GoModel(fatal_after=10))
    most = 0

    class Watching(Plain):
        async def __call__(self, ro: Rollout) -> None:
            nonlocal most
            most = max(most, len(asyncio.all_tasks()))
            await super().__call__(ro)

    run_sync(replace(run, paradigm=Watching()))
    assert 0 < most < 10


def test_values_that_are_no_json_are_an_error_of_that_episode(tmp_path: Path) -> None:
    class Noting(Plain):
        async def __call__(self, ro: Rollout) -> None:
            await super().__call__(ro)
            if ro.task.id == "t2":
                ro.note("bad", object())

    run = make_run(tmp_path, paradigm=Noting())
    summary, code = run_sync(run)
    assert (code, summary["harness_errors"]) == (1, 1)
    (record,) = [record for record in lines(run) if record["status"] == "error"]
    assert "has no JSON form" in record["error"]


def test_shards_share_a_folder(tmp_path: Path) -> None:
    first, second = make_run(tmp_path, shard=(0, 2)), make_run(tmp_path, shard=(1, 2))
    assert first.folder == second.folder
    summary, code = run_sync(first)
    assert (summary["finished"], summary["partial"], code) == (6, True, 0)
    assert summary["shard"] == {"episodes": 6, "left": 0}
    summary, code = run_sync(second)
    assert (summary["finished"], summary["partial"], code) == (12, False, 0)
    assert results(second) == results_of_uninterrupted(tmp_path / "other", 12)


@pytest.mark.parametrize("limits", [Limits(attempts=1, run_tokens=100), Limits(attempts=1, run_cost=1.0)])
def test_a_cap_of_the_run_stops_it_between_episodes_and_a_higher_one_goes_on(
    limits: Limits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Paid(GoModel):
        async def chat(self, request: Request) -> Completion:
            return replace(await super().chat(request), usage=Usage(10, 1, 0, 1, 0.1))

    def capped(limits: Limits) -> Run:
        return make_run(tmp_path, model=Paid(), limits=limits, concurrency=1)

    summary, code = run_sync(capped(limits))
    first = summary["finished"]
    assert (code, summary["stopped_by"], summary["harness_errors"]) == (1, "cap", 0)
    assert 0 < first < 12
    assert "raise it to go on" in capsys.readouterr().err
    again, _ = run_sync(capped(limits))
    assert again["finished"] == first  # what earlier processes used counts
    summary, code = run_sync(capped(Limits(attempts=1, run_tokens=10_000, run_cost=1000.0)))
    assert (summary["finished"], summary["stopped_by"], code) == (12, "", 0)


def test_a_run_whose_time_is_up_stops_cleanly_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, delay=0.1, concurrency=1, limits=Limits(attempts=1, run_seconds=0.5))
    summary, code = run_sync(run)
    assert (code, summary["stopped_by"], summary["partial"], summary["harness_errors"]) == (1, "timeout", True, 0)
    assert summary["finished"] == len(lines(run)) < 12
    err = capsys.readouterr().err
    assert "limits.run_seconds=0.5" in err and "same command again" in err
    assert model_of(run).closes == 1
    summary, code = run_sync(make_run(tmp_path, limits=Limits(attempts=1, run_seconds=600)))
    assert (code, summary["finished"], summary["stopped_by"]) == (0, 12, "")


def test_an_episode_that_hangs_does_not_outlive_the_time_of_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, delay=3600.0, limits=Limits(run_seconds=0.2))
    summary, code = run_sync(run)
    assert (code, summary["stopped_by"], summary["finished"]) == (1, "timeout", 0)


def test_what_failed_attempts_cost_counts_also_after_they_were_run_again(tmp_path: Path) -> None:
    """A failed episode's tokens were paid for: they count for the caps of the run and stand in `wasted`."""

    class FailsLate(GoModel):
        late: Sequence[str] = ()

        async def chat(self, request: Request) -> Completion:
            if request.view.task.id in self.late and request.view.history:
                raise ModelError("The server answered 500 three times.")
            return await super().chat(request)

    def failing(*late: str) -> FailsLate:
        model = FailsLate()
        model.late = late
        return model

    def attempt(limits: Limits, **options: Any) -> Summary:
        return run_sync(make_run(tmp_path, tasks=6, concurrency=1, limits=limits, **options))[0]

    plain = Limits(attempts=1)
    summary = attempt(plain, model=failing("t1", "t4"))
    assert (summary["harness_errors"], summary["wasted"]["tokens"]) == (2, 0)
    summary = attempt(plain, model=failing("t1"))
    assert (summary["harness_errors"], summary["wasted"]["tokens"]) == (1, 22)  # of the first t1 and of t4
    spent = sum(summary["tokens"].values()) + summary["wasted"]["tokens"]
    summary = attempt(Limits(attempts=1, run_tokens=spent))
    assert summary["stopped_by"] == "cap"
    summary = attempt(Limits(attempts=1, run_tokens=spent + 1))
    assert (summary["stopped_by"], summary["finished"], summary["wasted"]["tokens"]) == ("", 6, 33)


def test_nothing_to_run_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to run"):
        run_sync(make_run(tmp_path, tasks=0))
    with pytest.raises(UserError, match="occurs twice"):
        run_sync(make_run(tmp_path, seeds=[1, 1]))


def test_secrets_do_not_reach_the_manifest(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        config={
            "model": {"name": "go", "api_key": "abc", "api_key_env": "KEY"},
            "stopping": {"_target_": "s.S", "key": "place"},
        },
    )
    run_sync(run)
    config = read_json(run.folder / "manifest.json")["config"]  # type: ignore[index]
    assert config["model"] == {"name": "go", "api_key": "[removed]", "api_key_env": "KEY"}
    assert config["stopping"] == {"_target_": "s.S", "key": "place"}
    assert run_sync(make_run(tmp_path, config=run.config))[1] == 0


def test_ten_thousand_finished_episodes_are_dropped_fast(tmp_path: Path) -> None:
    run_sync(make_run(tmp_path, tasks=10_000, limit=1))
    run = make_run(tmp_path, tasks=10_000)
    record = lines(run)[0]
    with (run.folder / "episodes.jsonl").open("ab") as file:
        for task in plan_of(run)[1][1:]:
            file.write(dump({**record, "key": task.key, "task": {**record["task"], "id": task.id}}) + b"\n")
    started = time.perf_counter()
    summary, code = run_sync(run)
    assert (code, summary["finished"], model_of(run).starts) == (0, 10_000, 0)
    assert time.perf_counter() - started < 10


# ---------------------------------------------------------------------------------------------------------------- hooks


class Explore(Plain):
    """Chooses its own tasks and distils them."""

    name = "explore"

    def plan(self, env: Env, seed: int) -> list[Task]:
        return [replace(task, split="train", seed=seed) for task in env.tasks("train")[:3]]

    async def finalise(self, ctx: Context, episodes: Sequence[Episode]) -> dict[str, Any]:
        reply = await ctx.ask([Message("user", f"{len(episodes)} episodes")], purpose="distil")
        return {"k_g": {"facts": [reply.text, *(e.task.id for e in episodes)]}}


class Knowing(Plain):
    name = "knowing"

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        async with ctx.lease() as world:
            await world.reset(ctx.tasks[0])
        return await ctx.knowledge()

    async def __call__(self, ro: Rollout) -> None:
        ro.note("facts", ro.artefacts["k_g"]["facts"])
        await super().__call__(ro)


def knowing(root: Path, **options: Any) -> Run:
    run = make_run(root, paradigm=Knowing(), **options)
    return replace(run, explore=lambda: make_run(root, command="explore", paradigm=Explore(), model=run.models["actor"]))


def test_explore_saves_its_result_once(tmp_path: Path) -> None:
    run = make_run(tmp_path, command="explore", paradigm=Explore())
    assert [task.id for task in plan_of(run)[1]] == ["t0", "t1", "t2"]
    summary, code = run_sync(run)
    assert (code, summary["planned"], summary["setup"]["calls"]) == (0, 3, 1)
    document = read_json(run.folder / "kg.json")
    assert document is not None
    assert document["k_g"]["facts"] == ["go", "t0", "t1", "t2"]
    assert document["provenance"]["env"] == "counting"
    assert document["provenance"]["run"] == run.folder.relative_to(tmp_path).as_posix()
    assert read_json(tmp_path / "kg" / "counting" / "go.json") == document
    again = make_run(tmp_path, command="explore", paradigm=Explore())
    run_sync(again)
    assert model_of(again).starts == 0


def test_a_result_that_an_interruption_prevented_is_made_later(tmp_path: Path) -> None:
    run = make_run(tmp_path, command="explore", paradigm=Explore())
    run_sync(run)
    for name in ("kg.json", "result.json"):
        (run.folder / name).unlink()
    again = make_run(tmp_path, command="explore", paradigm=Explore())
    run_sync(again)
    assert model_of(again).calls == 1
    assert (run.folder / "kg.json").is_file()


def test_knowledge_comes_from_a_nested_explore_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = knowing(tmp_path)
    summary, code = run_sync(run)
    assert (code, summary["finished"]) == (0, 12)
    assert all(record["notes"]["facts"] == ["go", "t0", "t1", "t2"] for record in lines(run))
    assert (model_of(run).closes, model_of(run).starts) == (1, 2)  # start is idempotent; only the outer run closes
    assert len(list((tmp_path / "explore").rglob("episodes.jsonl"))) == 1
    assert capsys.readouterr().out.splitlines()[-1] == str(run.folder)
    again = knowing(tmp_path, seeds=[5], config={"seed": 5})
    calls_before = model_of(again).calls
    run_sync(again)
    assert calls_before == 0
    assert len(list((tmp_path / "explore").rglob("episodes.jsonl"))) == 1


def test_knowledge_without_an_explore_run_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"paradigm\.k_g="):
        run_sync(make_run(tmp_path, paradigm=Knowing()))


def test_prepared_artefacts_that_changed_are_refused_on_resume(tmp_path: Path) -> None:
    class Prepared(Plain):
        name = "prepared"
        value = 1

        async def prepare(self, ctx: Context) -> dict[str, Any]:
            return {"value": self.value}

    first = Prepared()
    run_sync(make_run(tmp_path, paradigm=first, limit=3))
    other = Prepared()
    other.value = 2
    with pytest.raises(UserError, match="prepares for its episodes"):
        run_sync(make_run(tmp_path, paradigm=other, limit=4))
    assert run_sync(make_run(tmp_path, paradigm=first, limit=4))[1] == 0
    assert run_sync(make_run(tmp_path, paradigm=other, limit=5, resume="ignore"))[1] == 0


def test_a_hook_that_fails_stops_the_run_like_a_fatal_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Plain):
        name = "failing"
        error: Exception = ModelError("The server answered 500 three times.")

        async def prepare(self, ctx: Context) -> dict[str, Any]:
            raise self.error

    for error in (Failing.error, ContextOverflow("4096 tokens do not fit.")):
        paradigm = Failing()
        paradigm.error = error
        run = make_run(tmp_path, paradigm=paradigm)
        summary, code = run_sync(run)
        assert (code, summary["stopped_by"], summary["finished"]) == (1, "fatal", 0)
        assert str(error) in capsys.readouterr().err
        assert model_of(run).closes == 1


def test_what_the_user_must_change_stops_the_run_with_its_sentence(tmp_path: Path) -> None:
    class Wrong(Plain):
        name = "wrong"

        async def __call__(self, ro: Rollout) -> None:
            if ro.task.id == "t4":
                raise UserError("The world has no expert. Set model.policy=random.")
            await super().__call__(ro)

    run = make_run(tmp_path, paradigm=Wrong(), concurrency=1)
    with pytest.raises(UserError, match="has no expert"):
        run_sync(run)
    assert len(lines(run)) == 4
    assert model_of(run).closes == 1


def test_not_more_episodes_in_flight_than_engines(tmp_path: Path) -> None:
    run = make_run(tmp_path, tasks=10, concurrency=8, workers=2, delay=0.002)
    run_sync(run)
    assert model_of(run).most == 2


def test_execute_cancelled_from_outside_cleans_up(tmp_path: Path) -> None:
    run = make_run(tmp_path, delay=5.0)

    async def main() -> None:
        job = asyncio.ensure_future(execute(run))
        await asyncio.sleep(0.2)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(main())
    assert model_of(run).closes == 1
    assert run_sync(make_run(tmp_path))[1] == 0


def test_exit_codes() -> None:
    summary = {"planned": 2, "finished": 2, "harness_errors": 0, "partial": False, "stopped_by": ""}
    assert exit_code(summary) == 0
    assert exit_code({**summary, "harness_errors": 1}) == 1
    assert exit_code({**summary, "partial": True, "stopped_by": "fatal"}) == 1
    assert exit_code({**summary, "partial": True, "stopped_by": "SIGINT"}) == 130
    assert exit_code({**summary, "partial": True, "stopped_by": "SIGTERM"}) == 143


def test_the_worlds_of_the_fakes_keep_the_contract() -> None:
    assert isinstance(CountingWorld(), Env)


def test_a_refused_command_leaves_no_folder(tmp_path: Path) -> None:
    class Refuses(GoModel):
        async def start(self) -> None:
            raise UserError("model.api_key_env names no key.")

    run = make_run(tmp_path, model=Refuses())
    with pytest.raises(UserError, match="names no key"):
        run_sync(run)
    assert not run.folder.exists()
    run_sync(make_run(tmp_path))
    again = make_run(tmp_path, model=Refuses(), seeds=[0, 1], resume="ignore")
    assert again.folder == run.folder
    with pytest.raises(UserError, match="names no key"):
        run_sync(again)
    assert (run.folder / "episodes.jsonl").stat().st_size > 0  # what was finished is kept
