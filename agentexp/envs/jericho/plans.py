"""What the expert knows about each of our stories."""

from __future__ import annotations

from collections.abc import Callable

from agentexp.envs.jericho.expert import Deed, Plan
from agentexp.envs.jericho.scene import Scene

Test = Callable[[Scene], bool]


def _has(name: str, attribute: str, wanted: bool = True) -> Test:
    return lambda scene: scene.has(scene.find(name), attribute) is wanted


def _in(name: str, holder: str) -> Test:
    return lambda scene: scene.holder(scene.find(name)) == scene.find(holder)


def _exists(name: str) -> Test:
    return lambda scene: scene.room_of(scene.find(name)) != 0


def _drawn(scene: Scene, place: str, choices: tuple[str, ...]) -> str:
    """The one of several things that this variant has drawn."""
    return choices[scene.memory.value(scene.find(place), "setting")]


def _lever(scene: Scene) -> str:
    return _drawn(scene, "Signal Box", ("red lever", "green lever", "blue lever"))


def _seam(scene: Scene) -> str:
    return _drawn(scene, "Fork", ("red seam", "black seam", "grey seam"))


def _number(scene: Scene) -> int:
    return scene.memory.value(scene.find("Dome"), "setting")


def _wish(scene: Scene) -> str:
    return _drawn(scene, "Guard Room", ("coffee cup", "ham sandwich", "evening newspaper"))


def _valve(scene: Scene) -> str:
    return _drawn(scene, "Engine Room", ("red valve", "yellow valve", "white valve"))


def _offering(scene: Scene) -> str:
    return _drawn(scene, "Chapel", ("bread loaf", "salt bowl", "wine flask"))


def _ingredients(scene: Scene) -> tuple[str, ...]:
    return ("flour bag", "brown egg", _drawn(scene, "Bakehouse", ("honey jar", "red apple", "goat cheese")))


def _in_bowl(scene: Scene) -> list[str]:
    return [scene.name(thing) for thing in scene.memory.children(scene.find("mixing bowl"))]


def _lacking(scene: Scene) -> str:
    return next(name for name in _ingredients(scene) if name not in _in_bowl(scene))


def _wrong(scene: Scene) -> list[str]:
    return [name for name in _in_bowl(scene) if name not in (*_ingredients(scene), "cake dough")]


def _baked(scene: Scene) -> bool:
    return _exists("fresh cake")(scene)


def _dough(scene: Scene) -> bool:
    return _exists("cake dough")(scene) or _baked(scene)


PLANS = {
    "cottage": Plan(
        {
            "light": Deed("switch on oil lamp", hold=("oil lamp",), done=_has("oil lamp", "on")),
            "win": Deed("drop yellow deed", at="Country Lane", hold=("yellow deed",)),
        },
        light="light",
    ),
    "station": Plan(
        {
            "ticket": Deed("put silver coin in ticket machine", at="Booking Hall", hold=("silver coin",)),
            "pass": Deed(
                "give paper ticket to porter", at="Booking Hall", hold=("paper ticket",), done=_has("porter", "general")
            ),
            "train": Deed(lambda scene: f"pull {_lever(scene)}", at="Signal Box", done=_exists("coast train")),
            "win": Deed("enter coast train", at="Platform Two", first=("train",)),
        },
        gates={"Platform One": "pass"},
        made={"paper ticket": "ticket"},
    ),
    "mine": Plan(
        {
            "light": Deed("switch on carbide lamp", hold=("carbide lamp",), done=_has("carbide lamp", "on")),
            "hoist": Deed("wind hoist", at="Fork", done=_has("hoist", "general")),
            "dig": Deed(
                lambda scene: f"dig {_seam(scene)} with iron pick",
                at=lambda scene: scene.name(scene.room_of(scene.find(_seam(scene)))),
                hold=("iron pick",),
                first=("light",),
            ),
            "win": Deed("give silver nugget to assayer", at="Assay Office", hold=("silver nugget",)),
        },
        gates={"Pit": "hoist"},
        made={"silver nugget": "dig"},
        light="light",
    ),
    "lighthouse": Plan(
        {
            "oil": Deed("pour oil can into great lamp", at="Lamp Room", hold=("oil can",), done=_has("great lamp", "general")),
            "shutters": Deed("open storm shutters", at="Lamp Room", done=_has("storm shutters", "open")),
            "fetched": Deed("", hold=("oil can",)),
            "win": Deed("light great lamp with match box", at="Lamp Room", hold=("match box",), first=("oil", "shutters")),
        },
    ),
    "observatory": Plan(
        {
            "box": Deed("open fuse box", at="Power Room", done=_has("fuse box", "open")),
            "power": Deed(
                "put glass fuse in fuse box",
                at="Power Room",
                hold=("glass fuse",),
                first=("box",),
                done=_in("glass fuse", "fuse box"),
            ),
            "roof": Deed("wind crank", at="Dome", first=("power",), done=_has("crank", "general")),
            "dial": Deed(
                lambda scene: f"set brass dial to {_number(scene)}",
                at="Dome",
                done=lambda scene: scene.memory.value(scene.find("brass dial"), "setting") == _number(scene),
            ),
            "win": Deed("look through telescope", at="Dome", first=("roof", "dial")),
        },
    ),
    "maze": Plan(
        {
            "cut": Deed(
                "cut thorn hedge",
                at="Fountain Court",
                hold=("garden shears",),
                done=lambda scene: not _exists("thorn hedge")(scene),
            ),
            "win": Deed("give golden pear to gardener", at="Gatehouse", hold=("golden pear",)),
        },
        before={"golden pear": "cut"},
    ),
    "bakery": Plan(
        {
            "right": Deed(lambda scene: f"take {_wrong(scene)[0]}", at="Bakehouse", done=lambda scene: not _wrong(scene)),
            "filled": Deed(
                lambda scene: f"put {_lacking(scene)} in mixing bowl",
                at="Bakehouse",
                hold=lambda scene: tuple(name for name in _ingredients(scene) if name not in _in_bowl(scene)),
                done=lambda scene: set(_ingredients(scene)) <= set(_in_bowl(scene)),
            ),
            "mixed": Deed("mix mixing bowl", at="Bakehouse", first=("right", "filled"), done=_dough),
            "open": Deed("open bread oven", at="Bakehouse", done=_has("bread oven", "open")),
            "loaded": Deed(
                "put cake dough in bread oven",
                at="Bakehouse",
                hold=("cake dough",),
                first=("open",),
                done=_in("cake dough", "bread oven"),
            ),
            "closed": Deed("close bread oven", at="Bakehouse", done=_has("bread oven", "open", False)),
            "baked": Deed("switch on bread oven", at="Bakehouse", first=("loaded", "closed"), done=_baked),
            "win": Deed("give fresh cake to mayor", at="Bakery Shop", hold=("fresh cake",)),
        },
        made={"cake dough": "mixed", "fresh cake": "baked"},
    ),
    "museum": Plan(
        {
            "card": Deed(lambda scene: f"give {_wish(scene)} to guard", at="Guard Room", hold=lambda scene: (_wish(scene),)),
            "silence": Deed("switch off alarm panel", at="Restorer's Workshop", done=_has("alarm panel", "on", False)),
            "win": Deed("south", at="Lobby", hold=("jade mask",)),
        },
        made={"key card": "card"},
        before={"glass case": "silence", "jade mask": "silence"},
    ),
    "submarine": Plan(
        {
            "power": Deed(
                "put battery cell in battery rack",
                at="Battery Room",
                hold=("battery cell",),
                done=_in("battery cell", "battery rack"),
            ),
            "tanks": Deed(lambda scene: f"turn {_valve(scene)}", at="Engine Room", done=_has("Engine Room", "general")),
            "pump": Deed("switch on pump switch", at="Control Room", first=("power", "tanks"), done=_has("pump switch", "on")),
            "win": Deed("open round hatch", at="Escape Trunk", first=("pump",)),
        },
    ),
    "abbey": Plan(
        {
            "light": Deed("light wax candle", hold=("wax candle", "tinder box"), done=_has("wax candle", "light")),
            "offering": Deed(
                lambda scene: f"put {_offering(scene)} on altar",
                at="Chapel",
                hold=lambda scene: (_offering(scene),),
                done=_has("iron grille", "open"),
            ),
            "hang": Deed("tie hemp rope to bronze bell", at="Belfry", hold=("hemp rope",), done=_has("bronze bell", "general")),
            "win": Deed("ring bronze bell", at="Belfry", first=("hang",)),
        },
        opens={"iron grille": "offering"},
        light="light",
    ),
}
