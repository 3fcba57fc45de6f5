"""JSON out of a model's reply, with one retry: for every prompt that answers with JSON (maps, rules, reflections).

Models wrap JSON in prose and code fences, use Python's literals, leave trailing commas, or are cut off by the token limit.
`read_json` mends exactly these and says that it did; anything else is a `BadReply`, whose text is shown to the model once.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

from agentexp.actions import ParseSettings, without_thinking
from agentexp.core import Completion, Model
from agentexp.prompts import render
from agentexp.rollout import Chat

T = TypeVar("T")
Source = Literal["llm", "repaired"]
_CLOSING = {"{": "}", "[": "]"}


class BadReply(ValueError):
    """The reply holds no usable JSON; the message says why, in words that the model can act on."""


async def ask_json(
    ask: Callable[[Chat], Awaitable[Completion]],
    chat: Chat,
    check: Callable[[Any], tuple[T, bool]],
    parsing: ParseSettings,
) -> tuple[T, Source]:
    """Ask until the reply passes `check`, at most twice; the second time with the problem shown.

    Args:
        ask: sends the chat to the model.
        chat: the prompt; replies and the complaint are appended.
        check: from the parsed value to (result, mended); raises `BadReply`.
        parsing: of the run, for its tags around reasoning.

    Returns:
        The result, and "llm" if the first reply was right as it was, else "repaired".

    Raises:
        BadReply: both replies were unusable.
    """
    problem = BadReply("")
    for attempt in range(2):
        if attempt:
            chat.user(render("json/retry", problem=str(problem)))
        reply = await ask(chat)
        chat.assistant(reply.text)
        try:
            value, mended = read_json(reply.text, parsing)
            result, trimmed = check(value)
        except BadReply as error:
            problem = error
            continue
        return result, "repaired" if attempt or mended or trimmed else "llm"
    raise problem


def token_limit(models: Mapping[str, Model], role: str, at_least: int) -> int:
    """Tokens that a JSON reply may take: `at_least`, or the model's own limit where it is higher (reasoning models)."""
    return max(at_least, (models.get(role) or models["actor"]).sampling.max_tokens)


def read_json(text: str, parsing: ParseSettings = ParseSettings()) -> tuple[dict[str, Any], bool]:
    """The largest JSON object in `text`, and whether it had to be mended. Raises `BadReply`."""
    text = without_thinking(text or "", parsing)
    best: tuple[int, dict[str, Any], bool] | None = None
    problem = "it contains no JSON object."
    at = text.find("{")
    while at >= 0:
        body, used, whole = _balanced(text[at:])
        value, mended = _load(body)
        if isinstance(value, dict) and (best is None or len(body) > best[0]):
            best = (len(body), value, mended or not whole)
        elif value is None:
            problem = _complaint(body)
        at = text.find("{", at + used)
    if best is None:
        raise BadReply(problem)
    return best[1], best[2]


def _load(body: str) -> tuple[Any, bool]:
    """Strict JSON first; then with control characters, trailing commas and Python literals allowed."""
    try:
        return json.loads(body), False
    except json.JSONDecodeError:
        pass
    for candidate in (body, re.sub(r",\s*([}\]])", r"\1", body)):
        try:
            return json.loads(candidate, strict=False), True
        except json.JSONDecodeError:
            pass
        try:
            return ast.literal_eval(re.sub(r"\b(true|false|null)\b", lambda m: _PYTHON[m[1]], candidate)), True
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # all that literal_eval documents
            pass
    return None, False


_PYTHON = {"true": "True", "false": "False", "null": "None"}


def _complaint(body: str) -> str:
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        near = body[max(0, error.pos - 20) : error.pos + 10].strip()
        return f"it is not valid JSON near '{near}' ({error.msg})."
    return "it is not a JSON object."


def _balanced(text: str) -> tuple[str, int, bool]:
    """From the bracket at the start to the one that closes it: (object, characters used, whole).

    A text that was cut off loses its last half-written item and is closed. Brackets that do not match: only the first is used.
    """
    stack: list[str] = []
    in_string = escaped = False
    kept, closers = 0, ""  # where the last whole item ended, and what closes the text there
    for i, c in enumerate(text):
        if in_string:
            in_string = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            in_string = True
        elif c in _CLOSING:
            stack.append(_CLOSING[c])
        elif c in "}]":
            if stack.pop() != c:
                return text[:i], 1, False
            if not stack:
                return text[: i + 1], i + 1, True
            kept, closers = i + 1, "".join(reversed(stack))
        elif c == "," and stack[-1] == "]":
            kept, closers = i, "".join(reversed(stack))
    return text[:kept] + closers, len(text), False
