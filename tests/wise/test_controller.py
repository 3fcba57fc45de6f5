import numpy as np
import pytest

from agentexp.errors import UserError
from agentexp.wise.controller import SKILLS, ScriptedController
from agentexp.wise.core import Controller, Frame, Pose, Subtask
from agentexp.wise.encoders import ConceptEncoder
from agentexp.wise.eyes import Eyes
from agentexp.wise.worlds.sim.photos import FIRST_SEED, photos
from agentexp.wise.worlds.sim.world import SimWorld

EYES = Eyes()


def begin(world: SimWorld, seed: int, x: float, z: float, far: float) -> tuple[Frame, ScriptedController]:
    """The agent `far` blocks from a place that it can see from there, looking that way within 30 degrees."""
    rng = np.random.default_rng(seed)
    for angle in rng.uniform(0, 2 * np.pi, 12):
        at = x + far * np.cos(angle), z + far * np.sin(angle)
        yaw = float(np.degrees(np.arctan2(at[0] - x, z - at[1])) + rng.uniform(-30, 30))
        world.stand(at[0], at[1], yaw, 8.0)
        if world.body.pose.distance(at[0], at[1]) < 1.5:
            break
    controller = ScriptedController(eyes=EYES)
    controller.reset(world.size, world.origin)
    return world._frame(None), controller


def obtains(world: SimWorld, frame: Frame, controller: ScriptedController, target: str, ticks: int) -> bool:
    task = Subtask(f"obtain {target}", target)
    before = frame.inventory.get(target, 0)
    for _ in range(ticks):
        frame = world.act(controller.execute(frame, task))
        if frame.inventory.get(target, 0) > before:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("target", ["water_bucket", "log", "beef", "wool", "sand"])
def test_it_obtains_what_is_near_on_nine_of_ten_maps(target: str) -> None:
    got = []
    for seed in range(10):
        world = SimWorld(spawn="random")
        world.reset(seed)
        truth = world.truth()
        far = 7.0
        if target == "water_bucket":
            x, z, radius = truth["ponds"][0]
            far = radius + 4
        elif target == "log":
            x, z, radius = truth["forests"][0]
            far = radius - 2
        elif target == "sand":
            cells = np.argwhere(truth["material"] == 3)
            x, z = cells[len(cells) // 2]
        else:
            name = {"beef": "cow", "wool": "sheep"}[target]
            world.command("spawn", name=name, x=64, z=64)
            x, z = next((t["x"], t["z"]) for t in reversed(world.truth()["things"]) if t["name"] == name)
        frame, controller = begin(world, seed, x, z, far)
        got.append(obtains(world, frame, controller, target, 800))
    assert sum(got) >= 9, got


def test_it_walks_to_places_over_hills_and_around_what_blocks() -> None:
    arrived = 0
    for seed in range(8):
        world = SimWorld(picture_every=0)
        frame = world.reset(seed)
        controller = ScriptedController(eyes=EYES)
        controller.reset(world.size, world.origin)
        passable = world.truth()["passable"]
        rng = np.random.default_rng(seed)
        cells = np.argwhere(passable)
        x, z = cells[rng.integers(len(cells))] + 0.5
        away = frame.pose.distance(x, z)
        for _ in range(int(away / 0.188 * 1.7) + 60):
            frame = world.act(controller.navigate(frame, float(x), float(z)))
            if frame.pose.distance(x, z) < 0.5:
                arrived += 1
                break
    assert arrived >= 7


def test_protocol_and_what_it_cannot_do() -> None:
    controller = ScriptedController(eyes=EYES)
    as_protocol: Controller = controller
    assert as_protocol is controller
    controller.reset(64, (0, 0))
    with pytest.raises(UserError, match="diamond"):
        controller.execute(Frame(0, Pose(5, 64, 5)), Subtask("obtain diamond", "diamond"))
    with pytest.raises(UserError, match="no file"):
        Eyes(path="none.npz")
    with pytest.raises(UserError, match="do not know"):
        EYES.find(np.zeros((32, 64, 3), np.uint8), "dragon")
    assert {skill.looks_for for skill in SKILLS.values()} <= set(EYES.names)


def test_a_picture_is_all_it_looks_at() -> None:
    """Equal frames get equal controls, whatever world is behind them."""
    world = SimWorld()
    frames = [world.reset(3)]
    first, second = (ScriptedController(eyes=EYES) for _ in range(2))
    for controller in (first, second):
        controller.reset(world.size, world.origin)
    task = Subtask("obtain log", "log")
    said = []
    for _ in range(60):
        said.append(first.execute(frames[-1], task))
        frames.append(world.act(said[-1]))
    assert said == [second.execute(frame, task) for frame in frames[:-1]]


def test_eyes_and_encoder_recognise_what_they_did_not_learn_from() -> None:
    encoder = ConceptEncoder(path="sim.npz")
    names = EYES.names
    right = total = hits = said = shown = 0
    for photo in photos(FIRST_SEED + 70_000, 60):
        labels = photo.labels(names)
        right += int((EYES.classify(photo.image) == labels).sum())
        total += labels.size
        # Sand, of which random pictures show more than of water.
        found = float(encoder.picture(photo.image) @ encoder.text("near sand")) >= encoder.threshold("near sand")
        true = photo.pixels.get("sand", 0) >= 20
        hits, said, shown = hits + (found and true), said + found, shown + true
    assert right / total > 0.9
    assert shown >= 3 and hits / shown > 0.6 and hits / max(1, said) > 0.6


def test_things_further_away_are_recognised_less() -> None:
    encoder = ConceptEncoder(path="sim.npz")
    k = encoder.fitted.concepts.index("cow")
    scores: dict[float, list[float]] = {4.0: [], 25.0: []}
    for seed in range(12):
        world = SimWorld(map_seed=FIRST_SEED + 80_000, picture_every=0, sheep=0, pigs=0)
        world.reset(seed)
        world.command("spawn", name="cow", x=64, z=64)
        at = next(t for t in world.truth()["things"] if t["name"] == "cow")
        for far, found in scores.items():
            world.stand(at["x"], at["z"] - far, 0.0, 8.0)
            found.append(float(encoder.scores(world.picture())[k]))
    assert np.mean(scores[4.0]) > np.mean(scores[25.0]) + 0.2
