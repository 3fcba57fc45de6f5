"""H05: trackers mirror a run; they never stop it, slow it, ask questions or leak keys."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from run_fakes import make_run

import agentexp.tracking as tracking
from agentexp.errors import MissingDependency
from agentexp.runner import run_sync
from agentexp.tracking import NoLogger, WandbLogger, flat_numbers


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_MODE", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(WandbLogger, "_said", set())


class FakeRun:
    def __init__(self) -> None:
        self.logged: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.axes: dict[str, Any] = {}
        self.finished = False

    def define_metric(self, name: str, **options: Any) -> None:
        self.axes[name] = options.get("step_metric")

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def finish(self) -> None:
        self.finished = True


def run_id(folder: Path) -> str:
    return str(json.loads((folder / "wandb_run.json").read_text())["id"])


def test_three_jobs_of_a_process_are_three_runs(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    folders = []
    for seed in range(3):
        run = make_run(
            tmp_path,
            seeds=[seed],
            config={"seed": seed, "model": {"name": "go", "api_key": "sk-verysecretvalue"}},
            logger=WandbLogger(mode="offline", group="sweep"),
        )
        assert run_sync(run)[1] == 0
        folders.append(run.folder)
    assert len({run_id(folder) for folder in folders}) == 3
    for folder in folders:
        (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
        content = file.read_bytes()
        assert b"eval/success_rate" in content
        assert b"verysecret" not in content


def test_a_resumed_run_keeps_its_id_and_its_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    made: list[tuple[str, FakeRun]] = []

    def init(self: WandbLogger, wandb: Any, folder: Path, name: str, config: Any, run_id: str, mode: str) -> FakeRun:
        tracking.write_json(folder / tracking.RUN_FILE, {"id": run_id})
        made.append((run_id, FakeRun()))
        return made[-1][1]

    monkeypatch.setattr(WandbLogger, "_init", init)
    run_sync(make_run(tmp_path, limit=5, logger=WandbLogger()))
    run_sync(make_run(tmp_path, logger=WandbLogger()))
    (first_id, first), (second_id, second) = made
    assert first_id == second_id
    assert [values["episode"] for values in first.logged] == [1, 2, 3, 4, 5]
    assert [values["episode"] for values in second.logged] == [6, 7, 8, 9, 10, 11, 12]
    assert first.axes == {"episode": None, "train_step": None, "train/*": "train_step", "eval/*": "episode"}
    assert second.finished
    assert second.summary["success_rate"] == pytest.approx(8 / 12)
    run_sync(make_run(tmp_path, logger=WandbLogger()))
    assert len(made) == 2  # a finished run opens no tracker


def test_online_without_a_key_is_offline_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("wandb")
    for seed in (0, 1):
        run = make_run(tmp_path, seeds=[seed], config={"seed": seed}, logger=WandbLogger(mode="online"))
        assert run_sync(run)[1] == 0
        assert list(run.folder.glob("wandb/offline-run-*"))
    assert caplog.text.count("no API key") == 1


def test_online_without_network_is_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    run = make_run(tmp_path, logger=WandbLogger(mode="online"))
    assert run_sync(run)[1] == 0
    assert "cannot be reached" in caplog.text
    assert list(run.folder.glob("wandb/offline-run-*"))


@pytest.mark.parametrize("failure", [RuntimeError("broken"), OSError("disk")])
def test_a_tracker_that_fails_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    pytest.importorskip("wandb")

    def broken(*_: Any) -> Any:
        raise failure

    monkeypatch.setattr(WandbLogger, "_open", broken)
    summary, code = run_sync(make_run(tmp_path, logger=WandbLogger()))
    assert (code, summary["finished"]) == (0, 12)
    assert caplog.text.count("stopped working") == 1


def test_a_tracker_that_hangs_does_not_slow_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    release = threading.Event()

    def hanging(*_: Any) -> FakeRun:
        release.wait(30)
        return FakeRun()

    monkeypatch.setattr(WandbLogger, "_open", hanging)
    started = time.monotonic()
    assert run_sync(make_run(tmp_path, logger=WandbLogger(finish_timeout=0.5)))[1] == 0
    assert time.monotonic() - started < 50
    release.set()


def test_disabled_and_none_do_nothing(tmp_path: Path) -> None:
    for seed, logger in enumerate((WandbLogger(mode="disabled"), NoLogger())):
        run = make_run(tmp_path, seeds=[seed], config={"seed": seed}, logger=logger)
        assert run_sync(run)[1] == 0
        assert not (run.folder / "wandb").exists()


def test_a_missing_package_is_named_only_when_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"agentexp\[wandb\]"):
        WandbLogger()
    WandbLogger(mode="disabled")


def test_flat_numbers() -> None:
    summary = {"a": 1, "tokens": {"prompt": 2}, "success_interval": (0.1, 0.2), "cost": None, "seeds": [1, 2, 3]}
    assert dict(flat_numbers(summary)) == {
        "a": 1,
        "tokens.prompt": 2,
        "success_interval.low": 0.1,
        "success_interval.high": 0.2,
    }
