"""Chaos test: a run under random faults must end up exactly as an undisturbed one.

    python scripts/chaos.py --seeds 1 2 3 4 5
    python scripts/chaos.py --seeds 1 --env alfworld --episodes 40 --kills 5

The same plan is run twice against the fake server, whose replies depend on the prompt alone. Once in peace; once while the
server drops, cuts, delays and refuses requests and dies, engines are killed and stopped, and the runner itself is killed with
SIGKILL and started again with the same command line. At the end every planned episode must be there exactly once and be equal
to that of the undisturbed run: result, every message, every step. Issued once more, the run must find nothing to do.

Faults that are an answer of the model (no content, a full context, 20,000 words) change what an agent does. They are part of a
second, smaller run for each seed: there every planned episode must be there exactly once and say how it ended, and its tokens
must add up; without kills to exactly what the server has delivered.

The seed also chooses the world (ALFWorld, TextCraft in two shards, PDDL, BabyAI, TextCraft) and whether replies come as
JSON or as events. Stops at the first failure (exit code 1). --out keeps the logs: runner.log, events.log, result.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos_checks import Outcome, accounted, complete, unchanged
from chaos_run import Disturbance, Server, Setup
from fake_server import spawn

TRAIN = ("env.split=train",)  # the test splits are too small
WORLDS: tuple[dict[str, Any], ...] = (
    {"env": "textcraft", "settings": TRAIN, "concurrency": 3, "streams": True},
    {"env": "alfworld", "concurrency": 2, "steps": 15},
    {"env": "textcraft", "settings": TRAIN, "concurrency": 4, "shards": 2},
    {"env": "pddl", "settings": TRAIN, "concurrency": 3, "streams": True},
    {"env": "babyai", "settings": TRAIN, "concurrency": 3},
)
"""Which one a seed takes: seed modulo 5."""

Row = dict[str, Any]


def strict(setup: Setup, out: Path) -> Row:
    """The run that must end as an undisturbed one."""
    server = ("--policy", "hash", "--no-log", *(["--always-stream"] if setup.streams else []))
    environment, mark = marked()
    began = time.monotonic()
    with spawn(*server) as url:
        startup = peace(setup.calm(), url, out / "calm", environment, out / "runner.log")
        requests = Server(url).count()
    calm, calm_seconds = Outcome.of(out / "calm"), time.monotonic() - began
    if len(calm.planned) != setup.episodes:
        raise SystemExit(f"env={setup.env} has {len(calm.planned)} tasks in this split; set --episodes to no more.")
    began, cpu = time.monotonic(), children_cpu()
    with spawn(*server) as url:
        chaos = Disturbance(setup, url, out / "chaos", environment, mark, out / "runner.log", requests, startup)
        try:
            chaos.run()
        finally:
            write_events(out, chaos)
        state = chaos.server.state()
    outcome = Outcome.of(out / "chaos")
    row = row_of(setup, chaos, state, outcome, time.monotonic() - began, children_cpu() - cpu)
    row["calm_seconds"] = round(calm_seconds, 1)
    bad = {**complete(outcome), **unchanged(calm, outcome), **survivors(chaos, outcome)}
    return {**row, "faults": {name: values for name, values in bad.items() if values}}


def answers(setup: Setup, out: Path) -> Row:
    """The runs in which the model's answers are odd as well: one in which nothing is killed but engines, and one with kills."""
    bad: dict[str, list[str]] = {}
    rows: list[Row] = []
    steps = 15
    for kills in (0, setup.kills):
        part = replace(setup, kills=kills, lasting=setup.lasting if kills else ("bad_request",))
        environment, mark = marked()
        root = out / f"kills{kills}"
        began, cpu = time.monotonic(), children_cpu()
        with spawn("--policy", "hash", "--no-log", *(["--always-stream"] if setup.streams else [])) as url:
            requests = part.episodes * steps
            chaos = Disturbance(part, url, root, environment, mark, out / "runner.log", requests, 2.0)
            try:
                chaos.run()
            finally:
                write_events(out, chaos)
            state = chaos.server.state()
        outcome = Outcome.of(root)
        exact = not kills and not chaos.done["ended with code 130"]
        found = {**complete(outcome), **accounted(outcome, state["delivered"], exact=exact), **survivors(chaos, outcome)}
        bad |= {f"{name} ({kills} kills)": values for name, values in found.items() if values}
        rows.append(row_of(part, chaos, state, outcome, time.monotonic() - began, children_cpu() - cpu))
    first, second = rows
    merged = {name: first[name] + second[name] for name in ("episodes", "requests", "seconds", "cpu_seconds")}
    for name in ("injected", "survived", "end_reasons"):
        merged[name] = dict(Counter(first[name]) + Counter(second[name]))
    return {**second, **merged, "faults": bad}


def peace(setup: Setup, url: str, root: Path, environment: dict[str, str], log: Path) -> float:
    """Run undisturbed; returns the seconds from its start to its first request."""
    server, began, startup = Server(url), time.monotonic(), 0.0
    with log.open("ab") as file:
        process = subprocess.Popen(setup.command(url, root), env=environment, stdout=file, stderr=file)
    while process.poll() is None:
        if not startup and server.count():
            startup = time.monotonic() - began
        time.sleep(0.1 if startup else 0.02)
        if time.monotonic() - began > setup.limit:
            process.kill()
    if process.returncode:
        raise SystemExit(f"The undisturbed run ended with code {process.returncode}; see {log}")
    return startup


def survivors(chaos: Disturbance, outcome: Outcome) -> dict[str, list[str]]:
    """Faults of the processes: orphans, too few kills, a finished run that went on working."""
    restless, killed = chaos.done["a finished run was not at rest"], chaos.done["runner killed"]
    summary = outcome.summary
    settled = summary["finished"] == len(outcome.planned) and not summary["harness_errors"] and not summary["partial"]
    return {
        "orphans": chaos.orphans(),
        "not killed often enough": [] if killed == chaos.setup.kills else [str(killed)],
        "not at rest": [str(restless)] if restless else [],
        "not finished": [] if settled else [json.dumps(summary)[:200]],
    }


def row_of(setup: Setup, chaos: Disturbance, state: dict[str, Any], outcome: Outcome, seconds: float, cpu: float) -> Row:
    """What was injected and survived."""
    injected = {kind: n for kind, n in sorted(state["injected"].items()) if kind != "ok"}
    errors = Counter(line["end_reason"] for line in outcome.lines if line["status"] == "error")
    retries = sum(call.get("retries", 0) for line in outcome.lines for call in line["calls"])
    return {
        "seed": setup.seed,
        "mode": "answers" if setup.answers else "strict",
        "world": f"{setup.env}{f', {setup.shards} shards' if setup.shards > 1 else ''}{', SSE' if setup.streams else ''}",
        "episodes": len(outcome.records),
        "requests": state["count"],
        "injected": injected,
        "survived": {
            **dict(sorted(chaos.done.items())),
            "retries of calls": retries,
            "second attempts": sum(record["attempts"] > 1 for record in outcome.records.values()),
            **{f"episodes run again after {reason}": n for reason, n in errors.items()},
        },
        "end_reasons": outcome.summary["end_reasons"],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
    }


def marked() -> tuple[dict[str, str], str]:
    """The environment of a run's processes, and what tells them apart from all others."""
    mark = uuid.uuid4().hex
    return {**os.environ, "OPENAI_API_KEY": "none", "AGENTEXP_CHAOS": mark}, mark


def children_cpu() -> float:
    """CPU seconds of the processes that were started here and have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_events(out: Path, chaos: Disturbance) -> None:
    """Keep what was done to the run."""
    with (out / "events.log").open("a", encoding="utf-8") as file:
        file.write("\n".join([f"--- {chaos.root.name}", *chaos.events]) + "\n")


def table(rows: Sequence[Row]) -> str:
    """One line per run."""
    heads = ("seed", "run", "world", "episodes", "requests", "faults (kinds)", "runner killed", "engines killed, stopped",
             "starts", "run again", "seconds", "CPU s", "result")  # fmt: skip
    lines = [heads]
    for row in rows:
        done = Counter(row["survived"])
        lines.append((
            str(row["seed"]), row["mode"], row["world"], str(row["episodes"]), str(row["requests"]),
            f"{sum(row['injected'].values())} ({len(row['injected'])})", str(done["runner killed"]),
            f"{done['engine killed']}, {done['engine stopped']}", str(done["starts"]),
            str(sum(n for name, n in done.items() if name.startswith("episodes run again"))),
            f"{row['seconds']:.0f}", f"{row['cpu_seconds']:.0f}", "FAILED" if row["faults"] else "passed",
        ))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def setups(seed: int, given: argparse.Namespace) -> list[Setup]:
    """The runs of a seed: the strict one, and the smaller one with odd answers."""
    options: dict[str, Any] = {**WORLDS[seed % len(WORLDS)], "seed": seed, "limit": given.limit}
    options |= {
        name: value
        for name in ("env", "episodes", "kills", "hurts", "steps", "concurrency", "shards")
        if (value := getattr(given, name)) is not None
    }
    if given.env is not None:
        options.pop("settings", None)  # they are those of the other world
    whole = Setup(**{"hurts": options.get("kills", 20), **options})
    policy = ("fail", "drop_oldest")[seed % 2]
    odd = replace(
        whole,
        episodes=max(4, whole.episodes // 5),
        kills=max(1, whole.kills // 4),
        hurts=max(1, whole.hurts // 4),
        answers=True,
        request_timeout=4.0,  # a reply that was delivered too late would be in nobody's account
        settings=(*whole.settings, "limits.tokens=60000", f"limits.context={policy}"),
    )
    return {"strict": [whole], "answers": [odd], "both": [whole, odd]}[given.mode]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--mode", choices=("strict", "answers", "both"), default="both")
    parser.add_argument("--env", help="the world, instead of the seed's")
    parser.add_argument("--shards", type=int, help="parts that run at the same time, instead of the seed's")
    parser.add_argument("--episodes", type=int, help="of the strict run (200)")
    parser.add_argument("--steps", type=int, help="most steps of an episode")
    parser.add_argument("--kills", type=int, help="times that the runner is killed (20)")
    parser.add_argument("--hurts", type=int, help="times that an engine is killed or stopped (as many)")
    parser.add_argument("--concurrency", type=int, help="episodes in flight, over all shards")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a run has failed")
    parser.add_argument("--out", type=Path, help="keep logs and run folders here")
    given = parser.parse_args()
    rows: list[Row] = []
    keep = nullcontext(given.out) if given.out else tempfile.TemporaryDirectory(prefix="agentexp-chaos-")
    with keep as name:
        for setup in [setup for seed in given.seeds for setup in setups(seed, given)]:
            out = Path(name) / f"seed{setup.seed}-{'answers' if setup.answers else 'strict'}"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            row = (answers if setup.answers else strict)(setup, out)
            rows.append(row)
            (out / "result.json").write_text(json.dumps(row, indent=2) + "\n")
            print(json.dumps(row), flush=True)
            if row["faults"]:
                break
    print(table(rows))
    return 1 if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
