"""H01: a setting that would change nothing is refused or named, not carried along."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from run_fakes import GoModel

from agentexp.config import Overrides
from agentexp.effects import check_caps, warn_of_unread
from agentexp.errors import UserError
from agentexp.models.openai_api import OpenAIModel
from agentexp.rollout import Limits


@pytest.mark.parametrize(("limits", "cap"), [(Limits(cost=1.0), "limits.cost"), (Limits(run_cost=1.0), "limits.run_cost")])
def test_a_cap_on_money_needs_a_price(limits: Limits, cap: str) -> None:
    priced = OpenAIModel(name="x", base_url="http://127.0.0.1:1/v1", price_in=0.0, price_out=0.0)
    unpriced = OpenAIModel(name="x", base_url="http://127.0.0.1:1/v1")
    check_caps(limits, {"actor": GoModel()})
    check_caps(limits, {"actor": priced})
    check_caps(Limits(tokens=5), {"actor": unpriced})
    with pytest.raises(UserError, match=rf"^{cap} needs .*set model\.price_in and model\.price_out"):
        check_caps(limits, {"actor": unpriced})
    with pytest.raises(UserError, match=r"roles\.extractor\.price_in"):
        check_caps(limits, {"actor": priced, "extractor": unpriced})


@pytest.mark.parametrize(
    ("typed", "paradigm", "said"),
    [
        ("stopping=fixed", {}, "stopping=fixed has no effect: paradigm=react"),
        ("stopping.steps=5", {}, "stopping.steps=5 has no effect"),
        ("explore.n_tasks=5", {"stopping": None}, "explore.n_tasks=5 has no effect"),
        ("stopping=fixed", {"stopping": {}, "k_g": None}, ""),
        ("explore.n_tasks=5", {"stopping": {}, "k_g": None}, ""),
        ("seed=5", {}, ""),
    ],
)
def test_choices_that_the_paradigm_does_not_read_are_named(
    typed: str, paradigm: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_unread({"paradigm": paradigm}, Overrides.of([typed]), "react")
    assert said in caplog.text
    assert bool(caplog.text) == bool(said)
