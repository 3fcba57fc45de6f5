"""Table 7 of paper 004 (appendix B.2): one pond, six views of it, and what memory finds again. Simulated pictures.

Each view is stored as a frame of its own; then "water" is asked for. Feature retrieval finds the frame if its picture is
similar enough to the text (eq. 4 with the encoder's own threshold), semantic retrieval if the vision model named the water and
the name survived the graph's filters. The paper has one scene; here every seed is one. The six views were fixed before any
was measured:

1. near: 4 blocks from the shore, the pond in the middle
2. middle: 12 blocks
3. far: 22 blocks
4. edge: 8 blocks, turned away by 25 to 45 degrees so that 30 to 70 per cent are outside of the picture
5. hidden: 4 to 12 blocks, trees or rocks hide 30 to 80 per cent of what would be seen
6. far and hidden: 12 to 24 blocks, the same

Bearings differ from view to view and from seed to seed. As a control each view has a twin from the same place that shows no
water: a method that always finds water would have six of six, and six false ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import Encoder, Pose, Record, Subtask, VisionModel
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.grounding import by_keyframe, ground
from agentexp.wise.memory.text import TextQuery, query_text
from agentexp.wise.navigate import bearing
from agentexp.wise.vlm.simulated import Sighting, SimulatedVision
from agentexp.wise.worlds.sim.body import EYES
from agentexp.wise.worlds.sim.camera import Camera
from agentexp.wise.worlds.sim.materials import NAMES, WATER
from agentexp.wise.worlds.sim.rays import Eye
from agentexp.wise.worlds.sim.terrain import Recipe, Terrain
from agentexp.wise.worlds.sim.world import SimWorld

NAMES_OF_VIEWS = ("near", "middle", "far", "edge", "hidden", "far and hidden")
TASK = Subtask("obtain water bucket", "water_bucket")
LIKE_STORED = 0.85  # theta_c: from here on two pictures count as the same
_TRIES = 400
_TICK = 5000  # of the pictures' noise


class _Rule(NamedTuple):
    """One view: blocks from the shore, degrees turned away, and the share that is not to be seen; each from, to."""

    shore: tuple[float, float]
    away: tuple[float, float] = (0.0, 0.0)
    lost: tuple[float, float] = (0.0, 0.1)  # what nothing is to hide must not be hidden by chance either


_RULES = (
    _Rule((4, 4)),
    _Rule((12, 12)),
    _Rule((22, 22)),
    _Rule((8, 8), (25, 45), (0.3, 0.7)),
    _Rule((4, 12), lost=(0.3, 0.8)),
    _Rule((12, 24), lost=(0.3, 0.8)),
)


@dataclass(frozen=True, slots=True)
class ViewResult:
    """One view.

    Attributes:
        view: of `NAMES_OF_VIEWS`.
        distance: to the shore, blocks.
        pixels: that show water.
        visible: share of the water's pixels that is left, by things before it and by the picture's edge.
        features: feature retrieval finds it.
        similarity: cosine of picture and text, over the threshold (1 = just found).
        stored: its picture is like that of view 1 (cosine of at least 0.85).
        labels: semantic retrieval finds it.
        features_false, labels_false: the same on the twin without water.
    """

    view: str
    distance: float
    pixels: int
    visible: float
    features: bool
    similarity: float
    stored: bool
    labels: bool
    features_false: bool
    labels_false: bool


class _Scene:
    """The map of one seed, with and without what stands on it."""

    def __init__(self, seed: int, size: int, recipe: Recipe, camera: Camera) -> None:
        pad = int(camera.rays.distance * 1.25) + 4
        self.terrain = Terrain(size, pad, recipe, seed)
        self._bare = Terrain(size, pad, replace(recipe, boulders=0, trees=0), seed)
        self._camera, self._seed = camera, seed
        self.x, self.z, self.radius = self.terrain.ponds[0]

    def place(self, angle: float, shore: float) -> tuple[float, float] | None:
        """A place at a bearing from the pond, that far from its shore; None where no body can be."""
        pad, material = self.terrain.pad, self.terrain.material
        dx, dz = float(np.sin(angle)), float(np.cos(angle))
        reach = 0.0
        while material[int(np.floor(self.x + dx * reach)) + pad, int(np.floor(self.z + dz * reach)) + pad] == WATER:
            reach += 0.25
        x, z = self.x + dx * (reach + shore), self.z + dz * (reach + shore)
        i, j = int(np.floor(x)), int(np.floor(z))
        if not (0 <= i < self.terrain.size and 0 <= j < self.terrain.size) or self.terrain.solid[i + pad, j + pad]:
            return None
        return x, z

    def pose(self, x: float, z: float, away: float) -> Pose:
        """Standing there, looking at the pond's middle, turned away by some degrees."""
        pad = self.terrain.pad
        y = float(self.terrain.ground[int(np.floor(x)) + pad, int(np.floor(z)) + pad])
        pose = Pose(x, y, z)
        return pose._replace(yaw=(bearing(pose, self.x, self.z) + away) % 360)

    def shown(self, pose: Pose, bare: bool = False) -> tuple[NDArray[np.uint8], list[Sighting]]:
        """Picture and what is on it, as the simulated world tells it."""
        eye = Eye(pose.x, pose.z, pose.y + EYES, pose.yaw, pose.pitch)
        view = self._camera.view(eye, self._bare if bare else self.terrain, (), 1.0, _TICK + self._seed)
        found: dict[str, int] = {}
        for code, count in zip(*np.unique(view.shown, return_counts=True), strict=True):
            if int(code) in NAMES:
                found[NAMES[int(code)]] = found.get(NAMES[int(code)], 0) + int(count)
        return view.image, [Sighting(name, count) for name, count in found.items()]

    def shore(self, pose: Pose) -> float:
        """Blocks to the nearest water."""
        cells = np.argwhere(self.terrain.material == WATER) - self.terrain.pad
        inside = np.array([pose.x, pose.z])
        gaps = np.maximum(np.maximum(cells - inside, inside - cells - 1), 0)
        return float(np.hypot(gaps[:, 0], gaps[:, 1]).min())

    def visible(self, pose: Pose) -> tuple[int, float]:
        """Pixels of water in view, and their share of what would be there with nothing before it and the pond in the middle."""
        seen = _pixels(self.shown(pose)[1])
        if not seen:
            return 0, 0.0
        whole = _pixels(self.shown(self.pose(pose.x, pose.z, 0.0), bare=True)[1])
        return seen, min(1.0, seen / whole) if whole else 0.0


def _pixels(sightings: Sequence[Sighting]) -> int:
    return sum(one.pixels for one in sightings if one.name == "water")


class _Said:
    """A witness for the simulated vision model."""

    def __init__(self) -> None:
        self.last: list[Sighting] = []

    def sightings(self) -> list[Sighting]:
        """See `Witness`."""
        return self.last


class PondTest:
    """The measurement of one scene at a time.

    Args:
        world: whose camera, size and recipe of maps are used; with one pond, and something to hide it.
        encoder: pictures and texts; fitted on other maps.
        vision: names what is on the pictures; the simulated one with its default errors, or a real model.
        text_query: "skills" asks for "near water", "raw" for the task's own text.

    Raises:
        UserError: the encoder has no threshold for the text, or the world has no pond.
    """

    def __init__(
        self, *, world: SimWorld, encoder: Encoder, vision: VisionModel | None = None, text_query: TextQuery = "skills"
    ) -> None:
        if world.recipe.ponds < 1:
            raise UserError("world.terrain.ponds is 0; the viewpoint test needs a pond.")
        self.world, self.encoder = world, encoder
        self.vision: VisionModel = vision or SimulatedVision()
        self.knowledge = KnowledgeBase()
        text = query_text(TASK, text_query)
        threshold = getattr(encoder, "threshold", lambda text: None)(text)
        if threshold is None:
            raise UserError(f"The encoder has no threshold for {text!r}; choose text_query=skills or another encoder.")
        self.threshold, self.text = float(threshold), encoder.text(text)

    async def scene(self, seed: int) -> list[ViewResult]:
        """All views of one seed; those that its map does not offer (nothing hides the pond) are left out.

        Raises:
            ModelError: from a real vision model.
        """
        scene = _Scene(seed, self.world.size, self.world.recipe, self.world.camera)
        rng = np.random.default_rng([seed, 7])
        said = _Said()
        bind = getattr(self.vision, "bind", None)
        vision: VisionModel = bind(said) if bind is not None else self.vision
        records: list[Record] = []
        views: list[str] = []
        for number, rule in enumerate(_RULES):
            pose = _find(scene, rule, rng)
            twin = None if pose is None else _without_water(scene, pose, rng)
            if pose is None or twin is None:
                continue
            views.append(NAMES_OF_VIEWS[number])
            for which, one in enumerate((pose, twin)):
                image, said.last = scene.shown(one)
                record = Record(2 * number + which, self.encoder.picture(image), one, 100 * seed + 2 * number + which, image)
                if (note := getattr(vision, "note", None)) is not None:
                    note(record)
                records.append(record)
        named = self._named(await vision.label(records), records) if records else []
        found = [float(record.embedding @ self.text) for record in records]
        results = []
        for k, view in enumerate(views):
            pixels, visible = scene.visible(records[2 * k].pose)
            results.append(
                ViewResult(
                    view=view,
                    distance=round(scene.shore(records[2 * k].pose), 1),
                    pixels=pixels,
                    visible=round(visible, 3),
                    features=found[2 * k] >= self.threshold,
                    similarity=round(found[2 * k] / self.threshold, 3),
                    stored=float(records[2 * k].embedding @ records[0].embedding) >= LIKE_STORED,
                    labels=named[2 * k],
                    features_false=found[2 * k + 1] >= self.threshold,
                    labels_false=named[2 * k + 1],
                )
            )
        return results

    def _named(self, answer: Mapping[str, Any], records: Sequence[Record]) -> list[bool]:
        """For each keyframe, whether the graph would know after it that water is to be had there."""
        wanted = self.knowledge.outcome(TASK.target)
        knows: dict[int, bool] = {}
        for record, content in by_keyframe(answer, records):
            facts = ground(content, record, self.knowledge).affordances
            knows[record.id] = any(fact.target == wanted for fact in facts)
        return [knows.get(record.id, False) for record in records]


def _find(scene: _Scene, rule: _Rule, rng: np.random.Generator) -> Pose | None:
    for _ in range(_TRIES):
        spot = scene.place(rng.uniform(0, 2 * np.pi), rng.uniform(*rule.shore))
        away = float(rng.uniform(*rule.away) * rng.choice((-1, 1)))
        if spot is None:
            continue
        pose = scene.pose(*spot, away)
        pixels, visible = scene.visible(pose)
        if pixels and rule.lost[0] <= 1 - visible <= rule.lost[1]:
            return pose
    return None


def _without_water(scene: _Scene, pose: Pose, rng: np.random.Generator) -> Pose | None:
    for _ in range(60):
        turned = pose._replace(yaw=(pose.yaw + rng.uniform(100, 260)) % 360)
        if not _pixels(scene.shown(turned)[1]):
            return turned
    return None
