"""Pictures of explorations: where the agent went and what it saw (figure 5), and coverage over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import MissingDependency
from agentexp.wise.explore_task import Exploration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("Pictures need matplotlib: pip install 'agentexp[figures]'.") from error
    return Figure(figsize=(width, height), layout="constrained")


def trajectories(episodes: Mapping[str, Exploration], path: Path, solid: Mapping[str, Any] | None = None) -> Path:
    """One map per episode: seen ground white, unseen grey, obstacles black, the way from blue (start) to red (end).

    Args:
        episodes: by the title of their panel.
        path: of the picture; its suffix decides the format.
        solid: bool maps of obstacles by title, of shape (size, size); by default those that the scorer saw, if any.

    Returns:
        The path.

    Raises:
        MissingDependency: without matplotlib.
    """
    figure = _figure(4.2 * len(episodes), 4.6)
    axes = figure.subplots(1, len(episodes), squeeze=False)[0]
    for panel, (title, episode) in zip(axes, episodes.items(), strict=True):
        x, z = episode.seen.origin
        extent = (x, x + episode.size, z + episode.size, z)
        panel.imshow(episode.seen.seen.T, cmap="gray", vmin=-1, vmax=1, extent=extent, interpolation="nearest")
        wall = (solid or {}).get(title, episode.seen.blocked)
        if wall.any():
            panel.imshow(wall.T, cmap="binary", alpha=wall.T.astype(float), extent=extent, interpolation="nearest")
        stride = max(1, len(episode.path) // 4000)
        way = episode.path[::stride]
        panel.scatter(way[:, 0], way[:, 1], c=range(len(way)), cmap="jet", s=2, linewidths=0)
        panel.plot(*episode.path[0], "k*", markersize=9)
        panel.set_title(f"{title}: {episode.coverage.final:.1%} after {episode.steps:,} steps", fontsize=9)
        panel.set_xticks([])
        panel.set_yticks([])
    figure.savefig(path, dpi=140)
    return path


def curves(groups: Mapping[str, Sequence[Exploration]], path: Path) -> Path:
    """Share seen over steps, one line per method, with the range over its seeds.

    Raises:
        MissingDependency: without matplotlib.
    """
    import numpy as np

    figure = _figure(6, 4)
    panel = figure.subplots()
    for name, episodes in groups.items():
        length = max(len(episode.curve) for episode in episodes)
        shares = np.stack([np.pad(e.curve, (0, length - len(e.curve)), "edge") / e.total for e in episodes])
        (line,) = panel.plot(shares.mean(0), label=name)
        panel.fill_between(range(length), shares.min(0), shares.max(0), color=line.get_color(), alpha=0.2, linewidth=0)
    panel.set_xlabel("steps")
    panel.set_ylabel("share of the map seen")
    panel.set_ylim(0, 1)
    panel.legend()
    figure.savefig(path, dpi=140)
    return path
