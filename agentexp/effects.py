"""Settings that would have no effect: a cap on money that cannot be counted is refused, a choice nobody reads is a warning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from agentexp.config import Overrides
from agentexp.core import Model
from agentexp.errors import UserError
from agentexp.limits import Limits

log = logging.getLogger(__name__)

_GROUPS = ("stopping", "explore")


def check_caps(limits: Limits, models: Mapping[str, Model]) -> None:
    """Refuse a cap in US dollars that would never be reached because a model's price is not known.

    Models without a `price` (scripted ones, those that run here) cost nothing.

    Raises:
        UserError: it names the cap and the settings of the price.
    """
    cap = "limits.cost" if limits.cost is not None else "limits.run_cost" if limits.run_cost is not None else ""
    for role, model in models.items():
        if cap and getattr(model, "price", 0) is None:
            path = "model" if role == "actor" else f"roles.{role}"
            raise UserError(
                f"{cap} needs the price of {path}: set {path}.price_in and {path}.price_out (US dollars per million tokens, "
                "0 where it costs nothing)."
            )


def warn_of_unread(config: Mapping[str, Any], overrides: Overrides, paradigm: str) -> None:
    """Warn of typed choices that this paradigm does not read. No error: in a sweep other jobs may read them."""
    for group in _GROUPS:
        typed = [key for key in overrides.raw if key == group or key.startswith(f"{group}.")]
        read = group in config["paradigm"] if group == "stopping" else "k_g" in config["paradigm"]
        if typed and not read:
            log.warning("%s has no effect: paradigm=%s does not use it.", f"{typed[0]}={overrides.raw[typed[0]]}", paradigm)
