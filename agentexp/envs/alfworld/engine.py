"""The real TextWorld PDDL engine, made cheap: same texts and commands as the stock engine, an order of magnitude less work.

Import this module late: it imports TextWorld. What costs time in the stock engine and what is done about it:

* every `load` and every `reset` translates the problem to SAS twice (the second time for its planner, which is not used here):
  one translation per game, kept for the newest few games;
* every step parses the templates of all commands and texts again and deep-copies the game's entities for each symbol: parsed
  once per process, copied by reference (nothing changes an entity while a text is derived);
* every step derives the text of every possible command again: remembered per game;
* every engine object maps its own 34 MB copy of the planner library and never lets go of it: engines are handed back and used
  again by whoever comes next in the process;
* translation overwrites `sys.argv`: put back.

Not thread-safe (nor is TextWorld): one game at a time per engine, processes for parallel games.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import fast_downward
from textworld import EnvInfos
from textworld.envs.pddl import textgen
from textworld.envs.pddl.pddl import PddlEnv

from agentexp.envs.alfworld import wheel
from agentexp.envs.alfworld.problem import FactTuple, Problem, names
from agentexp.errors import EngineError

_argv, sys.argv = sys.argv, ["translate.py", "domain", "task"]  # the translator reads the command line when it is imported
try:
    from fast_downward.translate.pddl_parser.lisp_parser import ParseError
finally:
    sys.argv = _argv

# What the translator and the engine raise for a bad problem; the translator also calls sys.exit.
_UNSOUND = (ParseError, LookupError, ValueError, TypeError, AttributeError, AssertionError, SystemExit)
_KEPT_GAMES = 8  # about 1 MB each; a group of rollouts of one game meets its translation again


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine says: text, sorted admissible commands, and whether the goal holds now."""

    text: str
    commands: tuple[str, ...]
    won: bool


class _Grammar(textgen.ContextSensitiveGrammar):  # type: ignore[misc]
    """The stock grammar, which remembers the text of each command.

    A command's text depends on the names of its arguments and on where the furniture stands, both fixed within a game.
    """

    def __init__(self) -> None:
        super().__init__()
        self.commands: dict[tuple[str, ...], str] = {}

    def derive(self, start: str, context: Any = {}) -> str:  # noqa: B006 - the signature of the parent
        if start.startswith("#"):
            return str(super().derive(start, context))
        key = (start, *(variable.name for variable in context["mapping"].values()))
        if key not in self.commands:
            self.commands[key] = super().derive(start, context)
        return self.commands[key]


class _Env(PddlEnv):  # type: ignore[misc]
    """The stock engine with the names of ALFWorld and without repeated work."""

    def __init__(self) -> None:
        super().__init__(EnvInfos(admissible_commands=True, won=True))
        self._translations: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def load_game(self, logic: wheel.Logic, problem: str, occupied: bool, known: Mapping[str, str]) -> None:
        """Load a problem under the wheel's domain and grammar; things in `known` keep their names."""
        domain = wheel.domain(logic, occupied)
        with self._translating():
            self.load({"pddl_domain": domain, "grammar": wheel.grammar(logic), "pddl_problem": problem})
        shown = {**names(self._entity_infos), **known}
        for ident, info in self._entity_infos.items():
            info.name = shown[ident]
        grammar = _Grammar()
        grammar.update(self._logic.grammar)
        self._logic.grammar = grammar

    def reset(self) -> Any:
        with self._translating():
            return super().reset()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """While it lasts, translations are remembered and the planner's second translation is the first one again."""
        stock, argv = fast_downward.pddl2sas, sys.argv

        def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
            key = (domain, problem)
            if key not in self._translations:
                self._translations[key] = stock(domain, problem)
                while len(self._translations) > _KEPT_GAMES:
                    self._translations.popitem(last=False)
            self._translations.move_to_end(key)
            return self._translations[key]

        fast_downward.pddl2sas = pddl2sas
        try:
            yield
        finally:
            fast_downward.pddl2sas, sys.argv = stock, argv


@functools.cache
def _speed_up_parsing() -> None:
    """Let TextWorld's text generator parse each template and condition once per process, and share entities."""
    parse, rule = textgen._parse_and_convert, textgen.Rule
    parsed = functools.cache(parse)

    def parse_once(text: str, rule_name: str = "start", trace: bool = False) -> Any:
        return copy.deepcopy(parsed(text, rule_name=rule_name))  # derivations write into the symbols

    class Rule(rule):  # type: ignore[misc, valid-type]
        parse_conjunctive_query = staticmethod(functools.cache(rule.parse_conjunctive_query))

    def copy_context(context: dict[str, Any]) -> dict[str, Any]:
        return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}

    textgen._parse_and_convert, textgen.Rule, textgen.copy_context = parse_once, Rule, copy_context


class Engine:
    """One running game. `close` hands the engine back for the next user in this process."""

    _idle: list[_Env] = []  # noqa: RUF012 - engines cannot be freed (34 MB each), so the process shares them

    def __init__(self) -> None:
        _speed_up_parsing()
        self._env: _Env | None = Engine._idle.pop() if Engine._idle else _Env()
        self._logic: wheel.Logic = "new"
        self._problem = ""
        self._occupied = False
        self._name = ""

    def start(self, logic: wheel.Logic, problem: str, name: str) -> Answer:
        """Load a game and reset it.

        Raises:
            EngineError: the problem is not a sound game (cut off, unknown object, goal that can never hold).
        """
        self._logic, self._problem, self._name = logic, problem, name
        self._occupied = "(full " in problem  # official games know no full receptacles, and their domain does not ask for them
        return self._load(problem, {})

    def go_on(self, facts: Iterable[FactTuple]) -> Answer:
        """Let the running game go on from other facts about the same house, as if they had come about by themselves.

        The planner library cannot be given a state, so the game is loaded anew from the facts. All names stay as they are.
        The answer's text is that of a new game and must not be shown.
        """
        problem = replace(Problem.parse(self._problem), init=tuple(sorted(facts)))
        return self._load(problem.render(), self.names())

    def _load(self, problem: str, known: Mapping[str, str]) -> Answer:
        env = self._running()
        try:
            env.load_game(self._logic, problem, self._occupied, known)
            return self._answer(env.reset())
        except _UNSOUND as error:
            raise EngineError(f"Game {self._name} cannot be loaded: {type(error).__name__}: {error}.") from error

    def step(self, command: str) -> Answer:
        """Carry out one command; anything that is not admissible is answered "Nothing happens."."""
        state, _, _ = self._running().step(command)
        return self._answer(state)

    def facts(self) -> frozenset[FactTuple]:
        """The facts that hold now, predicate first, without the planner's derived ones and without what became untrue."""
        facts = (fact for fact in self._running()._pddl_state.facts if not fact.name.startswith(("new-axiom@", "not_")))
        return frozenset((fact.name, *(argument.name for argument in fact.arguments)) for fact in facts)

    def names(self) -> dict[str, str]:
        """Shown names by identifier."""
        return {ident: info.name for ident, info in self._running()._entity_infos.items()}

    def close(self) -> None:
        """Hand the engine back. Safe to call twice."""
        if self._env is not None:
            Engine._idle.append(self._env)
            self._env = None

    def _running(self) -> _Env:
        if self._env is None:
            raise RuntimeError("the engine is closed")
        return self._env

    @staticmethod
    def _answer(state: Any) -> Answer:
        return Answer(str(state.feedback), tuple(state["admissible_commands"]), bool(state["won"]))
