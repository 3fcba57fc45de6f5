"""Quick navigation for the scripted agents: how many moves each pose is away from where one wants to be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from agentexp.envs.babyai.protocol import options
from agentexp.envs.babyai.scene import DROP, LOCKED, PICKUP, VECTORS, Cell, Scene, opens

_TURNS = 4


def distances(scene: Scene, wanted: Callable[[Cell, int], bool]) -> dict[tuple[Cell, int], int]:
    """Moves from each pose that can be reached now to the nearest wanted one; a shut door counts like an open one."""
    poses = {(cell, facing) for cell in _walkable(scene) for facing in range(_TURNS)}
    goals = [pose for pose in sorted(poses) if wanted(*pose)]
    found = dict.fromkeys(goals, 0)
    queue = deque(goals)
    while queue:
        (x, y), facing = pose = queue.popleft()
        dx, dy = VECTORS[facing]
        for before in (((x, y), (facing + 1) % 4), ((x, y), (facing - 1) % 4), ((x - dx, y - dy), facing)):
            if before in poses and before not in found:
                found[before] = found[pose] + 1
                queue.append(before)
    return found


def reach(scene: Scene, wanted: Callable[[Cell, int], bool]) -> list[str]:
    """The action, without picking up or putting down, that ends nearest to a wanted pose; none if all end farther than here."""
    field = distances(scene, wanted)
    best, chosen = field.get((scene.cell, scene.facing)), list[str]()
    if best is None:
        return []
    best = best or 2 * len(field)  # wanted already, and not satisfied: anything else that is wanted
    for action, moves in options(scene).moves.items():
        if {PICKUP, DROP}.intersection(moves):
            continue
        end = scene
        for move in moves:
            after = end.after(move)
            if after is end:
                break
            end = after
        left = field.get((end.cell, end.facing))
        if left is not None and left < best and (end.cell, end.facing) != (scene.cell, scene.facing):
            best, chosen = left, [action]
    return chosen


def _walkable(scene: Scene) -> set[Cell]:
    found, front = {scene.cell}, [scene.cell]
    while front:
        x, y = front.pop()
        for cell in ((x + dx, y + dy) for dx, dy in VECTORS):
            thing = scene.things.get(cell)
            shut = thing is not None and (thing.kind != "door" or (thing.state == LOCKED and not opens(scene.carrying, thing)))
            if cell not in found and not shut and not scene.is_wall(cell):
                found.add(cell)
                front.append(cell)
    return found
