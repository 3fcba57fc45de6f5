"""A random action for any world: uniform over what it lists, else drawn from the action forms on its card."""

from __future__ import annotations

import random
import re

from agentexp.capabilities import HasPolicies
from agentexp.core import View
from agentexp.errors import UserError

_SLOT = re.compile(r"\{[^{}]*\}")
_FUNCTION_WORDS = frozenset(
    ["and", "are", "but", "for", "from", "has", "here", "not", "nothing", "that", "the", "there", "this", "with", "you", "your"]
)


def random_action(view: View, rng: random.Random) -> str:
    """Draw an action.

    Where the world lists no actions, its own "random" agent is asked if it has one. Failing that, an action form of the card is
    drawn and its slots are filled with names of things that the tracker knows, or with words of the observation.
    """
    listed = [action for action in view.step.admissible or () if not _forbidden(action, view)]
    if listed:
        return rng.choice(listed)
    if view.step.admissible is None and isinstance(view.env, HasPolicies):
        try:
            return view.env.policy("random", rng.randrange(2**31)).act(view)
        except UserError:
            pass  # the world has no such agent: use its card
    return _from_card(view, rng)


def _forbidden(action: str, view: View) -> bool:
    pattern = view.env.card.forbidden
    return bool(pattern) and re.search(pattern, action) is not None


def _from_card(view: View, rng: random.Random) -> str:
    forms = [form for form in re.split(r"\s*\|\s*", view.env.card.actions.strip()) if form and not _forbidden(form, view)]
    names = _names(view)
    if not names:
        forms = [form for form in forms if not _SLOT.search(form)] or forms
    form = rng.choice(forms)
    return _SLOT.sub(lambda slot: rng.choice(names) if names else slot[0].strip("{}"), form)


def _names(view: View) -> list[str]:
    if view.tracker is not None and (facts := view.tracker.facts()):
        return sorted({name for fact in facts for name in fact.subject if name})
    return sorted(set(re.findall(r"[a-z]{3,}", view.step.observation.lower())) - _FUNCTION_WORDS)
