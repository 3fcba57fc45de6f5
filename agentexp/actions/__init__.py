"""From a model's reply to one action - or a named failure. Nothing is guessed and every rewrite is recorded.

The stages, each in its own module and each usable alone:

    text.py      normalise for matching (NFKC, entities, odd spaces), keeping the way back to the original text
    turns.py     what the model said at all: thinking taken out, invented turns cut off
    claims.py    where the reply claims an action: tags, labels, JSON, boxes, prompt lines, bare text
    grounding.py which admissible command a claim is, if any
    plain.py     the short cut past the first three for replies in the very form that was asked for
    parser.py    the order of these and the status
"""

from agentexp.actions.parser import Parsed, parse
from agentexp.actions.settings import ParseSettings
from agentexp.actions.turns import without_thinking

__all__ = ["ParseSettings", "Parsed", "parse", "without_thinking"]
