"""Tasks, official variation ranges and splits of ScienceWorld 1.2.3, frozen: the engine tells the ranges only after a load.

The papers' id lists are not public: the splits are rules over the official ranges (a test compares these with the engine).

* `test`: the first 10 official test variations of each of 23 tasks (all but 5-1, 5-2, 9-*, 10-*), round-robin, the first 200.
* `dev`: the same over the official dev variations (189 exist, all are taken).
* `train`: the official train variations of the same tasks, round-robin, the first 2,120 (AgentGym's size).
* `eto211`: first 10 test variations of 24 tasks; gives the 211 of ETO. Which task is the 24th is not public: 5-1 here.
* `agentboard90`: first 3 test variations of all 30 tasks; gives the 90 of AgentBoard (its own ids are not public).

Officially there are 3,592 train, 1,796 dev and 1,819 test variations; any of them can be run by its id.
Round-robin order makes a short prefix (`env.limit`) cover all tasks.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal, NamedTuple

from agentexp.errors import UserError

Part = Literal["train", "dev", "test"]


class TaskInfo(NamedTuple):
    """One task. Official train variations are [0, dev), dev [dev, test), test [test, end)."""

    number: str
    name: str
    dev: int
    test: int
    end: int

    def variations(self, part: Part) -> range:
        """Official variations of a part."""
        return {"train": range(self.dev), "dev": range(self.dev, self.test), "test": range(self.test, self.end)}[part]

    @property
    def electrical(self) -> bool:
        """Needs `connect`, so the engine refuses the noElectricalAction simplification."""
        return "power-component" in self.name or "conductivity" in self.name


TASKS = (
    TaskInfo("1-1", "boil", 14, 21, 30),
    TaskInfo("1-2", "melt", 14, 21, 30),
    TaskInfo("1-3", "freeze", 14, 21, 30),
    TaskInfo("1-4", "change-the-state-of-matter-of", 14, 21, 30),
    TaskInfo("2-1", "use-thermometer", 270, 405, 540),
    TaskInfo("2-2", "measure-melting-point-known-substance", 218, 327, 436),
    TaskInfo("2-3", "measure-melting-point-unknown-substance", 150, 225, 300),
    TaskInfo("3-1", "power-component", 10, 15, 20),
    TaskInfo("3-2", "power-component-renewable-vs-nonrenewable-energy", 10, 15, 20),
    TaskInfo("3-3", "test-conductivity", 450, 675, 900),
    TaskInfo("3-4", "test-conductivity-of-unknown-substances", 300, 450, 600),
    TaskInfo("4-1", "find-living-thing", 150, 225, 300),
    TaskInfo("4-2", "find-non-living-thing", 150, 225, 300),
    TaskInfo("4-3", "find-plant", 150, 225, 300),
    TaskInfo("4-4", "find-animal", 150, 225, 300),
    TaskInfo("5-1", "grow-plant", 62, 93, 126),
    TaskInfo("5-2", "grow-fruit", 62, 93, 126),
    TaskInfo("6-1", "chemistry-mix", 16, 24, 32),
    TaskInfo("6-2", "chemistry-mix-paint-secondary-color", 18, 27, 36),
    TaskInfo("6-3", "chemistry-mix-paint-tertiary-color", 18, 27, 36),
    TaskInfo("7-1", "lifespan-longest-lived", 62, 93, 125),
    TaskInfo("7-2", "lifespan-shortest-lived", 62, 93, 125),
    TaskInfo("7-3", "lifespan-longest-lived-then-shortest-lived", 62, 93, 125),
    TaskInfo("8-1", "identify-life-stages-1", 6, 9, 14),
    TaskInfo("8-2", "identify-life-stages-2", 4, 6, 10),
    TaskInfo("9-1", "inclined-plane-determine-angle", 84, 126, 168),
    TaskInfo("9-2", "inclined-plane-friction-named-surfaces", 692, 1038, 1386),
    TaskInfo("9-3", "inclined-plane-friction-unnamed-surfaces", 80, 120, 162),
    TaskInfo("10-1", "mendelian-genetics-known-plant", 60, 90, 120),
    TaskInfo("10-2", "mendelian-genetics-unknown-plant", 240, 360, 480),
)
BY_NAME = {task.name: task for task in TASKS}
EXCLUDED = ("5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2")
ALTERNATIVES = ("eto211", "agentboard90")  # other selections of the official test variations
SPLITS = ("train", "dev", "test", *ALTERNATIVES)

SIMPLIFICATIONS = ("teleportAction", "openDoors", "openContainers", "selfWateringFlowerPots", "noElectricalAction")
EASY = ("teleportAction", "openDoors", "selfWateringFlowerPots", "noElectricalAction")  # what "easy" stands for


def split(name: str) -> list[tuple[str, int]]:
    """The (task, variation) pairs of a split in their frozen order. Raises `UserError` for an unknown split."""
    kept = [task for task in TASKS if task.number not in EXCLUDED]
    if name == "test":
        return _round_robin(kept, "test", each=10, most=200)
    if name == "dev":
        return _round_robin(kept, "dev", each=10, most=200)
    if name == "train":
        return _round_robin(kept, "train", most=2120)
    if name == "eto211":
        return _round_robin([task for task in TASKS if task in kept or task.number == "5-1"], "test", each=10)
    if name == "agentboard90":
        return _round_robin(list(TASKS), "test", each=3)
    raise UserError(f"env.split={name} does not exist in scienceworld; choose one of {', '.join(SPLITS)}.")


def _round_robin(tasks: list[TaskInfo], part: Part, each: int | None = None, most: int | None = None) -> list[tuple[str, int]]:
    queues = [(task.name, list(islice(task.variations(part), each))) for task in tasks]
    longest = max(len(queue) for _, queue in queues)
    return [(name, queue[i]) for i in range(longest) for name, queue in queues if i < len(queue)][:most]


def read_id(task_id: str) -> tuple[TaskInfo, int]:
    """Task and variation of an id like "boil/21".

    The engine answers an unknown variation with text instead of an error, so both are checked here.
    """
    name, _, number = task_id.rpartition("/")
    info = BY_NAME.get(name)
    if info is None or not number.isdecimal() or int(number) >= info.end:
        most = f"; {name} has variations 0 to {info.end - 1}" if info else f"; tasks are {', '.join(BY_NAME)}"
        raise UserError(f"scienceworld has no task {task_id!r}: ids are task/variation{most}.")
    return info, int(number)


def simplification_set(text: str) -> frozenset[str]:
    """The simplifications that a comma-separated request means. Raises `UserError` for unknown ones.

    "easy" is spelled out because the engine, given "easy" together with another name, silently applies nothing.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in names if part not in (*SIMPLIFICATIONS, "easy")]
    if unknown:
        choices = ", ".join((*SIMPLIFICATIONS, "easy"))
        raise UserError(f"env.simplifications={text}: {unknown[0]} does not exist; choose from {choices}, separated by commas.")
    chosen = {part for part in names if part != "easy"}
    return frozenset(chosen | set(EASY) if "easy" in names else chosen)
