"""Chaos test: a run under random faults must end up exactly as an undisturbed one.

    python scripts/chaos.py --seed 1
    python scripts/chaos.py --seed 1 --env alfworld --episodes 200 --kills 20

The same plan is run twice against the fake server, whose replies depend on the prompt alone. Once in peace; once while the
server drops, cuts, delays and refuses requests and dies, engines are killed, and the runner itself is killed with SIGKILL and
started again with the same command line. At the end every planned episode must be there exactly once and be equal to that of
the undisturbed run. Faults that are an answer of the model (no content, a full context, 20,000 words) change what an agent does
and are no part of the mix. The last line is JSON: what was injected and survived. Exit code 1 if anything is lost or changed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from fake_server import spawn

from agentexp.store import read_episodes

PASSING = (
    "rate_limit_bare",
    "server_error",
    "bad_gateway",
    "unavailable",
    "gateway_timeout",
    "error_in_200",
    "drop",
    "truncate",
    "never",
    "die",
    "invalid_json",
    "no_choice",
    "no_usage",
)
"""Faults after which another attempt succeeds."""

LASTING = ("no_key", "quota", "bad_request", "forbidden")
"""Faults that end an episode or the run with a harness error; the same command line then goes on."""


def fault_script(rng: random.Random) -> list[dict[str, Any]]:
    """A mix of standing faults, each striking at its own rhythm, about one request in six."""
    rhythms = rng.sample(range(37, 190), len(PASSING))
    script: list[dict[str, Any]] = [{"do": kind, "every": every} for kind, every in zip(PASSING, rhythms, strict=True)]
    script.append({"do": "rate_limit", "retry_after": "0.2", "every": rng.randrange(20, 60)})
    script.append({"do": "ok", "delay": rng.uniform(0.2, 1.5), "every": rng.randrange(20, 60)})
    return script


def steer(url: str, script: list[Any]) -> None:
    """Give the server another script."""
    request = urllib.request.Request(
        url.replace("/v1", "/script"), json.dumps(script).encode(), {"Content-Type": "application/json"}
    )
    for _ in range(50):
        try:
            urllib.request.urlopen(request, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)  # it is dead just now
    raise SystemExit("The fake server does not come back.")


def command(url: str, root: Path, options: argparse.Namespace) -> list[str]:
    """The command line of the run."""
    settings = [
        f"env={options.env}",
        "paradigm=react",
        "model=openai",
        "model.name=fake",
        f"model.base_url={url}",
        "model.request_timeout=2",
        "model.total_timeout=60",
        f"env.limit={options.episodes}",
        f"output_root={root}",
        f"concurrency={options.concurrency}",
        "progress=off",
        f"max_steps={options.steps}",
    ]
    return [sys.executable, "-m", "agentexp", "eval", *settings]


def records(root: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The run folder and its newest record of every episode."""
    (manifest,) = root.glob("eval/**/manifest.json")
    return manifest.parent, list(read_episodes(manifest.parent))


def essence(record: dict[str, Any]) -> tuple[Any, ...]:
    """What must not change: the result and every action."""
    actions = [(step["action"], step["observation"]) for step in record["trajectory"]]
    return record["status"], record["end_reason"], record["success"], record["score"], actions


def calm(root: Path, options: argparse.Namespace, environment: dict[str, str]) -> dict[str, Any]:
    """Run undisturbed."""
    with spawn("--policy", "hash", "--no-log") as url:
        subprocess.run(command(url, root, options), env=environment, check=True, stdout=subprocess.DEVNULL, timeout=1800)
    return {record["key"]: essence(record) for record in records(root)[1]}


def disturb(root: Path, options: argparse.Namespace, environment: dict[str, str]) -> Counter[str]:
    """Run under faults until the plan is finished; returns what was injected."""
    rng = random.Random(options.seed)
    done: Counter[str] = Counter()
    with spawn("--policy", "hash", "--no-log", "--delay", str(options.delay)) as url:
        steer(url, fault_script(rng))
        log = (root.parent / "chaos.log").open("wb")
        deadline = time.monotonic() + options.limit
        while True:
            if time.monotonic() > deadline:
                raise SystemExit(f"The run did not end within {options.limit} s: {dict(done)}")
            process = subprocess.Popen(command(url, root, options), env=environment, stdout=log, stderr=log)
            done["started"] += 1
            lives_until = time.monotonic() + rng.uniform(*options.life) if done["runner killed"] < options.kills else deadline
            if rng.random() < 0.2:
                steer(url, [{"do": rng.choice(LASTING)}, *fault_script(rng)])
                done["lasting fault"] += 1
            while process.poll() is None and time.monotonic() < lives_until:
                time.sleep(rng.uniform(0.05, 0.6))
                done["engine killed"] += rng.random() < 0.15 and kill_engine(process.pid, rng)
            if process.poll() is None:
                family = psutil.Process(process.pid).children(recursive=True)
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                done["runner killed"] += 1
                done["orphans"] += len(psutil.wait_procs(family, timeout=20)[1])
            elif process.returncode == 0:
                break
            else:
                done[f"ended with code {process.returncode}"] += 1
        with urllib.request.urlopen(url.replace("/v1", "/log"), timeout=10) as answer:
            injected = json.load(answer)
    done["requests"] = injected["count"]
    return done + Counter({kind: n for kind, n in injected["injected"].items() if kind != "ok"})


def kill_engine(runner: int, rng: random.Random) -> bool:
    """Kill one of the runner's children; whether there was one."""
    try:
        children = psutil.Process(runner).children()
        if children:
            rng.choice(children).kill()
        return bool(children)
    except psutil.NoSuchProcess:
        return False


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env", default="alfworld")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20, help="most steps of an episode")
    parser.add_argument("--kills", type=int, default=20, help="times that the runner is killed")
    parser.add_argument("--life", type=float, nargs=2, default=(1.5, 6.0), help="seconds that it lives before")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds of a reply")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which the test has failed")
    options = parser.parse_args()
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    with tempfile.TemporaryDirectory(prefix="agentexp-chaos-") as name:
        wanted = calm(Path(name) / "calm", options, environment)
        survived = disturb(Path(name) / "chaos", options, environment)
        folder, found = records(Path(name) / "chaos")
        lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_bytes().splitlines() if line.strip()]
        finished = Counter(line["key"] for line in lines if line.get("status") == "ok")
        summary = json.loads((folder / "summary.json").read_text())
    got = {record["key"]: essence(record) for record in found}
    faults = {
        "lost": sorted(set(wanted) - set(got)),
        "unplanned": sorted(set(got) - set(wanted)),
        "twice": sorted(key for key, n in finished.items() if n != 1),
        "changed": sorted(key for key in wanted if key in got and got[key] != wanted[key]),
        "orphans": [str(survived["orphans"])] if survived["orphans"] else [],
        "not killed often enough": [] if survived["runner killed"] >= options.kills else [str(survived["runner killed"])],
        "summary": [] if summary["finished"] == len(wanted) and not summary["harness_errors"] else [json.dumps(summary)],
    }
    bad = {name: values for name, values in faults.items() if values}
    print(json.dumps({"seed": options.seed, "episodes": len(wanted), "survived": dict(survived), "faults": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
