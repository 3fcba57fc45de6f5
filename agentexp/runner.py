"""From a plan to a finished run folder: drop what is finished, run the rest, store each episode at once.

    plan (tasks x seeds x repeats) - finished (status "ok" in the run folder) = owed
    owed -> N coroutines -> rollout.run_episode -> one line of episodes.jsonl
    all lines -> summary.json

A run is interrupted by nothing worse than losing the episodes in flight; issued again, it goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

from agentexp import interrupt
from agentexp.caps import RunCaps
from agentexp.context import SETUP_FILE, RunContext
from agentexp.core import Episode, Model, Step, Task, Usage
from agentexp.ending import exit_code, numbers, tell
from agentexp.errors import ContextOverflow, FatalError, HarnessError, UserError, first_of
from agentexp.hooks import ARTEFACTS_FILE, Finalises, Prepares
from agentexp.knowledge import find_knowledge, save_knowledge
from agentexp.manifest import build_manifest, differences, settle
from agentexp.progress import Progress, Tally
from agentexp.records import dump, episode_from_json, episode_to_json
from agentexp.rollout import World, run_episode
from agentexp.run import Engines, Run, plan_of
from agentexp.store import FolderBusy, Found, RunFolder, index, read_episodes, superseded
from agentexp.summary import Summary, seal, sealed_summary, setup_usage, summarise_run

__all__ = ["Run", "execute", "exit_code", "plan_of", "run_sync"]

log = logging.getLogger(__name__)


def run_sync(run: Run) -> tuple[Summary, int]:
    """`execute` in an event loop of its own; returns the summary and the exit code."""
    summary = asyncio.run(execute(run))
    return summary, exit_code(summary)


async def execute(run: Run) -> Summary:
    """Run what is owed and return the summary, as in `summary.json`.

    Returns:
        With a shard also `shard`: {"episodes", "left"} of this part. Also for an interrupted run (`partial`, `stopped_by`
        "SIGINT" or "SIGTERM"), for one that a `FatalError` stopped ("fatal"), one that reached a cap of `limits` ("cap") and
        one whose time was up ("timeout").

    Raises:
        UserError: the command cannot run as given, or the folder holds another run; nothing finished is lost.
    """
    tasks, plan = plan_of(run)
    async with _opened(run) as folder:
        manifest = build_manifest(run, tasks, plan)
        found = index(folder.path)
        old = folder.read_json("manifest.json")
        if old is not None and not found and any(differences(old, manifest)):
            folder.remove("manifest.json", ARTEFACTS_FILE, SETUP_FILE)  # it never got to an episode: nothing to protect
            old = None
        folder.write_json("manifest.json", settle(old, manifest, run.resume, folder.path))
        job = _Job(run, folder, plan, found)
        summary: Summary = {}
        try:
            stopped_by = await job.run_until_stopped()
            with folder.sole(".lock-summary", wait=True):  # the shard that writes last has seen what all others stored
                known = None if job.opened or stopped_by else sealed_summary(folder.path, manifest)
                summary = known or summarise_run(folder.path, manifest, stopped_by)
                if known is None:
                    folder.write_json("summary.json", summary)
                    seal(folder.path, manifest)
        except UserError:
            folder.discard_unused("manifest.json", ARTEFACTS_FILE)
            raise
        finally:
            await asyncio.to_thread(run.logger.finish, summary)
    if run.shard is not None:  # not in the file, which the shards share
        summary = {**summary, "shard": {"episodes": len(job.mine), "left": job.left()}}
    tell(run, summary, job.fatal, idle=not job.opened)
    return summary


class _Job:
    """The part of a run that can be interrupted."""

    def __init__(self, run: Run, folder: RunFolder, plan: Sequence[Task], found: Mapping[str, Found]) -> None:
        self.run, self.folder, self.plan, self.found = run, folder, plan, found
        self.mine = plan if run.shard is None else plan[run.shard[0] :: run.shard[1]]
        self.owed = [task for task in self.mine if task.key not in found or found[task.key].status != "ok"]
        known = [found[task.key] for task in plan if task.key in found]
        done = [record for record in known if record.status == "ok"]
        tally = Tally(len(plan), len(done), sum(record.success for record in done), len(known) - len(done))
        self.progress = Progress(tally, f"{run.command} {run.env.name}/{run.paradigm.name}", run.progress)
        self.fatal = ""
        stored = chain(read_episodes(folder.path, slim=True), superseded(folder.path))
        self.caps = RunCaps(run.limits, stored, Usage(**_paid(setup_usage(folder.path))))
        self._pool: Engines | None = None
        self._started: list[Model] = []
        self._context: RunContext | None = None
        self._written, self._finished = asyncio.Event(), asyncio.Event()

    async def run_until_stopped(self) -> str:
        """Do everything that is owed. Returns "" when done, the signal's name, "timeout", "cap" or "fatal"."""
        work = asyncio.ensure_future(self._work())
        stopped: list[str] = []

        def stop(signal_name: str) -> None:
            stopped.append(signal_name)
            work.cancel()

        try:
            if self.run.nested:
                await work
            else:
                with interrupt.on_interrupt(stop), interrupt.stopping_after(self.run.limits.run_seconds, stop):
                    await work
        except asyncio.CancelledError:
            if not stopped:
                raise
        except (HarnessError, ContextOverflow) as error:  # fatal for all episodes, or an engine or a model failed the hooks
            self.fatal = str(error)
            return "fatal"
        if not stopped and self.owed and self.caps.reached and self.left():
            self.fatal = self.caps.reached
            return "cap"
        if stopped[:1] == ["timeout"]:
            self.fatal = f"The run has taken limits.run_seconds={self.run.limits.run_seconds:g} s."
        return stopped[0] if stopped else ""

    async def _work(self) -> None:
        if not self.owed and not self._owes_result(self.found):
            return
        try:
            self._mark_partial()
            self.run.logger.start(self.folder.path, str(self.folder.path.name), self.run.config)
            artefacts = await self._prepare()
            with self.progress:  # not before: `prepare` may show the progress of a nested run
                await self._episodes(artefacts)
            await self._finalise()
        finally:
            if self._pool is not None:
                await self._pool.stop()
            for model in self._started:
                await model.close()

    def _mark_partial(self) -> None:
        """A summary of an earlier, shorter plan must not look complete while this one runs."""
        summary = self.folder.read_json("summary.json")
        if self.owed and summary is not None and not summary.get("partial"):
            self.folder.write_json("summary.json", {**summary, "partial": True, "planned": len(self.plan)})

    @property
    def opened(self) -> bool:
        """Models and engines were needed: something was left to do."""
        return self._context is not None

    def left(self) -> int:
        """Episodes of this shard that have not finished."""
        found = index(self.folder.path)
        return sum(task.key not in found or found[task.key].status != "ok" for task in self.mine)

    # ------------------------------------------------------------------------------------------------------- the hooks

    async def _open(self) -> RunContext:
        """Start models, open the pool: on first need, so that a finished run starts nothing."""
        if self._context is None:
            for model in {id(model): model for model in self.run.models.values()}.values():
                if not self.run.nested:  # else they are the outer run's, which closes them
                    self._started.append(model)
                await model.start()
            self._pool = self.run.pool(self.run)
            self._context = RunContext(
                self.run.env,
                self.run.models,
                self.folder,
                self.plan,
                self.run.config,
                self.run.parsing,
                self.run.output_root,
                self._lease,
                lambda: find_knowledge(self.run, execute),
                f"{self.run.command}/{self.run.env.name}/{self.run.paradigm.name}/{self.run.seeds[0]}",
            )
        return self._context

    async def _prepare(self) -> dict[str, Any]:
        context = await self._open()
        if not isinstance(self.run.paradigm, Prepares):
            return {}
        artefacts = await self.run.paradigm.prepare(context)
        before = self.folder.read_json(ARTEFACTS_FILE)
        if self.found and before is not None and before != json.loads(dump(artefacts)):
            if self.run.resume == "refuse":
                raise UserError(
                    f"What {self.run.paradigm.name} prepares for its episodes is no longer what "
                    f"{self.folder.path / ARTEFACTS_FILE} holds (another K_g?). "
                    "Go on all the same with resume=ignore, or start afresh with another output_root=."
                )
            log.warning("Resuming although the prepared artefacts changed.")
        self.folder.write_json(ARTEFACTS_FILE, artefacts)
        context.artefacts = artefacts
        return artefacts

    def _owes_result(self, found: Mapping[str, Found]) -> bool:
        """The paradigm makes a result out of all episodes, all have ended, and the stored result is not of these episodes."""
        if not isinstance(self.run.paradigm, Finalises) or any(task.key not in found for task in self.plan):
            return False
        stored = self.folder.read_json("result.json")
        return stored is None or stored.get("episodes") != self._finished_keys(found)

    def _finished_keys(self, found: Mapping[str, Found]) -> list[str]:
        return [task.key for task in self.plan if task.key in found and found[task.key].status == "ok"]

    async def _finalise(self) -> None:
        found = index(self.folder.path)
        if not isinstance(self.run.paradigm, Finalises) or not self._owes_result(found):
            return
        with self.folder.sole(".lock-result") as mine:
            if mine and self._owes_result(found):  # of several shards that end at once, one makes the result
                await self._make_result(found)

    async def _make_result(self, found: Mapping[str, Found]) -> None:
        context, keys = await self._open(), self._finished_keys(found)
        episodes = [episode_from_json(record) for record in read_episodes(self.folder.path, keys)]
        assert isinstance(self.run.paradigm, Finalises)
        result = await self.run.paradigm.finalise(context, episodes)
        if self.run.command == "explore":
            result = save_knowledge(self.run, result, len(episodes))
        self.folder.write_json("result.json", {"episodes": keys, "result": result})

    # ---------------------------------------------------------------------------------------------------- the episodes

    async def _episodes(self, artefacts: Mapping[str, Any]) -> None:
        """N workers share one iterator: no task object waits per owed episode, however long the plan is.

        Not more of them than engines: an episode that waits for one would use up its time limit.
        """
        owed, n = iter(self.owed), min(self.run.concurrency, self.run.workers or self.run.concurrency, len(self.owed))
        syncing = asyncio.create_task(self._sync())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(n):
                    group.create_task(self._worker(owed, artefacts))
        except ExceptionGroup as errors:
            raise first_of(errors) from errors
        finally:
            self._finished.set()
            self._written.set()
            await syncing

    async def _sync(self) -> None:
        """fsync what was appended, beside the episodes: it takes milliseconds, in which no reply could be read."""
        while not self._finished.is_set():
            await self._written.wait()
            self._written.clear()
            try:
                await asyncio.to_thread(self.folder.sync)
            except OSError as error:
                raise self._disk(error) from error

    async def _worker(self, owed: Iterator[Task], artefacts: Mapping[str, Any]) -> None:
        run = self.run
        for task in owed:
            if self.caps.reached:
                return
            episode = await run_episode(
                task, run.env, self._lease, run.models, run.paradigm, run.budget, run.limits, run.parsing, artefacts
            )
            self._store(episode)
            await asyncio.sleep(0)  # a world and a model that never wait would starve the other episodes and Ctrl-C

    def _store(self, episode: Episode) -> None:
        try:
            line = episode_to_json(episode)
        except TypeError as error:
            text = f"The episode cannot be stored: {error}. Notes and infos hold JSON values only."
            episode = Episode(
                episode.task, episode.paradigm, episode.model, status="error", end_reason="harness_error", error=text
            )
            line = episode_to_json(episode)
        try:
            self.folder.append(line)
        except OSError as error:
            raise self._disk(error) from error
        self._written.set()
        self.caps.add(episode.usage + episode.wasted)
        before = self.found.get(episode.task.key)
        self.progress.finished(episode, was_error=before is not None)
        self.run.logger.log(numbers(episode, self.progress.tally))

    def _disk(self, error: OSError) -> FatalError:
        return FatalError(f"{self.folder.episodes_file} cannot be written: {error.strerror}.")

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[World]:
        await self._open()
        assert self._pool is not None
        async with self._pool.lease() as world:
            yield _CountedWorld(world, self.progress)


class _CountedWorld:
    """A leased world whose steps move the progress display."""

    def __init__(self, world: World, progress: Progress) -> None:
        self._world, self._progress = world, progress

    async def reset(self, task: Task) -> Step:
        return await self._world.reset(task)

    async def step(self, action: str) -> Step:
        step = await self._world.step(action)
        self._progress.step()
        return step

    async def call(self, method: str, *args: Any) -> Any:
        answer = await self._world.call(method, *args)
        if isinstance(answer, Mapping) and isinstance(ticks := answer.get("ticks"), int):
            self._progress.step(ticks)  # worlds that play a stretch of an episode in one call
        return answer


@asynccontextmanager
async def _opened(run: Run) -> AsyncIterator[RunFolder]:
    """The locked run folder. A nested run waits for another job of the sweep that makes the same thing."""
    folder = RunFolder(run.folder, run.shard)
    told = False
    while True:
        try:
            folder.__enter__()
            break
        except FolderBusy as busy:
            if not run.nested:
                raise
            if not told:
                log.warning("Waiting: %s", busy)
                told = True
            await asyncio.sleep(0.5)
    try:
        yield folder
    finally:
        folder.close()


def _paid(setup: Mapping[str, Any]) -> dict[str, Any]:
    return {key: setup[key] for key in ("prompt_tokens", "completion_tokens", "calls", "cost")}
