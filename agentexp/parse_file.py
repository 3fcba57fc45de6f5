"""`agentexp parse FILE.jsonl`: recorded model replies in, what agentexp would send out. No world is started.

Each line is `{id, content, reasoning_content, finish_reason, admissible, env}`; each result `{id, action, status}`, the action
null unless the status is "ok".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentexp.actions import ParseSettings, parse
from agentexp.core import EnvCard
from agentexp.errors import UserError

# ALFWorld's put command changed its words with the game files' logic; the list of admissible commands shows which one holds.
_THING = r"(?:(?:the|a|an) )?(.+?)"
_PUT = rf"(?:put|move) {_THING} (?:in/on|in|on|into|onto|to) {_THING}"
_ALFWORLD = EnvCard("", "", complete_admissible=True, aliases=((_PUT, r"move \1 to \2"), (_PUT, r"put \1 in/on \2")))
_OPEN = EnvCard("", "")  # a list of valid commands that is known not to be the whole truth
_CARDS = {
    **dict.fromkeys(("alf", "alfworld", "fridge"), _ALFWORLD),
    **dict.fromkeys(("sci", "sciworld", "scienceworld", "jericho"), _OPEN),
}


def parse_lines(lines: Iterable[str], settings: ParseSettings = ParseSettings()) -> Iterator[dict[str, Any]]:
    """Read replies.

    Args:
        lines: JSON lines; blank lines are skipped. `content` and `reasoning_content` are text or null, `admissible` is a list
            of texts or null, `finish_reason` defaults to "stop". A list of admissible commands counts as complete, except for
            worlds whose list is known to miss commands that work (ScienceWorld, Jericho).
        settings: how to read.

    Yields:
        `{"id", "action", "status"}` per line.

    Raises:
        UserError: a line is not such an object; the message names the line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip().lstrip("\ufeff"):
            continue
        try:
            record = json.loads(line.lstrip("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise UserError(f"Line {number} is not valid JSON ({error}). Give one JSON object per line.") from error
        if not isinstance(record, Mapping):
            raise UserError(
                f"Line {number} is a JSON {type(record).__name__}; give an object with id, content, admissible, env."
            )
        if "content" not in record:
            raise UserError(f'Line {number} has no "content"; give the reply\'s text, or null for an empty reply.')
        parsed = parse(
            _text(record, "content", number),
            reasoning=_text(record, "reasoning_content", number) or "",
            finish_reason=_text(record, "finish_reason", number) or "stop",
            admissible=_commands(record, number),
            card=_CARDS.get((_text(record, "env", number) or "").casefold()),
            settings=settings,
        )
        yield {"id": record.get("id"), "action": parsed.action, "status": parsed.status}


def _text(record: Mapping[str, Any], name: str, number: int) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise UserError(f'Line {number}: "{name}" must be text or null, not {type(value).__name__}.')
    return value


def _commands(record: Mapping[str, Any], number: int) -> list[str] | None:
    value = record.get("admissible")
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise UserError(f'Line {number}: "admissible" must be a list of commands (texts) or null.')
    return value
