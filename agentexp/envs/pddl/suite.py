"""Which problems there are: the frozen draws of this package, or a folder of PDDL files of the user."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentexp.core import Task
from agentexp.envs.pddl.generators import GENERATORS, draw
from agentexp.envs.pddl.language import Domain, Problem, names_of, read_domain, read_problem
from agentexp.envs.pddl.phrases import Phrases
from agentexp.errors import UserError
from agentexp.paths import inside

SPLITS = ("train", "dev", "test")
KINDS = tuple(GENERATORS)
_HERE = Path(__file__).parent


@cache
def own_domain(kind: str) -> Domain:
    """A domain of this package."""
    return read_domain((_HERE / "domains" / f"{kind}.pddl").read_text(encoding="utf-8"), f"{kind}.pddl")


@cache
def frozen() -> Mapping[str, Mapping[str, Sequence[Sequence[int]]]]:
    """split -> kind -> [seed of the draw, actions in the planner's plan]."""
    found: dict[str, dict[str, list[list[int]]]] = json.loads((_HERE / "splits.json").read_text(encoding="utf-8"))
    return found


class Drawn:
    """The problems of this package: 60 in test, in AgentBoard's proportions; train and dev share none with them."""

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return SPLITS

    def tasks(self, split: str, name: str) -> list[Task]:
        """The first problem of each domain, then the second ones, and so on, so that the first few stand for all."""
        rows = [
            (i, KINDS.index(kind), kind, seed, plan)
            for kind, entries in frozen()[split].items()
            for i, (seed, plan) in enumerate(entries)
        ]
        return [
            Task(f"{kind}/{split}-{i + 1:02}", name, split, kind=kind, spec={"domain": kind, "seed": seed, "plan": plan})
            for i, _, kind, seed, plan in sorted(rows)
        ]

    def load(self, spec: Mapping[str, Any]) -> tuple[Domain, Problem]:
        """The problem of a task."""
        kind, seed = str(spec.get("domain")), spec.get("seed")
        if kind not in KINDS or not isinstance(seed, int):
            raise UserError(f"pddl has no problem {dict(spec)}; tasks come from `tasks`.")
        return own_domain(kind), read_problem(draw(kind, seed), own_domain(kind), f"{kind}-{seed}")

    def phrases(self) -> list[Phrases]:
        """Of every domain there is."""
        return [Phrases(own_domain(kind)) for kind in KINDS]

    def digest(self) -> str:
        """Hash of domains and splits."""
        parts = [(_HERE / "splits.json").read_bytes()]
        parts += [(_HERE / "domains" / f"{kind}.pddl").read_bytes() for kind in KINDS]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


class Folder:
    """PDDL files of the user, in any sub-folders. A file says itself whether it is a domain or a problem, and of which domain.

    Problems in sub-folders train, dev or test belong to these splits, all others to test. Where several domains share a name,
    the one whose path has most in common with the problem's is taken.

    Args:
        folder: `env.problems`.
    """

    def __init__(self, folder: str) -> None:
        self._root = Path(folder)
        self._read: dict[str, Domain] = {}

    def _files(self) -> dict[str, tuple[str, str, str]]:
        """Path below the folder -> ("domain" or "problem", name, domain's name)."""
        if not self._root.is_dir():
            raise UserError(f"env.problems={self._root} is not a folder. Name one with a PDDL domain and problems of it.")
        files = sorted(path for path in self._root.rglob("*.pddl") if path.is_file())
        return {path.relative_to(self._root).as_posix(): names_of(self._text(path), str(path)) for path in files}

    def _text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"env.problems: {path} cannot be read ({error}).") from error

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return SPLITS

    def tasks(self, split: str, name: str) -> list[Task]:
        """The problems by path. Raises `UserError` where there are none, or a problem's domain is missing."""
        files = self._files()
        found = []
        for path, (what, _, domain) in files.items():
            if what == "problem" and _split_of(path) == split:
                spec = {"domain": self._domain_for(path, domain, files), "problem": path}
                found.append(Task(path.removesuffix(".pddl"), name, split, kind=self._kind(spec["domain"]), spec=spec))
        if not found:
            raise UserError(f"env.problems={self._root} has no PDDL problem of the split {split!r}.")
        return found

    def load(self, spec: Mapping[str, Any]) -> tuple[Domain, Problem]:
        """The problem of a task."""
        domain = self._domain(str(spec.get("domain")))
        path = inside(self._root, str(spec.get("problem")), "The problem of a task")
        return domain, read_problem(self._text(path), domain, str(path))

    def phrases(self) -> list[Phrases]:
        """Of every domain there is."""
        return [Phrases(self._domain(path)) for path, (what, _, _) in self._files().items() if what == "domain"]

    def digest(self) -> str:
        """Hash of all files."""
        texts = (f"{path}\n{self._text(self._root / path)}" for path in self._files())
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

    def _domain(self, path: str) -> Domain:
        if path not in self._read:
            file = inside(self._root, path, "The domain of a task")
            self._read[path] = read_domain(self._text(file), str(file))
        return self._read[path]

    def _kind(self, path: str) -> str:
        return Phrases(self._domain(path)).kind

    def _domain_for(self, problem: str, name: str, files: Mapping[str, tuple[str, str, str]]) -> str:
        fitting = [path for path, (what, own, _) in files.items() if what == "domain" and own == name]
        if not fitting:
            raise UserError(
                f"env.problems: {self._root / problem} needs the domain {name}, which no file in the folder defines."
            )
        here = Path(problem).parts

        def shared(path: str) -> int:
            same = 0
            for a, b in zip(Path(path).parts, here, strict=False):
                if a != b:
                    break
                same += 1
            return same

        return max(fitting, key=shared)


def _split_of(path: str) -> str:
    return next((part for part in Path(path).parts[:-1] if part in SPLITS), "test")
