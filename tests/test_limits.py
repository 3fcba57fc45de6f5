"""Nothing hangs a run: requests, steps, episodes and the run each have a limit, and each says by its own name that it struck.

Every world and server here would take for ever.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from run_fakes import make_run

from agentexp.core import Episode
from agentexp.models.openai_api import OpenAIModel
from agentexp.records import episode_from_json
from agentexp.rollout import Limits
from agentexp.run import Run
from agentexp.runner import execute, exit_code
from agentexp.store import read_episodes
from agentexp.summary import Summary

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from fake_server import FakeServer

NEVER = {"do": "never", "every": 1}
ONCE = Limits(attempts=1)


def go(run: Run) -> tuple[Summary, list[Episode]]:
    summary = asyncio.run(asyncio.wait_for(execute(run), 200))
    return summary, [episode_from_json(record) for record in read_episodes(run.folder)]


def against(root: Path, script: list[Any], limits: Limits = ONCE, **given: Any) -> tuple[Summary, list[Episode]]:
    """A run of two episodes against a fake server with this script."""

    async def run() -> tuple[Summary, Run]:
        async with FakeServer(script, policy="Action: go") as server:
            model = OpenAIModel(name="fake", base_url=server.url, api_key_env="NO_SUCH_KEY", **given)
            job = make_run(root, tasks=2, model=model, limits=limits)
            return await asyncio.wait_for(execute(job), 200), job

    summary, job = asyncio.run(run())
    return summary, [episode_from_json(record) for record in read_episodes(job.folder)]


def test_requests(tmp_path: Path) -> None:
    summary, episodes = against(tmp_path, [NEVER], request_timeout=0.2, total_timeout=0.5)
    assert [(e.status, e.end_reason) for e in episodes] == [("error", "model_error")] * 2
    assert all("no complete reply" in e.error and "request_timeout" in e.error for e in episodes)
    assert (summary["stopped_by"], summary["harness_errors"], exit_code(summary)) == ("", 2, 1)


def test_attempts_at_a_request(tmp_path: Path) -> None:
    refuse = {"do": "rate_limit", "retry_after": "0.01", "every": 1}
    _, episodes = against(tmp_path, [refuse], max_retries=3)
    assert [e.end_reason for e in episodes] == ["model_error"] * 2
    assert all("failed 4 times (model.max_retries=3)" in e.error for e in episodes)


def test_steps(tmp_path: Path) -> None:
    run = make_run(tmp_path, tasks=3, world={"hang_at": ["t1"]}, in_process=False, workers=1, step_timeout=2.0, limits=ONCE)
    summary, episodes = go(run)
    assert [(e.task.id, e.status, e.end_reason) for e in episodes if e.status == "error"] == [("t1", "error", "env_error")]
    assert "step_timeout=2" in next(e.error for e in episodes if e.error)
    assert (summary["finished"], exit_code(summary)) == (2, 1)


def test_episodes(tmp_path: Path) -> None:
    summary, episodes = against(tmp_path, [NEVER], Limits(attempts=1, seconds=0.3))
    assert [(e.status, e.end_reason) for e in episodes] == [("error", "timeout")] * 2
    assert all("limits.seconds=0.3" in e.error for e in episodes)
    assert (summary["stopped_by"], exit_code(summary)) == ("", 1)


@pytest.mark.parametrize("hangs", ["server", "world"])
def test_runs(tmp_path: Path, hangs: str) -> None:
    limits = Limits(attempts=1, run_seconds=3.0)
    if hangs == "server":
        summary, episodes = against(tmp_path, [NEVER], limits)
    else:
        run = make_run(tmp_path, tasks=2, world={"hang_at": ["t0", "t1"]}, in_process=False, limits=limits)
        summary, episodes = go(run)
    assert (summary["stopped_by"], summary["partial"], episodes, exit_code(summary)) == ("timeout", True, [], 1)
