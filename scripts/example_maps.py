"""MAP, table 8: the maps of recorded episodes as text files, in the paper's three columns.

    python scripts/example_maps.py RUNS --out FOLDER [--env arc_agi3]

Takes every episode of map runs that carries a map, one file for each game and model.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from agentexp.store import read_episodes, read_json

COLUMNS = (
    ("Environment layout", ("spatial", "absent")),
    ("Action effects", ("affordances",)),
    ("Game rules", ("task_notes", "unknown")),
)


def main() -> None:
    """Write the files and name them."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("runs", type=Path, help="folder with run folders")
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--env", default="arc_agi3")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    n = 0
    for manifest in sorted(given.runs.rglob("manifest.json")):
        run = read_json(manifest) or {}
        if run.get("env") != given.env or run.get("paradigm") != "map":
            continue
        for record in read_episodes(manifest.parent, run.get("planned", ())):
            found = record.get("notes", {}).get("map")
            if record.get("status") != "ok" or not found:
                continue
            name = re.sub(r"[^\w.-]+", "_", f"{record['task']['id']}-{run.get('model', 'model')}")
            file = given.out / f"{name}.txt"
            file.write_text(text_of(record, str(run.get("model", "")), found), encoding="utf-8")
            print(file)
            n += 1
    if not n:
        raise SystemExit(f"{given.runs} holds no map runs of env={given.env}; run `make table2` first.")


def text_of(record: dict[str, Any], model: str, found: dict[str, Any]) -> str:
    """One map as text."""
    task = record["task"]
    title = task.get("spec", {}).get("title", task["id"])
    whose = "a game of ours, not one of the paper's" if task.get("spec", {}).get("source") == "own" else "a game of ARC Prize's"
    stop = record["notes"].get("stop", {})
    lines = [
        f"{task['id']}: {title} ({whose})",
        f"Map by {model} after {stop.get('t', '?')} mapping steps ({stop.get('reason', '?')}).",
    ]
    for heading, parts in COLUMNS:
        lines += ["", heading]
        entries = [_line(part, entry) for part in parts for entry in found.get(part, ())]
        lines += [f"  - {entry}" for entry in entries] or ["  (nothing)"]
    return "\n".join(lines) + "\n"


def _line(part: str, entry: Any) -> str:
    if part == "spatial":
        return f"{entry['thing']} {entry['relation']} {entry['place']}"
    if part == "absent":
        return f"no {entry['what']} in {entry['place']}"
    if part == "affordances":
        target = f" on {entry['target']}" if entry.get("target") else ""
        needs = f" ({entry['requires']})" if entry.get("requires") else ""
        return f"{entry['action']}{target}: {entry['effect'] or ('works' if entry['works'] else 'refused')}{needs}"
    return f"not known: {entry}" if part == "unknown" else str(entry)


if __name__ == "__main__":
    main()
