"""One name for what differs in wood or colour only: oak_log, birch_log and log2 are all "log" to a task that wants logs."""

from __future__ import annotations

from functools import cache

_WOODS = ("oak", "spruce", "birch", "jungle", "acacia", "dark_oak", "wooden")
_COLOURS = (
    *("white", "orange", "magenta", "light_blue", "yellow", "lime", "pink", "gray", "light_gray", "silver", "cyan", "purple"),
    *("blue", "brown", "green", "red", "black"),
)
_OF_WOOD = {
    **{kind: kind for kind in ("log", "planks", "leaves", "sapling", "boat", "fence", "fence_gate", "sign", "trapdoor")},
    **{kind: f"wooden_{kind}" for kind in ("door", "button", "pressure_plate", "slab", "stairs")},
    "wood": "log",
    "wall_sign": "sign",
}
_OF_COLOUR = (
    *("wool", "carpet", "bed", "banner", "wall_banner", "stained_glass", "stained_glass_pane", "terracotta"),
    *("glazed_terracotta", "concrete", "concrete_powder", "shulker_box", "dye"),
)
_SAME = {
    "log2": "log",
    "leaves2": "leaves",
    "flowing_water": "water",
    "flowing_lava": "lava",
    "lit_redstone_ore": "redstone_ore",
    "lit_furnace": "furnace",
    "unlit_redstone_torch": "redstone_torch",
    "wall_torch": "torch",
    "redstone_wall_torch": "redstone_torch",
    "standing_sign": "sign",
    "wall_sign": "sign",
    "standing_banner": "banner",
    "wall_banner": "banner",
    "carrots": "carrot",
    "potatoes": "potato",
    "beetroots": "beetroot",
    "gray_shulker_box": "shulker_box",
}


@cache
def generic(name: str) -> str:
    """The name without its wood or colour; itself where it has none."""
    if same := _SAME.get(name):
        return same
    stripped = name.startswith("stripped_")
    bare = name.removeprefix("stripped_")
    for wood in _WOODS:
        if bare.startswith(f"{wood}_") and (kind := _OF_WOOD.get(bare[len(wood) + 1 :])):
            return f"stripped_{kind}" if stripped else kind
    for colour in _COLOURS:
        if name.startswith(f"{colour}_") and (rest := name[len(colour) + 1 :]) in _OF_COLOUR:
            return _SAME.get(rest, rest)
    return name


def singular(word: str) -> list[str]:
    """What `word` may be the plural of, likeliest first; empty where it ends like no plural."""
    if word.endswith("ies"):
        return [word[:-3] + "y", word[:-1]]
    if word.endswith("ves"):
        return [word[:-3] + "f", word[:-1]]
    if word.endswith(("ches", "shes", "xes", "sses", "oes")):
        return [word[:-2], word[:-1]]
    return [word[:-1]] if word.endswith("s") and not word.endswith("ss") else []
