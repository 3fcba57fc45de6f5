"""What agentexp itself costs, beside floors and (on request) other harnesses measured in the same run.

    python scripts/bench.py [--out bench.json] [--only turns startup ...] [--small] [--peers FOLDER]
    python scripts/bench.py --markdown [docs/results/performance.md]

Sections: turns (CPU per turn), flight (many episodes in flight), memory (of waiting episodes), startup, engines (steps through
the pool), folders (large runs), peers (inspect-ai and verifiers, each installed into an environment of its own below FOLDER).
With --only, the other sections of an existing file are kept. Compare ratios: absolute times depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import engines, folders, memory, peers, startup, tables, turns

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        turns: lengths of episodes.
        in_flight: episodes at once.
        reply_ms: how long the fake model thinks.
        rounds: of the CPU time per turn.
        least_turns: of each of its measurements.
        many: episodes at once in section flight, with replies after `many_reply_ms`.
        waiting: episodes whose memory is measured, and twice as many.
        starts: of each command whose start-up is measured.
        worlds: choices of `env=` whose start-up is measured.
        tasks: per world whose steps are measured, with at most `steps` each, in `engine_rounds` rounds.
        finished: episodes of the run that is resumed.
        reported: episodes of the run that is reported on.
        shown: episodes of the run whose page is opened.
    """

    turns: Sequence[int] = (10, 30, 100)
    in_flight: int = 32
    reply_ms: float = 50.0
    rounds: int = 3
    least_turns: int = 1600
    many: int = 256
    many_reply_ms: float = 400.0
    waiting: int = 400
    starts: int = 3
    worlds: Sequence[str] = ("toy", "textcraft", "alfworld")
    tasks: int = 4
    steps: int = 30
    engine_rounds: int = 3
    finished: int = 10_000
    reported: int = 100_000
    shown: int = 1_000


SMALL = Sizes(
    turns=(3, 6),
    in_flight=4,
    reply_ms=5.0,
    rounds=1,
    least_turns=24,
    many=8,
    many_reply_ms=20.0,
    waiting=20,
    starts=1,
    worlds=("toy",),
    tasks=1,
    steps=4,
    engine_rounds=1,
    finished=50,
    reported=100,
    shown=20,
)


def measure_turns(sizes: Sizes, scratch: Path) -> Results:
    """CPU per turn, by the length of the episodes."""
    return turns.per_turn(sizes.turns, sizes.in_flight, sizes.reply_ms, sizes.rounds, sizes.least_turns)


def measure_flight(sizes: Sizes, scratch: Path) -> Results:
    """The same and the rate with many episodes in flight."""
    return {"many_in_flight": turns.many_in_flight(sizes.turns, sizes.many, sizes.many_reply_ms)}


def measure_memory(sizes: Sizes, scratch: Path) -> Results:
    """Memory of an episode that waits for its first reply, and of one in its course."""
    return {"memory": [memory.per_episode(sizes.waiting, n) for n in (0, sizes.turns[0])]}


def measure_startup(sizes: Sizes, scratch: Path) -> Results:
    """Time to the first request."""
    return {"startup": startup.start_up(scratch, sizes.worlds, sizes.starts)}


def measure_engines(sizes: Sizes, scratch: Path) -> Results:
    """Environment steps, bare and through the pool."""
    return {"env_steps": engines.all_worlds(engines.WORLDS, sizes.tasks, sizes.steps, sizes.engine_rounds)}


def measure_folders(sizes: Sizes, scratch: Path) -> Results:
    """Large run folders."""
    return {
        "resume": folders.resume(scratch / "resume", sizes.finished, sizes.starts),
        "report": folders.report(scratch / "report", sizes.reported),
        "page": folders.page(scratch / "page", sizes.shown, sizes.starts),
    }


SECTIONS: dict[str, Callable[[Sizes, Path], Results]] = {
    "turns": measure_turns,
    "flight": measure_flight,
    "memory": measure_memory,
    "startup": measure_startup,
    "engines": measure_engines,
    "folders": measure_folders,
}


def bench(
    sections: Sequence[str], sizes: Sizes, peer_folder: Path | None = None, say: Callable[[str], None] = print
) -> Results:
    """Measure some sections; `peer_folder` adds the peers."""
    results: Results = {"load": {}}
    wanted = {name: SECTIONS[name] for name in sections}
    if peer_folder is not None:
        where = peer_folder
        wanted["peers"] = lambda s, _: {"peers": peers.compare(where, s.turns, s.in_flight, s.reply_ms)}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for name, measure in wanted.items():
            before = os.getloadavg()[0]
            results |= measure(sizes, Path(scratch))
            results["load"][name] = [round(before, 2), round(os.getloadavg()[0], 2)]
            say(f"{name} measured.")
    results["setting"] = {"episodes_in_flight": sizes.in_flight, "reply_ms": sizes.reply_ms}
    results["machine"] = {"cores": os.cpu_count(), "system": platform.system()}
    results["versions"] = {"python": platform.python_version(), **{p: version(p) for p in ("agentexp", "openai", "aiohttp")}}
    return results


def merged(old: Results, new: Results) -> Results:
    """An older file with the sections that were measured anew."""
    return {**old, **new, "load": {**old.get("load", {}), **new["load"]}}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS, "none"], help="these sections (none: with --peers, the peers)")
    parser.add_argument("--small", action="store_true", help="a few seconds per section, to see that everything works")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="also measure other harnesses, installed there if need be")
    parser.add_argument("--markdown", type=Path, nargs="?", const=Path("-"), metavar="PAGE", help="only show --out as Markdown")
    args = parser.parse_args()
    if args.markdown is not None:
        text = tables.markdown(json.loads(args.out.read_text(encoding="utf-8")))
        if args.markdown == Path("-"):
            print(text)
        else:
            tables.put_into(args.markdown, text)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that child processes are ended
    sections = [name for name in args.only or SECTIONS if name != "none"]
    results = bench(sections, SMALL if args.small else Sizes(), args.peers)
    if args.only and args.out.exists():
        results = merged(json.loads(args.out.read_text(encoding="utf-8")), results)
    args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(tables.text(results))
    print(f"Written to {args.out}")


if __name__ == "__main__":
    main()
