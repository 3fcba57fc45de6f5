"""`agentexp collect`: from run folders to data sets with their cards.

    runs of paradigm=map2k   ->  OUT/map
    runs of paradigm=react   ->  OUT/act
    both                     ->  both, of the same instances: one that fails in either is in neither

Everything is decided here and nothing in the runs, so thresholds and forms can change without collecting again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentexp.errors import UserError
from agentexp.export.sources import find_sources
from agentexp.training.collect import card
from agentexp.training.collect.dataset import write_rows
from agentexp.training.collect.filters import Thresholds
from agentexp.training.collect.samples import FORMS, STAGES, Form
from agentexp.training.collect.tokens import counter

Match = Literal["samples", "tokens"]


@dataclass(frozen=True, slots=True)
class Options:
    """How episodes become training data.

    Attributes:
        form: see `samples`.
        stages: which stages of a map-then-act episode to write (form stages only).
        thresholds: see `filters`.
        limit: instances per world, the first that are kept; None: all.
        match: how ACT data are made equal to MAP data where both are collected: "samples": one trace per instance; "tokens":
            the traces are repeated until they have as many tokens as the MAP data, in each world.
        max_tokens: longest conversation; an instance with a longer one is left out. None: any length.
        tokenizer: as `base.path`, or "characters" for an estimate.
        official: folder of ALFWorld's official games, to compare with; None: not compared.
    """

    form: Form = "stages"
    stages: tuple[str, ...] = STAGES
    thresholds: Thresholds = field(default_factory=Thresholds)
    limit: int | None = None
    match: Match = "samples"
    max_tokens: int | None = 8192
    tokenizer: str = "smollm2"
    official: Path | None = None

    def check(self) -> None:
        """Raises `UserError` for an impossible value."""
        if self.form not in FORMS:
            raise UserError(f"--form {self.form} is not possible; choose one of: {', '.join(FORMS)}.")
        if not self.stages or set(self.stages) - set(STAGES):
            raise UserError(f"--stages {','.join(self.stages)} is not possible; choose from: {','.join(STAGES)}.")
        if self.form != "stages" and set(self.stages) != set(STAGES):
            raise UserError(f"--form {self.form} holds all stages in one conversation; leave --stages out.")
        if self.match not in ("samples", "tokens"):
            raise UserError(f"--match {self.match} is not possible; choose samples or tokens.")
        for name, value in (("accuracy", self.thresholds.accuracy), ("coverage", self.thresholds.coverage)):
            if not 0.0 <= value <= 1.0:
                raise UserError(f"--min-{name} must be from 0 to 1, not {value:g}.")
        for name, number in (("limit", self.limit), ("max-tokens", self.max_tokens)):
            if number is not None and number < 1:
                raise UserError(f"--{name} must be at least 1, not {number}.")
        if self.official is not None and not self.official.is_dir():
            raise UserError(f"--official {self.official} is not a folder. Give the one that alfworld-download filled.")


def collect(runs: Sequence[Path], out: Path, options: Options = Options()) -> list[str]:
    """Build the data sets of some runs and write them below `out`.

    Args:
        runs: run folders, or folders above them.
        out: gets the folders `map` and `act`, as far as there are such runs.
        options: see `Options`.

    Returns:
        What to tell the user, one line each; the folders last.

    Raises:
        UserError: no run, a run of another paradigm, an impossible option, nothing left, or `out` cannot be written.
        MissingDependency: the tokenizer's packages are missing.
    """
    from agentexp.training.collect.gather import gather

    options.check()
    sources = find_sources(runs)
    counts = counter(options.tokenizer)  # after what is quickly refused: a tokenizer takes seconds to load
    sets = gather(sources, options, counts)
    for kind, found in sets.items():
        if not found.rows:
            reasons = sum(found.rejected.values(), Counter[str]())
            said = ", ".join(f"{reason}: {n}" for reason, n in reasons.most_common()) or "the runs have no finished episode"
            raise UserError(f"No {kind} episode is left to train on ({said}).")
    lines, folders = [], []
    for kind, found in sets.items():
        facts = card.facts(found, options, counts)
        stored = write_rows(found.rows, out / kind, facts, card.text(facts))
        lines += card.summary(facts)
        folders.append(f"{out / kind}" + (" (JSON lines)" if stored == "jsonl" else ""))
    return lines + folders
