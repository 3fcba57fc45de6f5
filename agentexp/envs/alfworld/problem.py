"""One household as data: the PDDL problem of a game, read into tuples and written back. No engine needed.

Everything is lower-cased on reading, because the engine does the same. The part before the first `_bar_` of an identifier is
its type; the engine shows "apple 3" for the third apple by its own counting, which `names` repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

FactTuple = tuple[str, ...]
"""("inreceptacle", object id, receptacle id) and the like."""

_TOKEN = re.compile(r"[()]|[^\s()]+")


def names(ids: Iterable[str]) -> dict[str, str]:
    """Names as the engine shows them, by identifier.

    Identifiers are counted per type in reverse alphabetical order, over all objects that occur in a fact, also those that no
    place holds: the numbers that an agent sees can have gaps.
    """
    groups: dict[str, list[str]] = {}
    result: dict[str, str] = {}
    for ident in sorted(ids):
        kind, bar, _ = ident.partition("_bar_")
        if not bar:
            result[ident] = f"{ident} "
            continue
        groups.setdefault(kind + ("basin" if "basin" in ident else ""), []).append(ident)
    for kind, members in groups.items():
        for number, ident in zip(range(len(members), 0, -1), members, strict=True):
            result[ident] = f"{kind} {number}"
    return result


@dataclass(frozen=True)
class Problem:
    """A PDDL problem of the ALFRED domain.

    Attributes:
        name: name of the problem.
        objects: (identifier, type) in the order of the file.
        init: initial facts, predicate first.
        goal: the text of the `(:goal ...)` block, untouched.
    """

    name: str
    objects: tuple[tuple[str, str], ...]
    init: tuple[FactTuple, ...]
    goal: str

    @classmethod
    def parse(cls, text: str) -> Problem:
        """Read a problem. Raises `ValueError` with a reason if it is not one."""
        head, goal = re.search(r"\(:init\b", text), re.search(r"\(:goal\b", text)
        if head is None or goal is None or goal.start() < head.start():
            raise ValueError("the problem has no (:init ...) followed by (:goal ...)")
        depth, end = 0, len(text)
        for match in re.finditer(r"[()]", text[goal.start() :]):
            depth += 1 if match.group() == "(" else -1
            if depth == 0:
                end = goal.start() + match.end()
                break
        if depth != 0:
            raise ValueError("the problem ends before its goal does")
        name = re.search(r"\(problem\s+(\S+?)\s*\)", text)
        return cls(
            name=name.group(1) if name else "plan",
            objects=tuple(_objects(text[: head.start()])),
            init=tuple(_facts(text[head.end() : goal.start()])),
            goal=text[goal.start() : end],
        )

    def render(self) -> str:
        """The problem as PDDL."""
        objects = "\n".join(f"        {ident} - {kind}" for ident, kind in self.objects)
        facts = "\n".join(f"        ({' '.join(fact)})" for fact in self.init)
        return f"(define (problem {self.name})\n(:domain alfred)\n(:objects\n{objects}\n)\n(:init\n{facts}\n)\n{self.goal}\n)\n"

    @cached_property
    def names(self) -> dict[str, str]:
        """Shown name of every object that occurs in a fact."""
        known = {ident for ident, _ in self.objects}
        return names({arg for fact in self.init for arg in fact[1:] if arg in known})


def _objects(text: str) -> Iterable[tuple[str, str]]:
    body = text[text.index("(:objects") + len("(:objects") :] if "(:objects" in text else ""
    waiting: list[str] = []
    tokens = iter(_TOKEN.findall(body.lower()))
    for token in tokens:
        if token == "-":
            kind = next(tokens, "object")
            yield from ((ident, kind) for ident in waiting)
            waiting = []
        elif token in "()":
            break
        else:
            waiting.append(token)


def _facts(text: str) -> Iterable[FactTuple]:
    fact: list[str] = []
    for token in _TOKEN.findall(text.lower()):
        if token == "(":
            fact = []
        elif token == ")":
            if fact:
                yield tuple(fact)
            fact = []
        else:
            fact.append(token)
