"""The task-resource database of WISE (paper 2606.12852, A.8): which thing yields which, and one name for each thing.

Two forms of names meet here: the game's own ("oak_log", "reeds") and what people and vision models say ("trees", "a pond").
`source` and `outcome` bring both to the base's generic names ("log", "water"); everything else works on those.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agentexp.errors import UserError
from agentexp.wise.knowledge.names import generic, singular

HERE = Path(__file__).parent
RELATIONS = ("CAN_OBTAIN", "CAN_CRAFT", "CAN_SMELT")
_ACTIONS = {"mob_drop": "kill", "block_drop": "mine", "crafting": "craft", "smelting": "smelt", "transition": "use"}
_KINDS = ("entity", "environment", "block", "item")  # first match counts: "chicken" is a mob before it is food


class Known(NamedTuple):
    """One fact.

    Attributes:
        source: the thing that is there (cow).
        relation: CAN_OBTAIN, CAN_CRAFT or CAN_SMELT.
        target: what it yields (beef).
        kind: table of the base it is from (mob_drop, block_drop, crafting, smelting, transition).
        action: what an agent does for it (kill, mine, craft, smelt, use).
    """

    source: str
    relation: str
    target: str
    kind: str
    action: str


class KnowledgeBase:
    """Facts and names of one version of Minecraft.

    Args:
        version: "1.11.2" (the paper's) or "1.16.5".
        grounding: similarity from which a name that is not known is taken for a known one ("grounding threshold 0.9").

    Attributes:
        counts: rows of each kind as the build counts them: pairs, for crafting recipes; and "total".

    Raises:
        UserError: no such version.
    """

    def __init__(self, version: str = "1.11.2", grounding: float = 0.9) -> None:
        path = HERE / f"{version}.json"
        if not path.is_file():
            choices = ", ".join(sorted(file.stem for file in HERE.glob("*.json")))
            raise UserError(f"There is no knowledge base for knowledge.version={version}; choose one of: {choices}.")
        self.version, self.grounding = version, grounding
        data, hand = _read(path), _hand()
        self.counts: Mapping[str, int] = data["counts"]
        self._kind: dict[str, str] = {}
        for kind in _KINDS:
            for name in data["names"][kind]:
                self._kind.setdefault(generic(name), kind)
        self._outgoing: defaultdict[str, dict[Known, None]] = defaultdict(dict)
        self._incoming: defaultdict[str, dict[Known, None]] = defaultdict(dict)
        for kind, table in data["rows"].items():
            self._fill(kind, table)
        self._synonyms: dict[str, str] = {}
        for word, names in hand["synonyms"].items():
            if known := [name for name in map(generic, names) if name in self._kind]:
                self._synonyms[word] = known[0]
        for new, old in hand["renamed"].items():  # either version's names are understood by both
            for word, name in ((new, generic(old)), (old, generic(new))):
                if generic(word) not in self._kind and name in self._kind:
                    self._synonyms.setdefault(word, name)
        self._outcomes: Mapping[str, str] = hand["outcomes"]
        self._found: dict[str, str | None] = {}

    def _fill(self, kind: str, table: Mapping[str, Any]) -> None:
        relation = {"crafting": "CAN_CRAFT", "smelting": "CAN_SMELT"}.get(kind, "CAN_OBTAIN")
        for key, listed in table.items():
            for entry in listed:
                made = [(part, key) for part in entry] if kind == "crafting" else [(key, entry)]
                for source, target in made:
                    fact = Known(generic(source), relation, generic(target), kind, _ACTIONS[kind])
                    if kind == "block_drop" or fact.source != fact.target:
                        self._outgoing[fact.source][fact] = self._incoming[fact.target][fact] = None

    # ---------------------------------------------------------------------------------------------------------- names

    def source(self, name: str) -> str | None:
        """The base's name of something seen ("Trees" -> "log", "brown cow" -> "cow"); None where it is unknown."""
        key = _tidy(name)
        if key not in self._found:
            self._found[key] = self._search(key)
        return self._found[key]

    def outcome(self, name: str) -> str | None:
        """The base's name of something to obtain: like `source`, but "water" means "water_bucket" here."""
        known = self.source(name)
        return self._outcomes.get(known, known) if known else None

    normalise = source

    def kind(self, name: str) -> str | None:
        """entity (a mob), environment, block or item; None for a name that the base does not use."""
        return self._kind.get(name)

    def names(self, kind: str | None = None) -> list[str]:
        """All generic names, or those of one kind."""
        return sorted(name for name, its in self._kind.items() if kind in (None, its))

    def _search(self, key: str) -> str | None:
        words = key.split("_")
        # From the whole name to its last word: what stands before a noun describes it.
        for start in range(len(words)):
            if found := self._lookup("_".join(words[start:])):
                return found
        return self._nearest(key)

    def _lookup(self, key: str) -> str | None:
        for form in (key, *singular(key)):
            if (name := self._synonyms.get(form)) or (name := generic(form)) in self._kind:
                return name
        return None

    def _nearest(self, key: str) -> str | None:
        best, score = None, self.grounding
        matcher = SequenceMatcher(b=key, autojunk=False)
        for name in self._kind:
            matcher.set_seq1(name)
            # The two bounds cost little and rule out nearly every name.
            if matcher.real_quick_ratio() >= score and matcher.quick_ratio() >= score and (ratio := matcher.ratio()) >= score:
                best, score = name, ratio
        return best

    # ---------------------------------------------------------------------------------------------------------- facts

    def outcomes(self, source: str) -> list[Known]:
        """What a thing is good for; empty where nothing is known."""
        name = self.source(source)
        return list(self._outgoing.get(name, ())) if name else []

    def sources(self, target: str) -> list[Known]:
        """What yields a resource."""
        name = self.outcome(target)
        return list(self._incoming.get(name, ())) if name else []

    def fact(self, source: str, relation: str, target: str) -> Known | None:
        """The fact behind (source, relation, target), or None: the test of filter 4."""
        name, wanted = self.source(source), self.outcome(target)
        for known in self._outgoing.get(name or "", ()):
            if known.relation == relation and known.target == wanted:
                return known
        return None

    def valid(self, source: str, relation: str, target: str) -> bool:
        """Whether `source` yields `target` in this way."""
        return self.fact(source, relation, target) is not None


def _tidy(name: str) -> str:
    text = re.sub(r"[^a-z0-9]+", "_", name.lower().removeprefix("minecraft:")).strip("_")
    return re.sub(r"^(?:a|an|the|some|several|few|many)_", "", text)


@cache
def _read(path: Path) -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


@cache
def _hand() -> Mapping[str, Any]:
    data: Mapping[str, Any] = yaml.safe_load((HERE / "hand.yaml").read_text(encoding="utf-8"))
    return data
