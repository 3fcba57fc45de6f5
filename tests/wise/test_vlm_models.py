import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wise_helpers import ScriptedVision, picture, record, said

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # fake_server.py
from fake_server import FakeServer

from agentexp.errors import ModelError, UserError
from agentexp.models.openai_api import OpenAIModel
from agentexp.wise.core import Pose, Record
from agentexp.wise.vlm.openai_vision import OpenAIVision, data_url
from agentexp.wise.vlm.replay import ReplayVision, fingerprint
from agentexp.wise.vlm.simulated import Sighting, SimulatedVision
from agentexp.wise.vlm.worker import VisionWorker

ANSWER = {"frames": [said(0, "cow", cow="beef"), said(1, "tree")]}

# ------------------------------------------------------------------------------------------------------------- over an API


def ask(*script: str | dict[str, Any], frames: int = 2, **given: Any) -> tuple[Mapping[str, Any], FakeServer, OpenAIVision]:
    async def run() -> tuple[Mapping[str, Any], FakeServer, OpenAIVision]:
        async with FakeServer(list(script)) as server:
            settings = {"max_retries": 0, "price_in": 2.5, "price_out": 10.0, **given}
            vision = OpenAIVision(model=OpenAIModel(name="fake", base_url=server.url, **settings))
            try:
                return await vision.label([record(i) for i in range(frames)]), server, vision
            finally:
                await vision.close()

    return asyncio.run(run())


def ok(content: object) -> dict[str, Any]:
    return {"do": "ok", "content": content if isinstance(content, str) else json.dumps(content)}


def test_keyframes_go_out_as_pictures_and_labels_come_back() -> None:
    answer, server, vision = ask(ok(ANSWER))
    assert answer == ANSWER
    (request,) = server.requests
    content = request["body"]["messages"][0]["content"] if "body" in request else request["messages"][0]["content"]
    images = [part for part in content if part["type"] == "image_url"]
    texts = " ".join(part["text"] for part in content if part["type"] == "text")
    assert len(images) == 2 and all(i["image_url"]["url"].startswith("data:image/png;base64,") for i in images)
    assert "timestep 0, pose (0.0, 64.0, 0.0, 0.0, 0.0)" in texts and "CAN_SMELT" in texts
    spent = vision.statistics()
    assert spent["vlm_calls"] == 1 and spent["prompt_tokens"] > 0 and spent["cost"] > 0 and spent["repairs"] == 0


def test_json_in_prose_and_with_trailing_commas_is_read() -> None:
    text = "Here you are:\n```json\n" + json.dumps(ANSWER)[:-2] + ",]}\n```"
    answer, _, vision = ask(ok(text))
    assert answer == ANSWER and vision.statistics()["mended"] == 1


def test_malformed_json_is_repaired_once() -> None:
    answer, server, vision = ask(ok("I see a cow."), ok(ANSWER))
    assert answer == ANSWER and len(server.requests) == 2
    assert vision.statistics()["repairs"] == 1 and vision.statistics()["vlm_calls"] == 2


def test_twice_malformed_is_an_error_of_the_batch() -> None:
    with pytest.raises(ModelError, match="malformed"):
        ask(ok("I see a cow."), ok('{"entities": []}'))


def test_a_dead_endpoint_costs_the_batch_and_not_the_run() -> None:
    async def run() -> dict[str, Any]:
        vision = OpenAIVision(model=OpenAIModel(name="fake", base_url="http://127.0.0.1:9/v1", max_retries=0))
        worker = VisionWorker(vision, batch=2)
        for i in range(4):
            worker.submit(record(i), i)
        assert await worker.settle(4) == []
        await vision.close()
        return worker.statistics()

    counts = asyncio.run(run())
    assert counts["failures"] == counts["failed_error"] == 2


def test_pictures_are_scaled() -> None:
    import base64
    import io

    from PIL import Image

    vision = OpenAIVision(model=OpenAIModel(name="fake", base_url="http://127.0.0.1:9/v1"), scale=4, max_side=32)
    sized = vision._sized(np.zeros((10, 40, 3), np.uint8))
    assert sized.shape == (8, 32, 3)
    image = Image.open(io.BytesIO(base64.b64decode(data_url(picture("cow")).partition(",")[2])))
    assert np.array_equal(np.asarray(image), picture("cow"))


def test_counts_are_those_of_an_episode() -> None:
    vision = OpenAIVision(model=OpenAIModel(name="fake", base_url="http://127.0.0.1:9/v1"), scale=2)
    other = vision.bind()
    assert other.model is vision.model and other.scale == 2 and other.counts is not vision.counts


# ------------------------------------------------------------------------------------------------------------- simulated


class World:
    def __init__(self, *things: Sighting) -> None:
        self.things = things

    def sightings(self) -> tuple[Sighting, ...]:
        return self.things


def named(vision: SimulatedVision, count: int = 400) -> list[list[str]]:
    frames = [Record(i, np.zeros(1, np.float32), Pose(i, 64, 0), i) for i in range(count)]
    for one in frames:
        vision.note(one)
    return [item["entities"] for item in vision.label_now(frames)["frames"]]


@pytest.mark.parametrize(("pixels", "visible", "share"), [(9, 1.0, 0.5), (9, 0.25, 0.25), (256, 1.0, 1.0), (1, 1.0, 0.0)])
def test_recall_is_a_sigmoid_of_log_pixels(pixels: int, visible: float, share: float) -> None:
    vision = SimulatedVision(false_names=0).bind(World(Sighting("cow", pixels, visible)))
    assert vision.chance(Sighting("cow", pixels, visible)) == pytest.approx(share, abs=0.03)
    assert np.mean([names == ["cow"] for names in named(vision)]) == pytest.approx(share, abs=0.09)


def test_false_names_come_at_their_rate_and_are_of_the_same_kind() -> None:
    vision = SimulatedVision(false_names=0.3).bind(World(Sighting("cow", 1000)))
    names = [one for (one,) in named(vision)]
    assert np.mean([name != "cow" for name in names]) == pytest.approx(0.3, abs=0.08)
    assert {vision.knowledge.kind(name) for name in names} == {"entity"}
    ufo = SimulatedVision(false_names=1, confusions=["trees"]).bind(World(Sighting("cow", 1000)))
    assert named(ufo, 3) == [["log"]] * 3


def test_changing_one_rate_leaves_the_other_errors_alone() -> None:
    things = World(Sighting("cow", 9), Sighting("log", 12), Sighting("water", 7))
    exact, wrong = (named(SimulatedVision(false_names=rate).bind(things), 100) for rate in (0.0, 1.0))
    assert [len(names) for names in exact] == [len(names) for names in wrong] or sum(map(len, wrong)) >= 0.9 * sum(
        map(len, exact)
    )


def test_answers_have_the_papers_form_and_do_not_depend_on_batches() -> None:
    vision = SimulatedVision().bind(World(Sighting("cow", 1000), Sighting("water", 1000)))
    frames = [record(i, tick=i) for i in range(4)]
    for one in frames:
        vision.note(one)
    together = vision.label_now(frames)["frames"]
    for one in frames:
        vision.note(one)
    apart = [vision.label_now([one])["frames"][0] for one in frames]
    assert together == apart
    assert together[0]["timestep"] == 0 and together[0]["co_occurrences"] == [["cow", "water"]]
    assert {"source": "cow", "relation": "CAN_OBTAIN", "target": "beef"} in together[0]["affordances"]


def test_it_can_fail_as_an_endpoint_does() -> None:
    vision = SimulatedVision(fail_every=2).bind(World())
    worker = VisionWorker(vision, batch=1)
    for i in range(4):
        worker.submit(record(i), i)
    assert len(worker.poll(5)) == 2 and len(worker.failures) == 2


def test_it_needs_a_world_that_can_tell() -> None:
    with pytest.raises(UserError, match="world=sim"):
        SimulatedVision().bind(object())
    with pytest.raises(UserError, match="bind"):
        SimulatedVision().note(record(0))


# --------------------------------------------------------------------------------------------------------------- replayed


def test_recorded_answers_are_replayed_by_the_frames_hash(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "answers.jsonl")
    model = ScriptedVision()
    recorder = ReplayVision(path=path, model=model)
    frames = [record(i) for i in range(3)]
    first = asyncio.run(recorder.label(frames))
    assert model.batches == [3] and asyncio.run(recorder.label(frames)) == first and model.batches == [3]
    player = ReplayVision(path=path).bind()
    moved = Record(99, frames[1].embedding, Pose(7, 7, 7), 555, frames[1].picture)
    assert asyncio.run(player.label([moved]))["frames"] == [{**first["frames"][1], "timestep": 555}]
    assert player.statistics() == {"frames_replayed": 1, "frames_asked": 0}
    with pytest.raises(ModelError, match="1 of 2 frames"):
        asyncio.run(player.label([frames[0], record(50)]))


def test_only_new_frames_are_asked_for(tmp_path: Path) -> None:
    model = ScriptedVision()
    vision = ReplayVision(path=str(tmp_path / "a.jsonl"), model=model)
    asyncio.run(vision.label([record(0), record(1)]))
    answer = asyncio.run(vision.label([record(0), record(1), record(2)]))
    assert model.batches == [2, 1] and len(answer["frames"]) == 3


def test_files_that_are_missing_or_damaged_are_the_users_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"vision\.path"):
        ReplayVision(path=str(tmp_path / "none.jsonl"))
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="Line 1"):
        ReplayVision(path=str(tmp_path / "bad.jsonl"))


def test_hashes_tell_pictures_apart() -> None:
    flat = np.zeros((2, 8, 3), np.uint8)
    assert fingerprint(flat) != fingerprint(flat.reshape(8, 2, 3))
    assert fingerprint(flat) == fingerprint(np.zeros((2, 8, 6), np.uint8)[:, :, ::2])
