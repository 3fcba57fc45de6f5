import asyncio
import time

import pytest
from wise_helpers import ScriptedVision, record, said

from agentexp.errors import FatalError, ModelError, UserError
from agentexp.wise.core import Record
from agentexp.wise.vlm.worker import VisionWorker


def keyframes(count: int) -> list[Record]:
    return [record(i, x=i) for i in range(count)]


def test_batches_of_sixteen_and_a_flush_after_500_ticks() -> None:
    async def run() -> None:
        model = ScriptedVision()
        worker = VisionWorker(model)
        for one in keyframes(40):
            worker.submit(one, one.tick)
        assert worker.poll(40) == []  # nothing runs before the loop gets a turn
        await asyncio.sleep(0.01)
        assert model.batches == [16, 16]
        assert [len(answer.keyframes) for answer in worker.poll(41)] == [16, 16]
        assert worker.poll(32 + 499) == [] and model.batches == [16, 16]
        worker.poll(32 + 500)
        await asyncio.sleep(0.01)
        assert model.batches == [16, 16, 8]
        assert len(worker.poll(600)) == 1
        counts = worker.statistics()
        assert (counts["keyframes"], counts["requests"], counts["answers"], counts["failures"]) == (40, 3, 3, 0)

    asyncio.run(run())


def test_a_flush_by_the_clock() -> None:
    async def run() -> None:
        model = ScriptedVision()
        worker = VisionWorker(model, flush_seconds=0.02)
        worker.submit(record(0), 0)
        worker.poll(1)
        await asyncio.sleep(0.03)
        worker.poll(2)
        await asyncio.sleep(0.01)
        assert model.batches == [1]

    asyncio.run(run())


def test_the_control_loop_never_waits() -> None:
    async def run() -> None:
        worker = VisionWorker(ScriptedVision(delay=300), batch=2, settle_seconds=0.05)
        begin = time.monotonic()
        for one in keyframes(40):
            worker.submit(one, one.tick)
            assert worker.poll(one.tick) == []
            await asyncio.sleep(0)
        assert time.monotonic() - begin < 50
        assert await worker.settle(40) == []
        assert worker.statistics()["failed_timeout"] == 20
        assert sum(failure["keyframes"] for failure in worker.failures) == 40

    asyncio.run(run())


def test_slow_answers_are_given_up_and_the_rest_goes_on() -> None:
    async def run() -> None:
        model = ScriptedVision(delay=5)
        worker = VisionWorker(model, batch=1, timeout=0.05)
        worker.submit(record(0), 0)
        await asyncio.sleep(0.15)
        assert worker.poll(1) == []
        assert worker.failures == [{"tick": 0, "keyframes": 1, "error": "no reply within 0.05 s"}]
        assert model.open == 0
        model.delay = 0
        worker.submit(record(1), 2)
        await asyncio.sleep(0.02)
        assert len(worker.poll(3)) == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (ModelError("the connection failed"), "error"),
        (ModelError("malformed: two replies in a row were unusable"), "malformed"),
        ({"no": "frames"}, "malformed"),
        ({"frames": "none"}, "malformed"),
        ([1, 2], "malformed"),
    ],
)
def test_dead_endpoints_and_nonsense_are_counted_and_the_run_goes_on(script: object, kind: str) -> None:
    async def run() -> None:
        model = ScriptedVision(script)
        worker = VisionWorker(model, batch=4)
        for one in keyframes(8):
            worker.submit(one, one.tick)
            await asyncio.sleep(0)
        assert await worker.settle(8) == []
        counts = worker.statistics()
        assert (counts["requests"], counts["failures"], counts[f"failed_{kind}"]) == (2, 2, 2)
        model.script = None
        worker.submit(record(9), 9)
        assert len(await worker.settle(9)) == 1

    asyncio.run(run())


@pytest.mark.parametrize("error", [FatalError("wrong key"), ZeroDivisionError("a bug")])
def test_what_must_stop_the_run_does(error: BaseException) -> None:
    async def run() -> None:
        worker = VisionWorker(ScriptedVision(error), batch=1)
        worker.submit(record(0), 0)
        await asyncio.sleep(0.01)
        with pytest.raises(type(error)):
            worker.poll(1)
        worker.close()

    asyncio.run(run())


def test_latency_in_ticks_holds_answers_back_and_pace_waits_for_them() -> None:
    async def run() -> None:
        worker = VisionWorker(ScriptedVision(delay=0.05), batch=1, latency_ticks=240)
        worker.submit(record(0), 100)
        await asyncio.sleep(0.1)
        assert worker.poll(339) == []
        worker.submit(record(1), 300)
        await worker.pace(339)
        assert len(worker.poll(340)) == 1
        assert worker.poll(539) == []
        await worker.pace(540)  # not there by the clock, but due by the world's
        assert len(worker.poll(540)) == 1

    asyncio.run(run())


def test_settling_sends_what_is_left_and_ignores_latency() -> None:
    async def run() -> None:
        worker = VisionWorker(ScriptedVision(delay=0.02), latency_ticks=10_000)
        for one in keyframes(3):
            worker.submit(one, one.tick)
        (answer,) = await worker.settle(3)
        assert len(answer.keyframes) == 3
        assert await worker.settle(3) == []

    asyncio.run(run())


def test_models_that_answer_at_once_need_no_event_loop_and_are_shown_each_keyframe() -> None:
    class Now(ScriptedVision):
        def __init__(self) -> None:
            super().__init__()
            self.noted: list[int] = []

        def note(self, one: Record) -> None:
            self.noted.append(one.id)

        def label_now(self, keyframes: list[Record]) -> dict:
            return {"frames": [said(one.tick, "cow") for one in keyframes]}

    model = Now()
    worker = VisionWorker(model, batch=2, latency_ticks=5)
    for one in keyframes(2):
        worker.submit(one, 1)
    assert model.noted == [0, 1]
    assert worker.poll(5) == [] and len(worker.poll(6)) == 1


def test_an_episode_of_its_own() -> None:
    class Bound(ScriptedVision):
        def bind(self, world: object) -> str:
            return f"bound to {world}"

    worker = VisionWorker(Bound(), batch=3, latency_ticks=7)
    other = worker.fresh("world")
    assert other.model == "bound to world"
    assert (other.batch, other.latency_ticks, other.timeout) == (3, 7, worker.timeout)


def test_settings_out_of_range_are_the_users_errors() -> None:
    with pytest.raises(UserError, match=r"vlm\.batch"):
        VisionWorker(ScriptedVision(), batch=0)
