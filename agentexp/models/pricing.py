"""What tokens cost. Prices come from the configuration: lists that ship with a program are out of date when they are read."""

from __future__ import annotations

from dataclasses import dataclass

from agentexp.errors import UserError


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` is the price of prompt tokens read from the server's prefix cache."""

    input: float
    output: float
    cached: float

    @classmethod
    def of(cls, price_in: float | None, price_out: float | None, price_cached: float | None) -> Price | None:
        """Read the three settings; None where no price is known.

        Raises:
            UserError: only a part of the prices is set, or one is negative.
        """
        if price_in is None and price_out is None and price_cached is None:
            return None
        if price_in is None or price_out is None:
            raise UserError("Set both model.price_in and model.price_out (US dollars per million tokens), or neither.")
        if min(price_in, price_out, price_cached or 0.0) < 0:
            raise UserError("model.price_in, model.price_out and model.price_cached must not be negative.")
        return cls(price_in, price_out, price_in if price_cached is None else price_cached)

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> float:
        """US dollars of a call; `cached_tokens` are a part of `prompt_tokens`."""
        fresh = max(0, prompt_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * self.cached + completion_tokens * self.output) / 1e6
