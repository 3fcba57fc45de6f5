import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentexp.core import Task
from agentexp.envs.pool import EnvPool
from agentexp.envs.toy import ToyRooms
from agentexp.errors import EngineError, EngineTimeout, MissingDependency, UserError
from agentexp.models.scripted import ScriptedModel
from agentexp.rollout import Budget, Limits, Rollout, run_episode

WORLDS = f"{__name__.rpartition('.')[0]}.pool_worlds".lstrip(".")
TASK = Task("test-000", "toy", "test")


def pool(
    size: int = 1, *, step: float = 20.0, reset: float = 60.0, pool_kw: dict[str, Any] | None = None, **kwargs: Any
) -> EnvPool:
    return EnvPool({"_target_": f"{WORLDS}.Troubled", **kwargs}, size, step, reset, **(pool_kw or {}))


def run(make: EnvPool, body: Callable[[EnvPool], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with make as pool:
            return await body(pool)

    result = asyncio.run(main())
    assert psutil.Process().children(recursive=True) == []
    return result


def gone(pid: int, within: float = 60.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


async def walk(pool: EnvPool, steps: int = 5) -> list[str]:
    async with pool.lease() as world:
        first = await world.reset(TASK)
        return [first.observation, *[(await world.step("look" if i % 2 else "go east")).observation for i in range(steps)]]


def test_same_as_direct() -> None:
    env = ToyRooms()
    expected = [env.reset(TASK).observation] + [env.step("look" if i % 2 else "go east").observation for i in range(5)]
    assert run(pool(), walk) == expected
    assert run(pool(pool_kw={"in_process": True}), walk) == expected


def test_worker_is_kept_and_lives_elsewhere() -> None:
    async def body(pool: EnvPool) -> list[int]:
        pids = []
        for _ in range(3):
            async with pool.lease() as world:
                pids.append(await world.call("process"))
        return pids

    made = pool(size=3)
    pids = run(made, body)
    assert len(set(pids)) == 1 and pids[0] != os.getpid()
    assert made.stats.started == 1


def test_recycling() -> None:
    async def body(pool: EnvPool) -> list[int]:
        pids = []
        for _ in range(5):
            async with pool.lease() as world:
                pids.append(await world.call("process"))
        return pids

    made = pool(pool_kw={"max_episodes_per_worker": 2})
    pids = run(made, body)
    assert [pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3], pids[3] == pids[4]] == [True, False, True, False]
    assert made.stats.recycled == 2


def test_large_messages_both_ways() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            assert len(await world.call("ping", 5_000_000)) == 5_000_000
            assert await world.call("pong", b"y" * 5_000_000) == 5_000_000
            assert await world.call("ping", 1) == b"x"

    run(pool(), body)


@pytest.mark.parametrize("trouble", ["hang", "spin"])
def test_hang_is_killed_and_replaced(trouble: str, tmp_path: Path) -> None:
    async def body(pool: EnvPool) -> tuple[str, list[str]]:
        with pytest.raises(EngineTimeout) as caught:
            await walk(pool)
        return str(caught.value), await walk(pool)

    made = pool(step=2.0, trouble=trouble, once=str(tmp_path / "once"))
    message, observations = run(made, body)
    assert "step_timeout=2" in message and "in misbehave" in message  # says which limit, and where it hung
    assert len(observations) == 6
    assert (made.stats.started, made.stats.timeouts) == (2, 1)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ("kill", "SIGKILL"),
        ("segfault", "SIGSEGV"),
        ("exit", "exit code 7"),
        ("raise", "KeyError: 'val1'"),
        ("unpicklable", "cannot be pickled"),
    ],
)
def test_death_is_reported_and_replaced(trouble: str, says: str, tmp_path: Path) -> None:
    once = tmp_path / "once"

    async def body(pool: EnvPool) -> str:
        with pytest.raises(EngineError, match="step") as caught:
            await walk(pool)
        assert not isinstance(caught.value, EngineTimeout)
        if trouble != "unpicklable":
            assert len(await walk(pool)) == 6
            assert pool.stats.deaths + pool.stats.failures == 1
        return str(caught.value)

    message = run(pool(trouble=trouble, once=str(once)), body)
    assert says in message
    if trouble == "kill":
        assert "last words" in message


def test_a_failed_engine_answers_no_more() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            await world.reset(TASK)
            for _ in range(2):
                await world.step("look")
            with pytest.raises(EngineError):
                await world.step("look")
            with pytest.raises(EngineError, match="gone"):
                await world.step("look")
        with pytest.raises(EngineError, match="lease has ended"):
            await world.step("look")

    run(pool(trouble="raise"), body)
    run(pool(trouble="raise", pool_kw={"in_process": True}), body)


@pytest.mark.parametrize("in_process", [False, True])
def test_user_errors_keep_their_type(in_process: bool) -> None:
    async def lease_only(pool: EnvPool) -> None:
        async with pool.lease():
            pass

    async def reset(pool: EnvPool) -> None:
        async with pool.lease() as world:
            with pytest.raises(UserError, match="no fly"):
                await world.call("fly")
            with pytest.raises(UserError, match="no _look"):
                await world.call("_look")
            with pytest.raises(EngineError, match="before reset"):
                await world.step("look")
            await world.reset(TASK)

    kw = {"in_process": in_process}
    with pytest.raises(MissingDependency, match="Install the engine"):
        run(pool(trouble="missing", pool_kw=kw), lease_only)
    with pytest.raises(EngineError, match="RuntimeError: cannot start"):
        run(pool(trouble="no start", pool_kw=kw), lease_only)
    with pytest.raises(UserError, match=r"env\.data is wrong"):
        run(pool(trouble="bad data", pool_kw=kw), reset)
    with pytest.raises(UserError, match="it knows: trouble, at"):
        run(pool(truble="x", pool_kw=kw), lease_only)
    for target in ("agentexp.envs.toy.Nope", "agentexp.nope.Toy", "nope"):
        with pytest.raises(UserError, match="_target_"):
            run(EnvPool({"_target_": target}, 1, 1, 60, **kw), lease_only)


def test_slow_start_is_limited() -> None:
    async def body(pool: EnvPool) -> None:
        with pytest.raises(EngineTimeout, match=r"start\(\).*reset_timeout=1"):
            async with pool.lease():
                pass

    run(pool(reset=1.0, trouble="slow start"), body)


def test_noise_does_not_reach_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(run(pool(trouble="noise"), walk)) == 6
    assert capfd.readouterr() == ("", "")


def test_cancelled_call_leaves_no_stale_reply() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await world.call("nap", 0.4)
        async with pool.lease() as world:
            assert await world.call("pong", b"abc") == 3
        assert (pool.stats.cancelled, pool.stats.started) == (1, 2)

    run(pool(), body)


def test_cancellation_while_waiting_for_a_lease_and_while_starting() -> None:
    async def body(pool: EnvPool) -> None:
        tasks = [asyncio.create_task(walk(pool)) for _ in range(3)]
        await asyncio.sleep(0.02)  # one is starting its worker, two wait
        for task in tasks[:2]:
            task.cancel()
        assert len(await tasks[2]) == 6
        assert [task.cancelled() for task in tasks] == [True, True, False]

    run(pool(), body)


def test_one_call_at_a_time() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            first = asyncio.create_task(world.call("nap", 0.2))
            await asyncio.sleep(0.05)
            with pytest.raises(EngineError, match="one at a time"):
                await world.call("process")
            await first
            assert await world.call("process") > 0

    run(pool(), body)


def test_dead_idle_worker_is_replaced_silently() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            os.kill(await world.call("process"), signal.SIGKILL)
            await asyncio.sleep(0.05)
        await walk(pool)
        assert pool.stats.started == 2

    run(pool(), body)


def test_pool_serves_several_loops() -> None:
    made = pool(size=2)

    async def twice() -> None:
        await asyncio.gather(walk(made), walk(made), walk(made))

    asyncio.run(twice())
    asyncio.run(twice())
    assert made.stats.started == 2
    asyncio.run(made.stop())
    assert psutil.Process().children(recursive=True) == []


def test_stop_ends_grandchildren_and_is_quick(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    async def body(pool: EnvPool) -> None:
        await walk(pool)
        async with pool.lease() as world:
            await world.reset(TASK)
            started = time.monotonic()
            await pool.stop()
            assert time.monotonic() - started < 30
            with pytest.raises(EngineError):
                await world.step("look")
        with pytest.raises(EngineError, match="stopped"):
            await walk(pool)

    run(pool(size=2, sleeper=str(pids)), body)
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 2 and all(gone(pid) for pid in numbers)


@pytest.mark.skipif(sys.platform != "linux", reason="finds them in /proc")
@pytest.mark.parametrize("trouble", ["", "hang", "raise", "recycle"])
def test_nothing_in_a_session_of_its_own_stays_behind(trouble: str, tmp_path: Path) -> None:
    """E07: launchers that start their engine in another session, through a process that ends."""
    pids = tmp_path / "pids"

    async def body(pool: EnvPool) -> None:
        try:
            await walk(pool)
        except EngineError:
            assert trouble in ("hang", "raise")

    kept = {"max_episodes_per_worker": 1} if trouble == "recycle" else {}
    run(pool(step=2.0, pool_kw=kept, sleeper=str(pids), apart=True, trouble=trouble.replace("recycle", ""), at=2), body)
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 3 and all(gone(pid) for pid in numbers)


def test_stop_ends_pending_calls() -> None:
    async def body(pool: EnvPool) -> None:
        async def call() -> None:
            async with pool.lease() as world:
                await world.call("nap", 60)

        running, starting = asyncio.create_task(call()), asyncio.create_task(call())
        while not pool.stats.started:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        late = asyncio.create_task(call())
        await asyncio.sleep(0.01)
        await pool.stop()
        async with asyncio.timeout(2):
            results = await asyncio.gather(running, starting, late, return_exceptions=True)
        assert [type(result) for result in results] == [EngineError] * 3
        assert "pool stopped" in str(results[0])

    run(pool(size=3), body)


def test_sigint_of_the_terminal_does_not_reach_workers() -> None:
    async def body(pool: EnvPool) -> None:
        async with pool.lease() as world:
            pid = await world.call("process")
            assert os.getsid(pid) != os.getsid(0) and os.getpgid(pid) == pid
            os.kill(pid, signal.SIGINT)
            await world.reset(TASK)

    run(pool(), body)


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="at least 1"):
        pool(size=0)
    with pytest.raises(UserError, match="above 0"):
        pool(step=0)


PARENT = """
    import asyncio, os, sys
    sys.path[:0] = {path!r}
    from agentexp.core import Task
    from agentexp.envs.pool import EnvPool

    async def main():
        spec = {{"_target_": {target!r}, "sleeper": {pids!r}, "trouble": {trouble!r}, "at": 1}}
        pool = EnvPool(spec, 2, 60, 60)
        async with pool.lease() as a, pool.lease() as b:
            await asyncio.gather(a.reset(Task("t", "toy", "test")), b.reset(Task("t", "toy", "test")))
            if {forked}:
                if os.fork() == 0:  # holds copies of all descriptors and lives on
                    import time; time.sleep(20); os._exit(0)
            print("ready", flush=True)
            await asyncio.gather(a.step("look"), b.step("look"))
            await asyncio.sleep(60)

    asyncio.run(main())
"""


def _heeds_interrupts() -> None:
    """A shell without job control starts background jobs, such as a CI's, with SIGINT ignored; children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("trouble", ["", "spin"])
def test_nothing_outlives_a_killed_parent(how: signal.Signals, trouble: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = [p for p in sys.path if p]
    target = f"{WORLDS}.Troubled"
    script = textwrap.dedent(PARENT).format(path=path, target=target, pids=str(pids), trouble=trouble, forked=False)
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=_heeds_interrupts
    )
    assert parent.stdout is not None
    with parent:
        assert parent.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        parent.send_signal(how)
        assert parent.wait(120) != 0
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 4  # two workers, one grandchild each
    assert all(gone(pid) for pid in numbers)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_worker_dies_with_its_parent_although_a_fork_holds_the_lifeline(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = [p for p in sys.path if p]
    target = f"{WORLDS}.Troubled"
    script = textwrap.dedent(PARENT).format(path=path, target=target, pids=str(pids), trouble="spin", forked=True)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    try:
        assert parent.stdout.readline() == b"ready\n"
        os.kill(parent.pid, signal.SIGKILL)
        numbers = [int(line) for line in pids.read_text().split()]
        assert all(gone(pid) for pid in numbers[0::2])
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        for pid in numbers[1::2]:
            os.kill(pid, signal.SIGKILL)


# ------------------------------------------------------------------------------------------------- whole episodes (E07, S06)


class React:
    name = "react"

    async def __call__(self, ro: Rollout) -> None:
        with ro.phase("acting", ro.budget.total):
            await ro.reset()
            chat = ro.chat("actor")
            while ro.steps_left and not ro.step.done:
                await ro.turn(chat.user(ro.step.observation), "thought_action")
        ro.finish()


async def episodes(pool: EnvPool, tasks: list[Task], policy: str = "oracle") -> dict[str, Any]:
    env, model = ToyRooms(), ScriptedModel(policy=policy)
    done = await asyncio.gather(
        *(run_episode(t, env, pool.lease, {"actor": model}, React(), Budget(0, 20), Limits(attempts=2)) for t in tasks)
    )
    return {
        e.task.key: (e.status, e.end_reason, e.success, e.attempts, [s.action for s in e.trajectory], e.score) for e in done
    }


@pytest.mark.parametrize("policy", ["oracle", "random", "myopic"])
def test_same_results_with_one_and_four_workers(policy: str) -> None:
    tasks = ToyRooms().tasks("test")
    assert len(tasks) == 8
    one = run(pool(size=1), lambda p: episodes(p, tasks, policy))
    four = run(pool(size=4), lambda p: episodes(p, tasks, policy))
    here = run(pool(size=3, pool_kw={"in_process": True}), lambda p: episodes(p, tasks, policy))
    assert one == four == here
    assert len(one) == 8 and all(result[0] == "ok" for result in one.values())


@pytest.mark.parametrize(("trouble", "reason"), [("hang", "env_error"), ("kill", "env_error")])
@pytest.mark.parametrize("for_ever", [False, True])
def test_engine_failure_costs_one_attempt_and_no_other_episode(
    trouble: str, reason: str, for_ever: bool, tmp_path: Path
) -> None:
    tasks = ToyRooms().tasks("test")[:4]
    once = "" if for_ever else str(tmp_path / "once")
    results = run(pool(size=2, step=2.0, trouble=trouble, once=once, at=2), lambda p: episodes(p, tasks))
    if for_ever:
        assert {r[:3] for r in results.values()} == {("error", reason, False)}
    else:
        assert {r[:3] for r in results.values()} == {("ok", "won", True)}
        assert 1 <= sum(r[3] == 2 for r in results.values()) <= 2
