"""Mirrors of a run for people who like dashboards. The run folder stays the truth: a tracker that fails, hangs or has no
account never stops or slows a run; it says so once.

All tracker work happens in one background thread behind a queue, because `wandb.init` may wait for a network for minutes.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import queue
import secrets
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol
from urllib.parse import urlsplit

from agentexp.errors import MissingDependency
from agentexp.scrub import scrub
from agentexp.store import read_json, write_json

log = logging.getLogger(__name__)

RUN_FILE = "wandb_run.json"


class Tracker(Protocol):
    """One run's mirror. No method raises or waits for a network."""

    def start(self, folder: Path, name: str, config: Mapping[str, Any]) -> None:
        """Open the mirror of the run in `folder`."""
        ...

    def log(self, values: Mapping[str, float]) -> None:
        """Numbers along the run's own axis; `values` holds the axis itself ("episode" or "train_step")."""
        ...

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the final numbers and close, within a bounded time."""
        ...


class NoLogger:
    """No mirror."""

    def start(self, folder: Path, name: str, config: Mapping[str, Any]) -> None:
        """Nothing."""

    def log(self, values: Mapping[str, float]) -> None:
        """Nothing."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Nothing."""


class WandbLogger:
    """A Weights & Biases run per job.

    The run's id is kept in the run folder, so a resumed job goes on with the same W&B run. Numbers have an axis of their own
    (`episode`, `train_step`): W&B drops steps that are lower than one it has seen, which a resumed training would send.

    Args:
        mode: "offline" works without account and network (upload later with `wandb sync`); "online" falls back to offline when
            there is no key or no network; "disabled" does nothing.
        project: W&B project.
        entity: user or team; None: the account's default.
        group: groups the jobs of a sweep.
        tags: tags of the run.
        init_timeout: seconds to wait for the server before falling back to offline.
        finish_timeout: seconds that the end of a job may wait for uploads; the rest is uploaded by `wandb sync`.

    Raises:
        MissingDependency: wandb is not installed.
    """

    _said: ClassVar[set[str]] = set()  # across the jobs of a sweep in one process: said once

    def __init__(
        self,
        mode: Literal["online", "offline", "disabled"] = "offline",
        project: str = "agentexp",
        entity: str | None = None,
        group: str | None = None,
        tags: list[str] | None = None,
        init_timeout: float = 20.0,
        finish_timeout: float = 20.0,
    ) -> None:
        if mode != "disabled" and importlib.util.find_spec("wandb") is None:
            raise MissingDependency("logger=wandb needs the package wandb. Install agentexp[wandb], or set logger=none.")
        self.mode, self.project, self.entity, self.group, self.tags = mode, project, entity, group, list(tags or [])
        self.init_timeout, self.finish_timeout = init_timeout, finish_timeout
        self._queue: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._summary: dict[str, Any] = {}

    def start(self, folder: Path, name: str, config: Mapping[str, Any]) -> None:
        """Open the W&B run in the background; returns at once."""
        if self.mode == "disabled" or self._thread is not None:
            return
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, args=(folder, name, scrub(config)), name="wandb", daemon=True)
        self._thread.start()

    def log(self, values: Mapping[str, float]) -> None:
        """Queue numbers; returns at once."""
        if self._thread is not None:
            self._queue.put(dict(values))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Close the W&B run, so that the next job of a sweep gets one of its own; waits `finish_timeout` at most."""
        if self._thread is None:
            return
        self._summary = dict(flat_numbers(summary))
        self._queue.put(None)
        self._thread.join(self.finish_timeout)
        if self._thread.is_alive():
            self._warn(f"W&B did not finish within {self.finish_timeout:g} s; `wandb sync` uploads what is missing")
        self._thread = None

    def _main(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        try:
            run = self._open(folder, name, config)
            while (values := self._queue.get()) is not None:
                run.log(values)
            run.summary.update(self._summary)
            run.finish()
        except Exception as error:  # noqa: BLE001 - third-party boundary: whatever wandb raises must not reach the run
            self._warn(f"W&B stopped working ({type(error).__name__}: {error}); the run goes on, its folder has everything")

    def _open(self, folder: Path, name: str, config: dict[str, Any]) -> Any:
        import wandb

        known = read_json(folder / RUN_FILE) or {}
        run_id = str(known.get("id") or secrets.token_hex(4))
        mode: str = self.mode
        server = os.environ.get("WANDB_BASE_URL") or str(wandb.Settings().base_url)
        if mode == "online" and not has_key(server):
            self._warn("W&B has no API key here: logging offline. `wandb login` and `wandb sync` upload it later")
            mode = "offline"
        if mode == "online" and not reachable(server, self.init_timeout):
            self._warn(f"{server} cannot be reached: logging to W&B offline. `wandb sync` uploads it later")
            mode = "offline"
        try:
            run = self._init(wandb, folder, name, config, run_id, mode)
        except (wandb.errors.Error, TimeoutError) as error:
            if mode == "offline":
                raise
            self._warn(f"W&B does not answer ({type(error).__name__}): logging offline. `wandb sync` uploads it later")
            run_id = secrets.token_hex(4)  # wandb's service keeps the failed run open under the old id
            run = self._init(wandb, folder, name, config, run_id, "offline")
        for axis in ("episode", "train_step"):
            run.define_metric(axis, hidden=True)
        run.define_metric("train/*", step_metric="train_step")
        run.define_metric("eval/*", step_metric="episode")
        return run

    def _init(self, wandb: Any, folder: Path, name: str, config: dict[str, Any], run_id: str, mode: str) -> Any:
        os.environ.setdefault("WANDB_DISABLE_WEAVE", "true")  # else wandb advertises it on stderr wherever openai is imported
        settings = wandb.Settings(
            console="off",
            silent=True,
            init_timeout=self.init_timeout,
            x_disable_stats=True,
            x_disable_meta=True,  # host name, command line and environment stay here
            disable_git=True,
            disable_code=True,
            disable_job_creation=True,
            reinit="create_new",  # a nested or neighbouring run in this process keeps its own
        )
        write_json(folder / RUN_FILE, {"id": run_id, "project": self.project, "entity": self.entity, "mode": mode})
        return wandb.init(
            id=run_id,
            resume="allow",
            name=name,
            project=self.project,
            entity=self.entity,
            group=self.group,
            tags=self.tags,
            config=config,
            dir=str(folder),
            mode=mode,
            settings=settings,
        )

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning("%s.", text)


def has_key(server: str) -> bool:
    """A key for the W&B server is configured (environment or netrc). Without one, wandb would ask on the terminal."""
    from wandb.sdk.lib import wbauth

    return bool(os.environ.get("WANDB_API_KEY")) or wbauth.read_netrc_auth(host=server) is not None


def reachable(server: str, timeout: float) -> bool:
    """The server accepts a connection within `timeout` seconds."""
    url = urlsplit(server)
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return True  # only the proxy knows; `wandb.init` finds out
    try:
        with socket.create_connection((url.hostname or "", url.port or (80 if url.scheme == "http" else 443)), timeout):
            return True
    except OSError:
        return False


def flat_numbers(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Numbers, texts and flags of a nested summary with dotted keys."""
    result: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            result += flat_numbers(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float, str)):
            result.append((f"{prefix}{key}", value))
        elif isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(item, (int, float)) for item in value):
            result += [(f"{prefix}{key}.low", value[0]), (f"{prefix}{key}.high", value[1])]
    return result
