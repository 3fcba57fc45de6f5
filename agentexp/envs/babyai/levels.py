"""The instances: 28 of minigrid's BabyAI levels, each with seeds.

Test: AgentBoard's 112, seeds 1234 to 1237 (numbers 1-21, 24, 25, 27-29, 31 and 32 of its table of 40 levels). Its
GoToObjS6-v0 is called -v1 since minigrid 3.2, and its instances differ from the older ones. Train (seeds 0-24) and dev
(seeds 700-703) are ours; no initial state occurs in two splits. Seeds come first in the order, so the first 28 tasks of a
split are 28 levels. All 112 of test and of dev and all 698 of train can be solved.
"""

from __future__ import annotations

from agentexp.core import Task
from agentexp.errors import UserError

NAME = "babyai"
SEEDS = {"train": range(25), "dev": range(700, 704), "test": range(1234, 1238)}
GROUPS = {
    "goto": (
        "GoToRedBallGrey",
        "GoToRedBall",
        "GoToRedBallNoDists",
        "GoToObjS6",
        "GoToLocalS8N7",
        "GoToObjMazeS7",
        "GoToImpUnlock",
        "GoToSeqS5R2",
        "GoToRedBlueBall",
        "GoToDoor",
        "GoToObjDoor",
    ),
    "open": ("Open", "OpenRedDoor", "OpenDoorLoc", "OpenRedBlueDoorsDebug", "OpenDoorsOrderN4Debug"),
    "pickup": ("Pickup", "UnblockPickup", "PickupLoc", "PickupDistDebug", "PickupAbove"),
    "unlock": ("Unlock", "UnlockLocalDist", "UnlockPickupDist", "BlockedUnlockPickup", "UnlockToUnlock"),
    "find": ("FindObjS7", "KeyCorridorS6R3"),
}
KIND = {level: kind for kind, levels in GROUPS.items() for level in levels}
LEVELS = tuple(KIND)
UNSOLVABLE = frozenset({"GoToImpUnlock/6", "GoToImpUnlock/14"})  # minigrid 3.2.0 put the key into the room that it unlocks


def tasks(split: str) -> list[Task]:
    """Instances of a split; the id is "level/seed". Raises `UserError` for an unknown split."""
    if split not in SEEDS:
        raise UserError(f"env.split={split} does not exist in babyai; choose one of {', '.join(SEEDS)}.")
    return [
        Task(f"{level}/{seed}", NAME, split, kind=KIND[level], spec={"level": level, "seed": seed})
        for seed in SEEDS[split]
        for level in LEVELS
        if f"{level}/{seed}" not in UNSOLVABLE
    ]


def registered(level: str) -> str:
    """The name under which minigrid 3.2 registers a level."""
    return f"BabyAI-{level}-{'v1' if level == 'GoToObjS6' else 'v0'}"


def read_id(task: Task) -> tuple[str, int]:
    """Level and seed of a task. Raises `UserError` for anything that `tasks` does not list."""
    level, _, seed = task.id.partition("/")
    if level not in KIND or not seed.isdigit():
        raise UserError(f"babyai has no task {task.id!r}; ids come from `tasks`, for example GoToRedBall/1234.")
    return level, int(seed)
