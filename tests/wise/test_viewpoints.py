import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reports"))

from report_kit import load

from agentexp.cli import main
from agentexp.errors import UserError
from agentexp.reports.wise_measures import view
from agentexp.wise.core import Record
from agentexp.wise.pond_env import PondViews
from agentexp.wise.viewpoints import _RULES, NAMES_OF_VIEWS, PondTest, ViewResult, _find, _pixels, _Scene, _without_water
from agentexp.wise.vlm.simulated import SimulatedVision
from agentexp.wise.worlds.sim.materials import WATER
from agentexp.wise.worlds.sim.world import SimWorld


class Blue:
    """Finds a picture by its share of blue pixels; a text is one axis."""

    dimension = 2

    def picture(self, image: np.ndarray) -> np.ndarray:
        rgb = image.astype(int)
        blue = ((rgb[..., 2] - rgb[..., 0] > 40) & (rgb[..., 2] - rgb[..., 1] > 25))[image.shape[0] // 2 :].mean()
        return np.array([np.sqrt(blue), np.sqrt(1 - blue)], np.float32)

    def text(self, text: str) -> np.ndarray:
        return np.array([1, 0], np.float32) if "water" in text else np.array([0, 0], np.float32)

    def threshold(self, text: str) -> float:
        return 0.3


class Always:
    """A vision model that sees water everywhere."""

    async def label(self, keyframes: Sequence[Record]) -> dict[str, object]:
        facts = [{"source": "water", "relation": "CAN_OBTAIN", "target": "water bucket"}]
        return {"frames": [{"timestep": r.tick, "entities": ["pond"], "affordances": facts} for r in keyframes]}


def world() -> SimWorld:
    return SimWorld(terrain={"ponds": 1, "forests": 3})


def scene(seed: int, vision: object = None) -> list[ViewResult]:
    test = PondTest(world=world(), encoder=Blue(), vision=vision)  # type: ignore[arg-type]
    return asyncio.run(test.scene(seed))


def test_views_are_what_their_rules_say() -> None:
    made = world()
    for seed in range(2):
        place = _Scene(seed, made.size, made.recipe, made.camera)
        rng = np.random.default_rng(seed)
        for rule in _RULES:
            pose = _find(place, rule, rng)
            if pose is None:
                continue
            pixels, visible = place.visible(pose)
            assert pixels > 0 and rule.lost[0] <= 1 - visible <= rule.lost[1]
            # The shore is nowhere nearer by more than its raggedness, and the bearing points at the pond but for the turn.
            assert rule.shore[0] - 4 <= place.shore(pose) <= rule.shore[1] + 0.3
            twin = _without_water(place, pose, rng)
            assert twin is not None and _pixels(place.shown(twin)[1]) == 0 and twin[:3] == pose[:3]


def test_without_what_stands_on_it_the_ground_and_the_pond_are_the_same() -> None:
    made = world()
    place = _Scene(4, made.size, made.recipe, made.camera)
    assert np.array_equal(place.terrain.ground, place._bare.ground)
    assert np.array_equal(place.terrain.material == WATER, place._bare.material == WATER)
    assert place.terrain.trees and not place._bare.trees


def test_equal_seeds_give_equal_results_and_methods_share_views() -> None:
    assert scene(1) == scene(1)
    sure, usual = scene(1, Always()), scene(1)
    assert [(r.view, r.pixels, r.features) for r in sure] == [(r.view, r.pixels, r.features) for r in usual]
    assert all(r.labels and r.labels_false for r in sure)  # whoever sees water everywhere raises false alarms
    assert not any(r.labels_false for r in usual)


def test_more_pixels_are_named_more_often() -> None:
    found = [result for seed in range(4) for result in scene(seed, SimulatedVision(false_names=0.0))]
    large = [r.labels for r in found if r.pixels >= 40]
    small = [r.labels for r in found if r.pixels <= 6]
    assert np.mean(large) > 0.95 and np.mean(small) < np.mean(large)


def test_settings_that_cannot_be() -> None:
    with pytest.raises(UserError, match="ponds"):
        PondTest(world=SimWorld(terrain={"ponds": 0}), encoder=Blue())

    class Unsure(Blue):
        threshold = None  # type: ignore[assignment]

    encoder = Unsure()
    encoder.threshold = lambda text: None  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(UserError, match="no threshold"):
        PondTest(world=world(), encoder=encoder)


def test_one_seed_is_one_task() -> None:
    env = PondViews(world(), Blue(), SimulatedVision())
    (first, *_) = env.tasks("scenes")
    env.reset(first)
    record = env.play()
    assert list(record["views"]) == list(NAMES_OF_VIEWS)
    env.close()
    env.close()
    assert env.step("look").error and env.name == "viewpoints-sim-128-64x32"


def test_measures_count_views() -> None:
    views = {"near": {"labels": True}, "far": {"labels": False}, "hidden": None}
    record = {"notes": {"viewpoints": {"views": views}}}
    assert view("labels")(record, None) == (1.0, 2.0)
    assert view("labels")(record, "far") == (0.0, 1.0)
    assert view("labels")(record, "hidden") is None
    assert view("labels")({"notes": {}}, None) is None


def test_the_preset_fills_table_7(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main(
            [
                "wise-run",
                "-m",
                f"output_root={tmp_path}",
                "workers=1",
                "progress=off",
                "+experiment=wise_table7_small",
                "seeds=2",
            ]
        )
    assert not end.value.code
    small, _ = load("wise-table7", tmp_path).panels
    rows = dict(small.rows)
    features, labels = rows["features (MineCLIP in the paper)"], rows["labels (GPT-4o in the paper)"]
    assert features[-1].published == 33.3 and labels[-1].published == 83.3
    assert features[0].measured is not None and labels[-1].n == features[-1].n > 6
    assert rows["pixels of water, mean (ours)"][0].measured > rows["pixels of water, mean (ours)"][2].measured


def test_the_viewpoint_task_has_no_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["wise-run", "task=viewpoints", "+task.views=7", f"output_root={tmp_path}"])
    assert "has none" in capsys.readouterr().err
