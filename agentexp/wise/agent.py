"""The agent: algorithm 1 of paper 004 over the protocols of `core.py`. A method is a choice of parts; the loop is the same.

Each tick: observe -> memory -> (when due) candidates and scheduler -> mode -> one control. Four modes, after MrSteve:

    explore   no candidate for the subtask that is to be done: the explorer's goal
    navigate  to where the chosen candidate was seen from, until within 3 blocks
    adjust    turn the camera the way it was seen, to within 5 degrees
    execute   the controller's skill for the subtask, on what is in the frame

What is in view now is executed at once. The scheduler may preempt every `schedule_every` ticks; the target of one subtask is
kept for `requery_every` ticks (MrSteve's 600). A target that leads to nothing is forgotten and another one is chosen. Nothing
here waits for a vision model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from agentexp.errors import UserError
from agentexp.wise.core import Control, Controller, Explorer, Frame, Opportunity, Scheduler
from agentexp.wise.explore.clock import Stopwatch, spread
from agentexp.wise.explore.escape import Escape
from agentexp.wise.parts import Begins, EpisodeMemory, Looks, Renews
from agentexp.wise.scheduler import FixedOrder, preempts
from agentexp.wise.tasks import Progress

Mode = Literal["explore", "navigate", "adjust", "execute"]
MODES: tuple[Mode, ...] = ("explore", "navigate", "adjust", "execute")
ADJUST_TICKS = 60
ROLLBACK_TICKS = 600
PROGRESS = 5.0  # blocks


class WiseAgent:
    """Chooses one control per tick.

    Args:
        memory: what it remembers.
        explorer: where it looks for what it does not know.
        scheduler: which subtask is next.
        controller: how the body does it.
        explore_query_every: ticks between two queries of the memory while exploring; 1 in MrSteve.
        schedule_every: ticks between two decisions of an opportunistic scheduler while it is busy.
        requery_every: ticks after which the target of the present subtask is chosen anew; 600 in MrSteve.
        margin: by how much another subtask's priority must be higher to preempt; 0 is the paper's rule.
        arrive: blocks at which a place counts as reached; 3 in MrSteve.
        aim: degrees within which the camera looks as it did; 5 in MrSteve.
        execute_ticks: longest time on one target without progress: a thing more, or five blocks on the way (30 s and five
            blocks are the paper's measure of standing still); in all at most three times as long.
        lost_ticks: a target is given up when the controller (if it can tell) has not recognised it for so long; twice the
            time of a full turn.
        patience: a place is given up after so many times the ticks of walking straight there, and 200.
        speed: blocks that the body walks in one tick.
        recall_radius: for a subtask that means a certain place, sightings within so many blocks of it count.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(
        self,
        *,
        memory: EpisodeMemory,
        explorer: Explorer,
        scheduler: Scheduler,
        controller: Controller,
        explore_query_every: int = 1,
        schedule_every: int = 5,
        requery_every: int = 600,
        margin: float = 0.0,
        arrive: float = 3.0,
        aim: float = 5.0,
        execute_ticks: int = 600,
        lost_ticks: int = 80,
        patience: float = 3.0,
        speed: float = 0.215,
        recall_radius: float = 16.0,
    ) -> None:
        if min(explore_query_every, schedule_every, requery_every, execute_ticks, lost_ticks) < 1:
            raise UserError(
                "agent.explore_query_every, .schedule_every, .requery_every, .execute_ticks and .lost_ticks must be at least 1."
            )
        if min(arrive, aim, patience, speed, recall_radius) <= 0 or margin < 0:
            raise UserError(
                "agent.arrive, .aim, .patience, .speed and .recall_radius must be above 0, agent.margin not negative."
            )
        self._parts = (memory, scheduler)
        self.explorer, self.controller = explorer, controller
        self.explore_query_every, self.schedule_every, self.requery_every = explore_query_every, schedule_every, requery_every
        self.margin, self.arrive, self.aim = margin, arrive, aim
        self.execute_ticks, self.lost_ticks = execute_ticks, lost_ticks
        self.patience, self.speed, self.recall_radius = patience, speed, recall_radius
        self.memory, self.scheduler = memory, scheduler

    def reset(self, world: Any, seed: int) -> None:
        """Begin an episode in a `VoxelWorld`.

        Raises:
            UserError: the memory's vision model cannot work in this world.
        """
        memory, scheduler = self._parts
        self.memory = memory.fresh(world)
        self.scheduler = scheduler.fresh() if isinstance(scheduler, Renews) else scheduler
        self._bounds = (world.size, world.origin, seed)
        self.explorer.reset(*self._bounds)
        if isinstance(self.controller, Begins):
            self.controller.reset(world.size, world.origin)
        self._eyes: Looks | None = self.controller if isinstance(self.controller, Looks) else None
        self.mode: Mode = "explore"
        self.active: int | None = None
        self.target: Opportunity | None = None
        self._escape = Escape()
        self._since = self._asked = self._until = self._quiet_until = 0
        self._held = self._latest = 0
        self._anchor = (0.0, 0.0)
        self._executing = False
        self.counts: Counter[str] = Counter()
        self.mode_ticks: Counter[Mode] = Counter()
        self.subtask_ticks: Counter[int] = Counter()
        self._steps, self._choices = Stopwatch(), Stopwatch(every=1)

    # ------------------------------------------------------------------------------------------------------- the loop

    def decide(self, frame: Frame, progress: Progress) -> Control:
        """One pass of algorithm 1."""
        with self._steps.timed():
            self.memory.observe(frame)
            self.explorer.observe(frame)
            if self.active is not None and self.active not in progress.pending():
                self._release("done")
            if self._due(frame):
                with self._choices.timed():
                    self._choose(frame, progress)
            control = self._act(frame, progress)
        self.mode_ticks[self.mode] += 1
        if self.active is not None:
            self.subtask_ticks[self.active] += 1
        return control

    def _due(self, frame: Frame) -> bool:
        if self.active is None:
            return True
        if self.target is None:
            return frame.tick - self._asked >= self.explore_query_every and frame.tick >= self._quiet_until
        if frame.tick - self._since >= self.requery_every and self.mode != "execute":
            return True
        return not isinstance(self.scheduler, FixedOrder) and frame.tick - self._asked >= self.schedule_every

    def _choose(self, frame: Frame, progress: Progress) -> None:
        """Candidates, priorities, and what follows from them: another subtask, another target, or going on."""
        self._asked = frame.tick
        numbers = progress.pending()
        subtasks = [progress.task.subtasks[i] for i in numbers]
        fixed = isinstance(self.scheduler, FixedOrder)
        offers = {k: self._offers(i, frame, progress) for k, i in enumerate(numbers) if k == 0 or not fixed}
        order = self.scheduler.order(subtasks, offers, frame)
        active = numbers.index(self.active) if self.active is not None else None
        if not preempts(order, active, self.margin):
            self._go_on(offers.get(active, []) if active is not None else [], frame)
            return
        best = order[0][0]
        if self.active is not None:
            self.counts["preemptions"] += 1
        self.active, self.target = numbers[best], None
        self._go_on(offers.get(best, []), frame)

    def _offers(self, i: int, frame: Frame, progress: Progress) -> Sequence[Opportunity]:
        """C_i, with the target that is being pursued, which stays a candidate until it is given up or reached."""
        subtask = progress.task.subtasks[i]
        self.counts["queries"] += 1
        if subtask.place is None:
            found = self.memory.candidates(subtask, frame)
        else:
            # What, where and when: sightings of it near where it was collected, asked for from there.
            there = progress.done[subtask.place].pose
            near = frame.pose.distance(there.x, there.z) <= self.recall_radius
            found = self.memory.candidates(subtask, frame if near else replace(frame, pose=there))
            found = [one for one in found if there.distance(one.x, one.z) <= self.recall_radius]
        if i != self.active or self.target is None:
            return found
        if self.mode == "execute":
            # What is being worked on is here, wherever it was seen from; or walking up to it would be a cost of navigation.
            return [replace(self.target, x=frame.pose.x, z=frame.pose.z), *found]
        return found or [self.target]

    def _go_on(self, offers: Sequence[Opportunity], frame: Frame) -> None:
        """Keep the target, or take the best offer where there is none, it is old, or the thing is in view now."""
        if frame.tick < self._quiet_until:
            offers = []
        if not offers:
            if self.target is None:
                self._enter("explore", frame)
            return
        best = offers[0]
        old = frame.tick - self._since >= self.requery_every and self.mode != "execute"
        sighted = best.in_view and self.mode in ("navigate", "adjust")
        if self.target is not None and not old and not sighted:
            return
        self.target, self._since = best, frame.tick
        self.counts["targets"] += 1
        if best.in_view:
            self._enter("execute", frame)
        else:
            self._enter("navigate", frame)

    def _enter(self, mode: Mode, frame: Frame) -> None:
        if mode == self.mode and mode == "explore":
            return
        self.mode = mode
        if mode == "navigate":
            assert self.target is not None
            distance = frame.pose.distance(self.target.x, self.target.z)
            self._until = frame.tick + int(self.patience * distance / self.speed) + 200
            self._escape.restart()
        elif mode == "adjust":
            self._until = frame.tick + ADJUST_TICKS
        elif mode == "execute":
            self._until = frame.tick + self.execute_ticks
            self._latest = frame.tick + 3 * self.execute_ticks
            self._held, self._anchor = sum(frame.inventory.values()), (frame.pose.x, frame.pose.z)
            self._executing = False  # until then the controller's report is about something else

    # -------------------------------------------------------------------------------------------------------- the modes

    def _act(self, frame: Frame, progress: Progress) -> Control:
        if self.mode == "navigate":
            return self._navigate(frame, progress)
        if self.mode == "adjust":
            return self._adjust(frame, progress)
        if self.mode == "execute":
            return self._execute(frame, progress)
        return self._explore(frame)

    def _explore(self, frame: Frame) -> Control:
        goal = self.explorer.goal(frame)
        if goal is None:
            # Everything has been seen and what is wanted was not: things move and appear, so look again.
            self.counts["passes"] += 1
            self.explorer.reset(*self._bounds)
            self.explorer.observe(frame)
            goal = self.explorer.goal(frame)
        return Control() if goal is None else self.controller.navigate(frame, goal.x, goal.z)

    def _navigate(self, frame: Frame, progress: Progress) -> Control:
        assert self.target is not None
        self._escape.observe(frame.pose, frame.tick)
        if frame.pose.distance(self.target.x, self.target.z) < self.arrive:
            self._enter("adjust", frame)
            return self._adjust(frame, progress)
        if frame.tick >= self._until or self._escape.stagnant:
            self._stuck(frame)
            return Control()
        return self.controller.navigate(frame, self.target.x, self.target.z)

    def _adjust(self, frame: Frame, progress: Progress) -> Control:
        assert self.target is not None
        seen = self.target.pose
        if seen is not None and frame.tick < self._until:
            turn = (seen.yaw - frame.pose.yaw + 180) % 360 - 180
            look = seen.pitch - frame.pose.pitch
            if abs(turn) > self.aim or abs(look) > self.aim:
                return Control(turn=turn, look=look)
        self._enter("execute", frame)
        return self._execute(frame, progress)

    def _execute(self, frame: Frame, progress: Progress) -> Control:
        assert self.active is not None
        held = sum(frame.inventory.values())
        came = frame.pose.distance(*self._anchor) >= PROGRESS
        if held > self._held or came:
            self._held, self._anchor = held, (frame.pose.x, frame.pose.z)
            self._until = min(frame.tick + self.execute_ticks, self._latest)
        lost = self._eyes is not None and self._executing and self._eyes.lost >= self.lost_ticks
        if frame.tick >= self._until or lost:
            self.counts["lost" if lost else "in_vain"] += 1
            self._give_up(frame)
            return Control()
        self._executing = True
        return self.controller.execute(frame, progress.task.subtasks[self.active])

    # -------------------------------------------------------------------------------------------------------- giving up

    def _give_up(self, frame: Frame) -> None:
        """It is not there: forget the candidate, and choose anew at the next tick."""
        assert self.target is not None
        self.memory.forget(self.target)
        self._release("forgotten")

    def _stuck(self, frame: Frame) -> None:
        """The escape heuristics of appendix A.1, on the way to a remembered place."""
        assert self.target is not None
        stage = self._escape.failed(self.target.x, self.target.z)
        self.counts[f"escape_{stage}"] += 1
        if stage == "replan":
            if isinstance(self.controller, Begins):
                self.controller.reset(*self._bounds[:2])
            self._enter("navigate", frame)
            return
        self._give_up(frame)
        if stage == "rollback":
            self._quiet_until = frame.tick + ROLLBACK_TICKS  # the explorer's own rollback takes it to a key node

    def _release(self, why: str) -> None:
        self.counts[why] += 1
        self.active = self.target = None
        self.mode = "explore"

    # ------------------------------------------------------------------------------------------------------- statistics

    def statistics(self) -> dict[str, Any]:
        """Shares of the modes, ticks by subtask, counts, and times of a step and of a choice."""
        total = max(1, sum(self.mode_ticks.values()))
        return {
            "mode_share": {mode: self.mode_ticks[mode] / total for mode in MODES},
            "subtask_ticks": {str(i): ticks for i, ticks in sorted(self.subtask_ticks.items())},
            "counts": dict(self.counts),
            "step_ms": spread(self._steps.seconds),
            "step_cpu_ms": spread(self._steps.cpu),
            "choice_ms": spread(self._choices.seconds),
            "choice_cpu_ms": spread(self._choices.cpu),
        }
