import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agentexp.errors import FatalError, ModelError
from agentexp.models.limiter import Limiter, Retry, Transient, retry_after

# Times are upper bounds of waits that a loaded machine may make longer; what must not be waited for is ten times longer.
QUICK = Retry(max_retries=3, request_timeout=20.0, total_timeout=40.0, base=0.01, ceiling=0.05)


def script(*outcomes: object) -> tuple[list[float], object]:
    """An attempt that raises or returns the outcomes in turn, and the times of its calls."""
    times: list[float] = []

    async def attempt() -> object:
        times.append(time.monotonic())
        outcome = outcomes[min(len(times), len(outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return times, attempt


def test_counts_retries_and_returns_the_result() -> None:
    times, attempt = script(Transient("x"), Transient("x"), "done")
    assert asyncio.run(QUICK.run(attempt, Limiter(1))) == ("done", 2)  # type: ignore[arg-type]
    assert len(times) == 3


def test_gives_up_after_max_retries_and_names_the_setting() -> None:
    times, attempt = script(Transient("the server is down"))
    with pytest.raises(ModelError, match=r"4 times \(model.max_retries=3\): the server is down"):
        asyncio.run(QUICK.run(attempt, Limiter(1)))  # type: ignore[arg-type]
    assert len(times) == 4


def test_other_errors_pass_at_once() -> None:
    times, attempt = script(FatalError("no key"))
    with pytest.raises(FatalError):
        asyncio.run(QUICK.run(attempt, Limiter(1)))  # type: ignore[arg-type]
    assert len(times) == 1


def test_waits_as_long_as_the_server_asks() -> None:
    times, attempt = script(Transient("x", wait=0.15), "done")
    asyncio.run(QUICK.run(attempt, Limiter(1)))  # type: ignore[arg-type]
    assert times[1] - times[0] >= 0.15


def test_does_not_wait_past_the_cap() -> None:
    _, attempt = script(Transient("slower", wait=400))
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"model.total_timeout=40 s: slower"):
        asyncio.run(QUICK.run(attempt, Limiter(1)))  # type: ignore[arg-type]
    assert time.monotonic() - started < 40


def test_one_cap_for_all_attempts_of_a_silent_server() -> None:
    async def never() -> None:
        await asyncio.sleep(600)

    started = time.monotonic()
    with pytest.raises(ModelError, match="request_timeout"):
        asyncio.run(Retry(1000, 0.1, 0.5, 0.01, 0.02).run(never, Limiter(1)))
    assert 0.3 < time.monotonic() - started < 50


def test_a_pause_holds_all_calls_back_but_not_for_ever() -> None:
    async def run() -> float:
        limiter = Limiter(8)
        limiter.hold(0.1)
        started = time.monotonic()

        async def attempt() -> float:
            return time.monotonic() - started

        waits = await asyncio.gather(*(QUICK.run(attempt, limiter) for _ in range(8)))
        return min(wait for wait, _ in waits)

    assert 0.1 <= asyncio.run(run()) < 20


def test_slots_bound_the_calls_in_flight() -> None:
    async def run() -> int:
        limiter, flying, peak = Limiter(3), 0, 0

        async def attempt() -> None:
            nonlocal flying, peak
            flying += 1
            peak = max(peak, flying)
            await asyncio.sleep(0.01)
            flying -= 1

        await asyncio.gather(*(QUICK.run(attempt, limiter) for _ in range(12)))
        return peak

    assert asyncio.run(run()) == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "150", "retry-after": "9"}, 0.15),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert 17 < (retry_after({"retry-after": when}) or 0) <= 20


OVERLOADED = Transient("too many", overload=True)
ONCE = Retry(max_retries=0, request_timeout=20.0, total_timeout=40.0, base=0.01, ceiling=0.05)


def test_an_overload_halves_the_calls_in_flight_once_per_round() -> None:
    async def run() -> tuple[int, int]:
        limiter = Limiter(8)
        barrier = asyncio.Barrier(8)

        async def refused() -> None:
            await barrier.wait()  # all eight are in flight when the first is refused
            raise OVERLOADED

        await asyncio.gather(*(ONCE.run(refused, limiter) for _ in range(8)), return_exceptions=True)
        first = limiter.allowed
        with pytest.raises(ModelError):
            await ONCE.run(refused_at_once, limiter)
        return first, limiter.allowed

    async def refused_at_once() -> None:
        raise OVERLOADED

    assert asyncio.run(run()) == (4, 1)  # the last one flew alone: half of what was in flight, at least one


def test_replies_raise_the_number_again_up_to_the_setting() -> None:
    async def run() -> list[int]:
        limiter = Limiter(6)
        for _ in range(6):
            await limiter.__aenter__()
        limiter.overloaded(time.monotonic())
        seen = [limiter.allowed]
        for _ in range(60):
            limiter.answered()
            seen.append(limiter.allowed)
        return seen

    seen = asyncio.run(run())
    assert seen[0] == 3
    assert seen == sorted(seen)
    assert seen[3] == 3  # three calls allowed: it takes three replies and a bit for one more
    assert seen[4] == 4
    assert seen[-1] == 6


def test_new_calls_wait_while_the_number_is_reduced_and_none_is_lost() -> None:
    async def run() -> tuple[int, int, int]:
        limiter, flying, peak, refusals = Limiter(8), 0, 0, 0

        async def attempt() -> None:
            nonlocal flying, peak, refusals
            flying += 1
            try:
                await asyncio.sleep(0.002)
                if flying > 3:  # the server takes three at once
                    refusals += 1
                    raise OVERLOADED
                peak = max(peak, flying)
            finally:
                flying -= 1

        patient = Retry(max_retries=200, request_timeout=20.0, total_timeout=60.0, base=0.001, ceiling=0.01)
        results = await asyncio.gather(*(patient.run(attempt, limiter) for _ in range(300)))
        return len(results), refusals, limiter._flying

    done, refusals, flying = asyncio.run(run())
    assert (done, flying) == (300, 0)
    assert 0 < refusals < 300  # without adapting nearly every attempt of the eight would be refused


def test_a_cancelled_call_gives_its_slot_back() -> None:
    async def run() -> int:
        limiter = Limiter(1)
        async with limiter:
            waiting = [asyncio.ensure_future(limiter.__aenter__()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.gather(waiting[0], return_exceptions=True)
        await asyncio.wait_for(waiting[1], 5)  # the slot went to the next in line
        waiting[1].result()
        await limiter.__aexit__(None, None, None)
        await asyncio.wait_for(waiting[2], 5)
        await limiter.__aexit__(None, None, None)
        return limiter._flying

    assert asyncio.run(run()) == 0
