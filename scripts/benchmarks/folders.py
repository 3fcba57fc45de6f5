"""Large run folders: going on with one, reporting on one, opening the page of one; beside reading the same bytes as JSON."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_server import spawn

from agentexp.core import Task
from agentexp.envs.toy import ToyRooms
from agentexp.records import dump
from agentexp.store import read_json, write_json
from benchmarks.processes import Took, command, environment, free_port, model_at, until_end, until_request

_TURNS, _TURNS_REPORTED, _PLAYED = 20, 5, 50


class Large:
    """A run of many episodes: some are played, and their records are written again and again for the other tasks.

    Args:
        scratch: a folder that is made.
        episodes: how many there are to be.
        turns: of each.
    """

    def __init__(self, scratch: Path, episodes: int, turns: int = _TURNS) -> None:
        self.episodes = episodes
        self.environ = environment()
        self.port = free_port()
        self.root = scratch / "runs"
        settings = (
            "paradigm=react",
            "paradigm.show_admissible=true",
            "env=toy",
            f"env.n_tasks={episodes}",
            f"max_steps={turns}",
        )
        # the code may be worked on while it is measured
        self.line = command("eval", *settings, f"output_root={self.root}", "progress=off", "resume=ignore")

    def make(self) -> Path:
        """Play some episodes and write the others but the last; returns the run folder."""
        with spawn("--policy", "hash", "--no-log", "--port", str(self.port)):
            until_end([*self.line, *model_at(self.port), f"env.limit={_PLAYED}"], self.environ)
        (file,) = self.root.rglob("episodes.jsonl")
        played = {json.loads(line)["key"]: line.rstrip(b"\n") for line in file.read_bytes().splitlines()}
        tasks = ToyRooms(n_tasks=self.episodes).tasks("test")
        around = [_around(played[task.key], task) for task in tasks if task.key in played]
        thoughts = Thoughts()
        records = (thoughts.put_into(_filled(around[i % len(around)], task)) for i, task in enumerate(tasks))
        with file.open("wb") as out:
            out.writelines(itertools.islice(records, len(tasks) - 1))
        self.last = next(records)
        manifest = read_json(file.with_name("manifest.json")) or {}
        write_json(file.with_name("manifest.json"), {**manifest, "planned": [task.key for task in tasks]})
        return file.parent

    def finish(self, folder: Path) -> None:
        """Write the last record as well."""
        with (folder / "episodes.jsonl").open("ab") as out:
            out.write(self.last)

    def issue_again(self) -> Took:
        """The same command; nobody listens at the model's address, because what is finished needs no model."""
        return until_end([*self.line, *model_at(self.port)], self.environ)


Around = tuple[bytes, bytes, bytes]


def _around(line: bytes, task: Task) -> Around:
    """What stands in a record before its key, between key and task, and after the task."""
    key, own = _own(task)
    before, _, rest = line.partition(key)
    between, found, after = rest.partition(own)
    if not found:
        raise RuntimeError("the record does not hold its task as expected")
    return before, between, after


def _filled(around: Around, task: Task) -> bytes:
    key, own = _own(task)
    return b"%b%b%b%b%b\n" % (around[0], key, around[1], own, around[2])


class Thoughts:
    """Random sentences in place of what the fake model thinks, so that records compress as real ones do, not better."""

    def __init__(self) -> None:
        rng = random.Random(0)
        words = ["".join(rng.choice("bdfglmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))) for _ in range(800)]
        self._sentences = [" ".join(rng.choices(words, k=20)).encode() for _ in range(4000)]
        self._rng = rng

    def put_into(self, record: bytes) -> bytes:
        """The record with another sentence at every turn."""
        return re.sub(rb"choice \d+", lambda _: self._rng.choice(self._sentences), record)


def _own(task: Task) -> tuple[bytes, bytes]:
    return dump(task.key), dump(
        {name: getattr(task, name) for name in ("id", "env", "split", "seed", "repeat", "kind", "spec")}
    )


def floors(folder: Path) -> dict[str, float]:
    """Seconds to read a run's records, and to read them as JSON."""
    found: dict[str, float] = {}
    for name, read in (("read_s", len), ("json_s", json.loads)):
        started = time.perf_counter()
        with (folder / "episodes.jsonl").open("rb") as lines:
            for line in lines:
                read(line)
        found[name] = round(time.perf_counter() - started, 3)
    return found


def resume(scratch: Path, episodes: int, rounds: int) -> dict[str, Any]:
    """Issuing a command again whose episodes have finished: one is owed, all have just finished, and nothing is new."""
    large = Large(scratch, episodes)
    folder = large.make()
    untouched = scratch / "untouched"
    shutil.copytree(folder, untouched)
    started, whole, again = [], [], []
    for _ in range(rounds):
        _restore(untouched, folder)
        started.append(until_request(large.line, large.environ, large.port))
        _restore(untouched, folder)
        large.finish(folder)
        whole.append(large.issue_again())
        again.append(large.issue_again())
    found: dict[str, Any] = {"episodes": episodes, "bytes": (folder / "episodes.jsonl").stat().st_size, **floors(folder)}
    for name, took in (("one_owed", started), ("all_finished", whole), ("issued_again", again)):
        found[name] = Took.least(took)._asdict()
    return found


def _restore(source: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(source, folder)


def report(scratch: Path, episodes: int) -> dict[str, Any]:
    """`agentexp report runs` on a run of many episodes, once."""
    large = Large(scratch, episodes, _TURNS_REPORTED)
    folder = large.make()
    large.finish(folder)
    took = until_end(command("report", "runs", str(folder)), large.environ)
    found = {"episodes": episodes, "bytes": (folder / "episodes.jsonl").stat().st_size, **floors(folder), **took._asdict()}
    shutil.rmtree(large.root)
    return {**found, "ratio_to_json": round(took.wall_s / found["json_s"], 2)}


def page(scratch: Path, episodes: int, rounds: int) -> dict[str, Any]:
    """`agentexp view` on a run of many episodes, and how long a browser takes to show the page (where there is one)."""
    large = Large(scratch, episodes)
    folder = large.make()
    large.finish(folder)
    large.issue_again()  # writes the summary
    file = scratch / "page.html"
    took = Took.least([until_end(command("view", str(folder), "--out", str(file)), large.environ) for _ in range(rounds)])
    found: dict[str, Any] = {"episodes": episodes, "page_bytes": file.stat().st_size, "write": took._asdict(), **floors(folder)}
    try:
        found["browser_s"] = in_browser(file, rounds)
    except ImportError as error:
        found["browser"] = f"not measured: {error}"
    return found


def in_browser(file: Path, rounds: int) -> dict[str, float]:
    """Seconds until headless Chromium shows the page, and an empty page.

    Raises:
        ImportError: selenium, Chromium or its driver is not installed.
    """
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        raise ImportError("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    empty = file.with_name("empty.html")
    empty.write_text("<!doctype html><main id=main>Here.</main>", encoding="utf-8")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        pages: Sequence[tuple[str, Path]] = (("empty", empty), ("page", file))
        seconds: dict[str, list[float]] = {name: [] for name, _ in pages}
        for _ in range(rounds):
            for name, one in pages:
                browser.get("about:blank")
                started = time.perf_counter()
                browser.get(one.as_uri())
                shown = "return document.querySelector('#main').innerText"
                while str(browser.execute_script(shown)).startswith("Reading"):
                    time.sleep(0.005)
                seconds[name].append(time.perf_counter() - started)
    finally:
        browser.quit()
    return {name: round(min(values), 3) for name, values in seconds.items()}
