"""The part of PDDL that is read here: STRIPS with types, constants, equality and negative literals.

Names are case-insensitive. Trailing ")" are forgiven, as are constants that a problem declares again: public files have both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentexp.errors import UserError

Atom: TypeAlias = tuple[str, ...]
"""Predicate and arguments. In a schema an argument may be a variable ("?x")."""

_TOKEN = re.compile(r"[()]|[^\s();]+|;[^\n]*")
_CANNOT = {"forall", "exists", "or", "imply", "when", "increase", "decrease", "assign", "preference"}


@dataclass(frozen=True, slots=True)
class Literals:
    """A conjunction.

    Attributes:
        positive: atoms that hold (as an effect: that become true).
        negative: atoms that do not hold (as an effect: that become false).
        equal: (left, right, whether they must be the same).
    """

    positive: tuple[Atom, ...] = ()
    negative: tuple[Atom, ...] = ()
    equal: tuple[tuple[str, str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """An action with parameters: (variable, admissible types) each."""

    name: str
    parameters: tuple[tuple[str, tuple[str, ...]], ...]
    precondition: Literals
    effect: Literals


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain.

    Attributes:
        name: as declared.
        parents: type -> its supertypes, without "object".
        constants: name -> types.
        predicates: name -> variables.
        argument_types: predicate -> types of each argument.
        schemas: name -> action.
    """

    name: str
    parents: Mapping[str, tuple[str, ...]]
    constants: Mapping[str, tuple[str, ...]]
    predicates: Mapping[str, tuple[str, ...]]
    argument_types: Mapping[str, tuple[tuple[str, ...], ...]]
    schemas: Mapping[str, Schema]

    def is_a(self, kinds: Iterable[str], wanted: Iterable[str]) -> bool:
        """Whether one of the types is, or is below, one of the wanted ones."""
        goal, queue, seen = set(wanted), list(kinds), set[str]()
        if "object" in goal:
            return True
        for kind in queue:
            if kind in goal:
                return True
            if kind not in seen:
                seen.add(kind)
                queue += self.parents.get(kind, ())
        return False


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: objects with their types (the domain's constants included), initial atoms and goal."""

    name: str
    domain: str
    objects: Mapping[str, tuple[str, ...]]
    init: frozenset[Atom]
    goal: Literals


def read_domain(text: str, where: str) -> Domain:
    """Read a domain. Raises `UserError`, naming `where`, for other text or for PDDL beyond this module's part."""
    reader = _Reader(where)
    parts = reader.define(text, "domain")
    sections = reader.sections(parts)
    schemas = [reader.schema(action) for action in sections.get(":action", ())]
    for odd in sections.keys() - {":requirements", ":types", ":constants", ":predicates", ":action"}:
        raise reader.error(f"the section {odd} is not supported")
    types = [pair for section in sections.get(":types", ()) for pair in reader.typed(section[1:])]
    constants = [pair for section in sections.get(":constants", ()) for pair in reader.typed(section[1:])]
    declared = [predicate for section in sections.get(":predicates", ()) for predicate in section[1:]]
    typed = {str(p[0]): reader.typed(p[1:]) for p in declared}
    predicates = {predicate: tuple(name for name, _ in slots) for predicate, slots in typed.items()}
    arguments = {predicate: tuple(kinds for _, kinds in slots) for predicate, slots in typed.items()}
    parents = {name: tuple(kind for kind in kinds if kind != "object") for name, kinds in types}
    actions = {schema.name: schema for schema in schemas}
    return Domain(reader.name(parts), parents, dict(constants), predicates, arguments, actions)


def read_problem(text: str, domain: Domain, where: str) -> Problem:
    """Read a problem of a domain. Raises `UserError` as `read_domain`, also for objects or predicates that nothing declares."""
    reader = _Reader(where)
    parts = reader.define(text, "problem")
    sections = reader.sections(parts)
    objects = dict(domain.constants)
    for section in sections.get(":objects", ()):
        objects.update(pair for pair in reader.typed(section[1:]) if pair[0] not in domain.constants)
    init = frozenset(tuple(map(str, atom)) for section in sections.get(":init", ()) for atom in section[1:])
    goals = sections.get(":goal", ())
    if len(goals) != 1 or len(goals[0]) != 2:
        raise reader.error("there must be one :goal")
    goal = reader.literals(goals[0][1])
    for predicate, *arguments in (*init, *goal.positive, *goal.negative):
        if len(domain.predicates.get(predicate, ())) != len(arguments) or predicate not in domain.predicates:
            raise reader.error(f"({' '.join((predicate, *arguments))}) does not fit the domain's predicates")
        if unknown := [name for name in arguments if name not in objects]:
            raise reader.error(f"the object {unknown[0]} is not declared")
    return Problem(reader.name(parts), domain.name, objects, init, goal)


def names_of(text: str, where: str) -> tuple[str, str, str]:
    """("domain" or "problem", its name, the domain's name) of a file."""
    reader = _Reader(where)
    parts = reader.define(text, "")
    kind = str(parts[1][0])
    own = reader.sections(parts).get(":domain", ())
    return kind, reader.name(parts), str(own[0][1]) if own else reader.name(parts)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where = where

    def error(self, what: str) -> UserError:
        return UserError(f"{self.where} cannot be read as PDDL: {what}.")

    def define(self, text: str, kind: str) -> list[Any]:
        """The parts of "(define (KIND NAME) ...)"."""
        stack: list[list[Any]] = [[]]
        for token in _TOKEN.findall(text.lower()):
            if token == "(":
                stack.append([])
            elif token == ")" and len(stack) > 1:
                done = stack.pop()
                stack[-1].append(done)
            elif token != ")" and not token.startswith(";"):
                stack[-1].append(token)
        if len(stack) > 1:
            raise self.error("a parenthesis is not closed")
        found = next((part for part in stack[0] if isinstance(part, list) and part[:1] == ["define"]), [])
        if len(found) < 2 or not isinstance(found[1], list) or len(found[1]) != 2 or found[1][0] not in ("domain", "problem"):
            raise self.error("there is no (define (domain NAME) ...) or (define (problem NAME) ...)")
        if kind and found[1][0] != kind:
            raise self.error(f"it is a {found[1][0]}, not a {kind}")
        return found

    def name(self, parts: Sequence[Any]) -> str:
        return str(parts[1][1])

    def sections(self, parts: Sequence[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for part in parts[2:]:
            if not isinstance(part, list) or not part or not isinstance(part[0], str):
                raise self.error(f"{part} is no section")
            found.setdefault(part[0], []).append(part)
        return found

    def typed(self, items: Sequence[Any]) -> list[tuple[str, tuple[str, ...]]]:
        """Names with types: "a b - t c" gives a and b of type t, c of type object."""
        found: list[tuple[str, tuple[str, ...]]] = []
        waiting: list[str] = []
        rest = list(items)
        while rest:
            item = rest.pop(0)
            if item == "-" and rest:
                kind = rest.pop(0)
                kinds = tuple(map(str, kind[1:] if isinstance(kind, list) else [kind]))
                found += [(name, kinds) for name in waiting]
                waiting = []
            elif isinstance(item, str):
                waiting.append(item)
            else:
                raise self.error(f"{item} is no name")
        return found + [(name, ("object",)) for name in waiting]

    def schema(self, action: Sequence[Any]) -> Schema:
        fields = dict(zip(action[2::2], action[3::2], strict=False))
        parameters = tuple(self.typed(fields.get(":parameters") or []))
        precondition = self.literals(fields.get(":precondition") or [])
        effect = self.literals(fields.get(":effect") or [])
        bound = {name for name, _ in parameters}
        used = {v for atom in (*precondition.positive, *precondition.negative) for v in atom[1:]}
        used |= {v for atom in (*effect.positive, *effect.negative) for v in atom[1:]}
        if loose := sorted(v for v in used if v.startswith("?") and v not in bound):
            raise self.error(f"the action {action[1]} does not declare {loose[0]}")
        return Schema(str(action[1]), parameters, precondition, effect)

    def literals(self, tree: Sequence[Any]) -> Literals:
        """A conjunction of literals."""
        positive, negative, equal = list[Atom](), list[Atom](), list[tuple[str, str, bool]]()

        def take(part: Sequence[Any], holds: bool) -> None:
            head = part[0] if part else ""
            if head == "and" and holds:
                for inner in part[1:]:
                    take(inner, True)
            elif head == "not" and len(part) == 2:
                take(part[1], not holds)
            elif head == "=" and len(part) == 3:
                equal.append((str(part[1]), str(part[2]), holds))
            elif isinstance(head, str) and head not in _CANNOT | {"and", "not"} and all(isinstance(p, str) for p in part):
                (positive if holds else negative).append(tuple(map(str, part)))
            else:
                raise self.error(f"only conjunctions of literals are supported, not ({head or '?'} ...)")

        if tree:
            take(tree, True)
        return Literals(tuple(dict.fromkeys(positive)), tuple(dict.fromkeys(negative)), tuple(equal))
