"""Grounding and the transition system. A state is an integer: bit i says whether fluent atom i holds.

The semantics are those of PDDL's STRIPS: an action is applicable where its precondition holds, deletes come before adds, and
parameters may be bound to the same object. Atoms that no action can ever reach are left out, with the actions that need them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentexp.envs.pddl.language import Atom, Domain, Literals, Problem, Schema
from agentexp.errors import UserError

LIMIT = 200_000  # ground actions; more would need another engine


@dataclass(frozen=True, slots=True)
class Operator:
    """A ground action; all four sets are bit masks over `Ground.atoms`."""

    name: Atom
    needs: int
    forbids: int
    adds: int
    deletes: int

    def possible(self, state: int) -> bool:
        """Whether it is applicable."""
        return state & self.needs == self.needs and not state & self.forbids

    def after(self, state: int) -> int:
        """The successor state."""
        return state & ~self.deletes | self.adds


class Ground:
    """A problem with its ground actions.

    Attributes:
        domain: the domain.
        problem: the problem.
        atoms: fluent atoms, sorted; the index is the bit.
        static: initial atoms that no action changes.
        operators: ground actions that some reachable state may allow, in the order of the domain and of the objects.
        init: the initial state.
    """

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.domain, self.problem = domain, problem
        changing = {atom[0] for s in domain.schemas.values() for atom in (*s.effect.positive, *s.effect.negative)}
        self.static = frozenset(atom for atom in problem.init if atom[0] not in changing)
        found = [ground for schema in domain.schemas.values() for ground in self._bind(schema, changing)]
        fluent = problem.init - self.static
        found, reached = _reachable(found, fluent)
        self.atoms = tuple(sorted(reached))
        self.index = {atom: i for i, atom in enumerate(self.atoms)}
        self.operators = tuple(self._operator(*ground) for ground in found)
        self.init = self.mask(fluent)
        self._goals = [(atom, True) for atom in problem.goal.positive] + [(atom, False) for atom in problem.goal.negative]

    def mask(self, atoms: Iterable[Atom]) -> int:
        """Bits of the fluent ones among the atoms."""
        return sum({1 << self.index[atom] for atom in atoms if atom in self.index})

    def holding(self, state: int) -> list[Atom]:
        """All atoms of a state, the static ones included, sorted."""
        return sorted([*self.static, *self.fluents(state)])

    def fluents(self, state: int) -> list[Atom]:
        """The fluent atoms of a state, sorted."""
        return [atom for i, atom in enumerate(self.atoms) if state >> i & 1]

    def applicable(self, state: int) -> list[Operator]:
        """Applicable ground actions."""
        return [op for op in self.operators if state & op.needs == op.needs and not state & op.forbids]

    @cached_property
    def by_name(self) -> Mapping[Atom, Operator]:
        """Ground actions by schema and arguments."""
        return {op.name: op for op in self.operators}

    # ------------------------------------------------------------------------------------------------------------- goal

    @cached_property
    def goal(self) -> tuple[int, int, bool]:
        """(atoms that must hold, atoms that must not, whether the static part of the goal can be met)."""
        met, need, avoid = True, 0, 0
        for atom, wanted in self._goals:
            bit = 1 << self.index[atom] if atom in self.index else 0
            if bit:
                need, avoid = (need | bit, avoid) if wanted else (need, avoid | bit)
            else:
                met = met and (atom in self.static) is wanted
        return need, avoid, met

    def satisfied(self, state: int) -> int:
        """How many goal literals hold."""
        now = {atom for atom, _ in self._goals if self._holds(atom, state)}
        return sum((atom in now) is wanted for atom, wanted in self._goals)

    def solved(self, state: int) -> bool:
        """The goal test."""
        need, avoid, met = self.goal
        return met and state & need == need and not state & avoid

    def fraction(self, state: int) -> float:
        """Part of the goal's literals that hold; 1.0 for an empty goal."""
        return self.satisfied(state) / len(self._goals) if self._goals else 1.0

    def _holds(self, atom: Atom, state: int) -> bool:
        return bool(state >> self.index[atom] & 1) if atom in self.index else atom in self.static

    # -------------------------------------------------------------------------------------------------------- grounding

    def _bind(self, schema: Schema, changing: set[str]) -> Iterator[_Candidate]:
        """Bindings of a schema whose static preconditions hold."""
        objects, domain = self.problem.objects, self.domain
        choices = [[o for o, kinds in objects.items() if domain.is_a(kinds, wanted)] for _, wanted in schema.parameters]
        names = [name for name, _ in schema.parameters]
        condition = schema.precondition
        checks: list[list[tuple[Atom, bool]]] = [[] for _ in range(len(names) + 1)]
        fixed = [(atom, True) for atom in condition.positive if atom[0] not in changing]
        fixed += [(atom, False) for atom in condition.negative if atom[0] not in changing]
        fixed += [(("=", left, right), same) for left, right, same in condition.equal]
        for atom, wanted in fixed:
            # Checked as soon as its last variable is bound.
            checks[max((names.index(v) + 1 for v in atom[1:] if v in names), default=0)].append((atom, wanted))
        binding: dict[str, str] = {}

        def holds(depth: int) -> bool:
            for atom, wanted in checks[depth]:
                predicate, *given = (binding.get(v, v) for v in atom)
                true = given[0] == given[1] if predicate == "=" else (predicate, *given) in self.static
                if true is not wanted:
                    return False
            return True

        def extend(depth: int) -> Iterator[_Candidate]:
            if not holds(depth):
                return
            if depth == len(names):
                yield _candidate(schema, names, binding, changing)
                return
            for choice in choices[depth]:
                binding[names[depth]] = choice
                yield from extend(depth + 1)
            binding.pop(names[depth], None)

        for count, ground in enumerate(extend(0)):
            if count >= LIMIT:
                raise UserError(f"The problem {self.problem.name} has over {LIMIT} ground actions {schema.name}: too many.")
            yield ground

    def _operator(self, name: Atom, needs: Literals, effect: Literals) -> Operator:
        return Operator(
            name,
            self.mask(needs.positive),
            self.mask(needs.negative),
            self.mask(effect.positive),
            self.mask(effect.negative),
        )


_Candidate = tuple[Atom, Literals, Literals]  # name, fluent part of the precondition, effect


def _candidate(schema: Schema, names: list[str], binding: dict[str, str], changing: set[str]) -> _Candidate:
    def bound(atoms: Iterable[Atom], fluent: bool = False) -> tuple[Atom, ...]:
        return tuple(tuple(binding.get(v, v) for v in atom) for atom in atoms if not fluent or atom[0] in changing)

    needs = Literals(bound(schema.precondition.positive, True), bound(schema.precondition.negative, True))
    effect = Literals(bound(schema.effect.positive), bound(schema.effect.negative))
    return (schema.name, *(binding[name] for name in names)), needs, effect


def _reachable(found: list[_Candidate], init: frozenset[Atom]) -> tuple[list[_Candidate], set[Atom]]:
    """What can be reached when nothing is ever deleted (negative conditions count as met): actions in order, and atoms."""
    missing = [len(set(needs.positive)) for _, needs, _ in found]
    waiting: dict[Atom, list[int]] = {}
    for i, (_, needs, _) in enumerate(found):
        for atom in set(needs.positive):
            waiting.setdefault(atom, []).append(i)
    reached, queue = set(init), list(init)
    possible = {i for i, count in enumerate(missing) if not count}
    queue += [atom for i in possible for atom in found[i][2].positive]
    reached |= set(queue)
    queue = list(reached)
    for atom in queue:
        for i in waiting.get(atom, ()):
            missing[i] -= 1
            if not missing[i]:
                possible.add(i)
                new = [a for a in found[i][2].positive if a not in reached]
                reached |= set(new)
                queue += dict.fromkeys(new)
    return [ground for i, ground in enumerate(found) if i in possible], reached
