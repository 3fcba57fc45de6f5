"""Figures of WISE runs: where the agents went (paper 004, figures 5 to 7), and the graph of a saved memory.

    python scripts/wise_figures.py RUNS [--out FOLDER] [--seed 0]

For every task among the runs one picture with a panel for each method: the way of one episode from blue (start) to red (end),
what was collected where, what the protocol put into the world. Runs with save_memory=N also give pictures of their graphs.
Reads run folders only; exits with 1 where there is nothing to draw.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentexp.reports.runs import find_runs
from agentexp.store import read_episodes, read_json
from agentexp.wise.memory.graph_files import draw, load

ORDER = (
    *("steve1", "mrsteve", "wise_saeg_only", "wise_no_saeg", "wise_labels_only", "wise_no_exploration", "wise_no_scheduler"),
    *("wise_quadtree", "wise_regional", "wise", "sweep"),
)
COLOURS = {"water_bucket": "#0072B2", "log": "#8c510a", "beef": "#D55E00", "sand": "#E69F00", "mutton": "#CC79A7"}
WIDE = 4


def episodes(root: Path, seed: int) -> dict[str, dict[str, tuple[Path, Mapping[str, Any]]]]:
    """By task and map, then by method: (run folder, record) of one seed; of several runs of a method the first folder's."""
    found: dict[str, dict[str, tuple[Path, Mapping[str, Any]]]] = {}
    for folder in find_runs(root):
        manifest = read_json(folder / "manifest.json") or {}
        if manifest.get("command") != "wise-run":
            continue
        for record in read_episodes(folder):
            note = record.get("notes", {}).get("coverage")
            if record["status"] == "ok" and note is not None and int(record["task"]["id"]) == seed:
                found.setdefault(str(manifest["env"]), {}).setdefault(str(manifest["paradigm"]), (folder, record))
    return found


def trajectories(env: str, methods: Mapping[str, tuple[Path, Mapping[str, Any]]], path: Path) -> Path:
    """One panel per method."""
    from matplotlib.figure import Figure

    names = sorted(methods, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    wide = min(WIDE, len(names))
    tall = -(-len(names) // wide)
    figure = Figure(figsize=(3.6 * wide, 3.9 * tall), layout="constrained")
    for panel in figure.subplots(tall, wide, squeeze=False).flat[len(names) :]:
        panel.set_axis_off()
    low, high = extent([record for _, record in methods.values()])
    for panel, name in zip(figure.axes, names, strict=False):
        _panel(panel, name, methods[name][1])
        panel.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]))  # north, -z, is up
    figure.suptitle(env, fontsize=10)
    figure.savefig(path, dpi=140)
    return path


def _panel(panel: Any, name: str, record: Mapping[str, Any]) -> None:
    coverage, task = record["notes"]["coverage"], record["notes"].get("wise")
    way = np.array(coverage["path"], float)
    panel.scatter(way[:, 0], way[:, 1], c=np.arange(len(way)), cmap="jet", s=2, linewidths=0)
    panel.plot(*way[0], "k*", markersize=9)
    said = f"{coverage['final']:.0%} seen, {record['steps']:,} ticks"
    if task is not None:
        said = f"{'all done' if record['success'] else 'not done'}, {record['steps']:,} ticks"
        for row in task["done"]:
            if row["tick"] is not None:
                colour = COLOURS.get(row["target"], "#555555")
                panel.plot(row["x"], row["z"], "o", markersize=8, markerfacecolor=colour, markeredgecolor="black")
                panel.annotate(
                    f"{row['target']} {row['tick']}", (row["x"], row["z"]), (4, 4), textcoords="offset points", fontsize=6
                )
        for event in task["events"]:
            panel.plot(event["x"], event["z"], "x", color="black", markersize=6)
    panel.set_title(f"{name}: {said}", fontsize=8)
    panel.set(aspect="equal", xticks=[], yticks=[])


def extent(records: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the square that holds all ways: one map, so one scale for all panels."""
    ways = [record["notes"]["coverage"]["path"] for record in records]
    ways += [[(event["x"], event["z"]) for event in record["notes"].get("wise", {}).get("events", ())] for record in records]
    places = np.array([place for way in ways for place in way], float)
    middle, half = (places.min(0) + places.max(0)) / 2, np.ptp(places, axis=0).max() / 2 + 4
    return middle - half, middle + half


def graphs(root: Path, out: Path) -> list[Path]:
    """Pictures of the graphs that runs saved."""
    made = []
    for file in sorted(root.rglob("memory/*/graph.json")):
        run = file.parents[2]
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        picture = out / f"wise-graph-{manifest['env']}-{manifest['paradigm']}-{file.parent.name}.png"
        draw(load(file), picture)
        made.append(picture)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="a run folder, or a folder above run folders")
    parser.add_argument("--out", type=Path, default=Path("outputs/tables"))
    parser.add_argument("--seed", type=int, default=0, help="which episode")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    made = [
        trajectories(env, methods, args.out / f"wise-trajectories-{env}.png")
        for env, methods in sorted(episodes(args.runs, args.seed).items())
    ]
    made += graphs(args.runs, args.out)
    for file in made:
        print(file)
    if not made:
        print(f"No WISE runs with an episode of seed {args.seed} below {args.runs}.", file=sys.stderr)
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
