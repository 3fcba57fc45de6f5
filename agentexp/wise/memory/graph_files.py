"""The graph as files: JSON (to load again), GraphML (for Gephi, yEd, Cytoscape), and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.graph import CO_OCCURS, AffordanceGraph

_COLOURS = {"entity": "#4c78a8", "resource": "#f58518", "action": "#e45756", "environment": "#72b7b2"}


def save(graph: AffordanceGraph, path: Path) -> None:
    """Write JSON (node-link form), with what is needed to load it again."""
    import networkx

    data = {
        "knowledge": graph.knowledge.version,
        "merge_radius": graph.merge_radius,
        "graph": networkx.node_link_data(graph.graph, edges="edges"),
    }
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(path: Path) -> AffordanceGraph:
    """Read what `save` wrote.

    Raises:
        UserError: the file is none of ours.
    """
    import networkx

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        loaded = AffordanceGraph(KnowledgeBase(data["knowledge"]), data["merge_radius"])
        loaded.adopt(networkx.node_link_graph(data["graph"], edges="edges"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no affordance graph written by agentexp ({type(error).__name__}: {error}).") from error
    return loaded


def save_graphml(graph: AffordanceGraph, path: Path) -> None:
    """Write GraphML."""
    import networkx

    networkx.write_graphml(graph.graph, path, named_key_ids=True)


def draw(graph: AffordanceGraph, path: Path, size: float = 7.0) -> None:
    """Draw instances at their places, resources and actions in a column beside the map; `path` ends in .png, .svg or .pdf.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("Pictures of the graph need `pip install 'agentexp[figures]'`.") from error
    places = positions(graph)
    figure = Figure(figsize=(size * 1.3, size), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for source, target, key in graph.graph.edges(keys=True):
        together = key == CO_OCCURS
        (x0, z0), (x1, z1) = places[source], places[target]
        colour, style = ("#bbbbbb", ":") if together else ("#555555", "-")
        axes.plot([x0, x1], [z0, z1], color=colour, linestyle=style, linewidth=0.6, zorder=1)
    groups: dict[str, list[str]] = {}
    for node, data in graph.graph.nodes(data=True):
        kind = "resource" if data["kind"] == "entity" and "tick" not in data else data["kind"]
        groups.setdefault(kind, []).append(node)
    for kind, nodes in sorted(groups.items()):
        xs, zs = zip(*(places[node] for node in nodes), strict=True)
        axes.scatter(xs, zs, s=36, color=_COLOURS[kind], label=kind, zorder=2)
    for node, (x, z) in places.items():
        axes.annotate(graph.graph.nodes[node]["name"], (x, z), (3, 3), textcoords="offset points", fontsize=6)
    axes.set(xlabel="x (blocks)", ylabel="z (blocks)", aspect="equal")
    axes.invert_yaxis()  # north, -z, is up
    if groups:
        axes.legend(loc="lower left", fontsize=7)
    figure.savefig(path)


def positions(graph: AffordanceGraph) -> dict[str, tuple[float, float]]:
    """Where `draw` puts each node: (x, z)."""
    nodes: dict[str, dict[str, Any]] = dict(graph.graph.nodes(data=True))
    placed = {node: (data["x"], data["z"]) for node, data in nodes.items() if "x" in data}
    xs, zs = [p[0] for p in placed.values()] or [0.0], [p[1] for p in placed.values()] or [0.0]
    span = max(max(xs) - min(xs), max(zs) - min(zs), 10.0)
    for column, kind in enumerate(("entity", "action")):
        others = sorted(node for node, data in nodes.items() if data["kind"] == kind and node not in placed)
        for i, node in enumerate(others):
            placed[node] = (max(xs) + span * (0.2 + 0.2 * column), min(zs) + span * (i + 0.5) / max(len(others), 1))
    return placed
