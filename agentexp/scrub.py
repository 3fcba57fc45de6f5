"""Keys and passwords stay out of every file, every tracker and every line that is shown.

Two nets. A setting whose name says that it is a secret loses its value (`scrub`). And what such settings, the environment and
key files hold is remembered by this process and cut out of every text that leaves it (`clean`, `clean_line`): a server that
repeats a key in its error message, a traceback, an engine's output. The memory is one per process on purpose: a secret must
stay one whoever writes.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

REMOVED = "[removed]"

_STRONG = (
    r"(?:api|access|secret|private|client|subscription|license|encryption|signing|session|master|service|account)[_-]?key"
    r"|(?:access|auth|api|id|refresh|bearer|client|session|security|secret|hf|hub|bot)[_-]?token|client[_-]?secret"
    r"|password|passwd|passphrase|authorization"
)
_WEAK = r"token|secret|pwd|authentication|credentials?|bearer|cookies?|headers?|auth|key"
_NAME = re.compile(rf"(?:^|[._-])(?:{_STRONG}|{_WEAK})$", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z](?:Key|Token|Secret|Password)$")
_CHOICE = re.compile(r"(?:^|[._-])key$", re.IGNORECASE)  # of a component: often a choice ("stopping.key=masked"), not a secret
_VOCABULARY = re.compile(
    r"(?:^|[._-])(?:[bes]os|pad|unk|stop|sep|cls|mask|end|start|begin|think|eot|eom|new|next|first|last|image|special)[_-]token$",
    re.IGNORECASE,
)
_SHAPE = re.compile(  # texts that are keys by their form, wherever they stand
    r"\b(?:sk|pk|hf|gsk|xai|gh[pousr]|glpat|nvapi|xox[abpr])[-_][A-Za-z0-9_-]{12,}|\b(?:AIza|AKIA|github_pat_)[\w-]{12,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\bBearer\s+\S+|\bBasic\s+(?=\S*[\d=+/])[\w+/=-]{8,}"
    r"|(?<=://)[^/@\s'\"]+(?=@[\w\[])"
)
_PAIR = re.compile(  # name=value, "name": "value", --name value, ?name=value; weak names only where nothing else is meant
    rf"(?P<name>(?<!\w)(?:[\w-]*[_-])?(?:{_STRONG})\s*[=:]\s*|--(?:[\w-]*-)?(?:{_STRONG}|{_WEAK})[ =]"
    rf"|[?&](?:{_STRONG}|{_WEAK})=|\w\.(?:{_WEAK.removesuffix('|key')})=|(?:body|extra|args)\.key="
    rf"|(?P<mark>\\?['\"])(?:[\w-]*[_-])?(?:{_STRONG}|{_WEAK})(?P=mark)\s*:\s*(?=\\?['\"]))"
    r"(?:(?P<quote>\\?['\"])(?P<quoted>.*?)(?P=quote)|(?P<plain>\[removed\]|[^\s,;&'\"}\])]+))",
    re.IGNORECASE | re.DOTALL,
)
_UNQUOTED = re.compile(  # {token: value} as Hydra reads it
    rf"[{{,]\s*(?:[\w-]*[_-])?(?:{_STRONG}|{_WEAK})\s*:\s*([^\s,'\"}}\]]+)", re.IGNORECASE
)

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """A setting, header or variable of this name holds a secret: `api_key`, `X-API-Key`, `token`, `Authorization`, `key` ...

    `api_key_env` and `api_key_file` do not: they only name a place. Nor does `max_tokens` or `eos_token`.
    """
    return bool(_NAME.search(name) or _CAMEL.search(name)) and not _VOCABULARY.search(name)


def scrub(config: Any) -> Any:
    """A copy of a config without secrets: values of settings that are named like secrets are replaced, and texts cleaned.

    A component's own setting `key` stays while its value is an ordinary word. In a list, the entry after a flag
    (`["--api-key", "..."]`) is its value.
    """
    if isinstance(config, Mapping):
        return {str(name): _removed(value) if _holds_secret(config, name) else scrub(value) for name, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [REMOVED if secret else scrub(item) for secret, item in _entries(config)]
    return clean(config) if isinstance(config, str) else config


def _holds_secret(node: Mapping[Any, Any], name: Any) -> bool:
    if not is_secret_name(str(name)):
        return False
    value = node[name]
    return not ("_target_" in node and _CHOICE.search(str(name)) and isinstance(value, str) and not _irregular(value))


def _removed(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) or value == "" else REMOVED


def _entries(items: Sequence[Any]) -> Iterable[tuple[bool, Any]]:
    """(it is the value of a flag that is named like a secret, item)."""
    after = False
    for item in items:
        yield after and isinstance(item, str), item
        after = isinstance(item, str) and item.startswith("-") and is_secret_name(item.lstrip("-"))


def clean(text: str) -> str:
    """`text` without remembered secrets and without anything that has the form of one."""
    for secret in _known:
        text = text.replace(secret, REMOVED)
    return _PAIR.sub(rf"\g<name>\g<quote>{REMOVED}\g<quote>", _SHAPE.sub(REMOVED, text))


def clean_line(line: bytes) -> bytes:
    """JSON without remembered secrets. By value only: what has the form of a key may be something that a world said."""
    for secret in _known:
        for form in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            line = line.replace(form.encode("utf-8", "backslashreplace"), REMOVED.encode())
    return line


def remember(value: Any) -> None:
    """Cut this secret out of everything from now on. Takes a text, or a config whose settings are named like secrets.

    Short words are not remembered: they would be cut out of what the world says as well.
    """
    if isinstance(value, str):
        if _irregular(value):
            _known.add(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            for text in _texts(item) if _holds_secret(value, name) else ():
                remember(text)
            remember(item if isinstance(item, (Mapping, list, tuple)) else None)
    elif isinstance(value, (list, tuple)):
        for secret, item in _entries(value):
            remember(item if secret or not isinstance(item, str) else None)


def remember_overrides(overrides: Iterable[str]) -> None:
    """Remember what was typed as `some.api_key=...`, or inside a value in JSON."""
    for override in overrides:
        name, _, value = override.partition("=")
        if is_secret_name(name.rpartition(".")[2]):
            remember(value.strip("'\""))
        for found in _PAIR.finditer(override):
            remember(found["quoted"] or found["plain"])
        for text in _UNQUOTED.findall(override):
            remember(text)
        if value.lstrip().startswith(("{", "[")):
            with suppress(ValueError, RecursionError):
                remember(json.loads(value))


def _texts(item: Any) -> list[str]:
    """Every text in a secret setting; of "Bearer abc" also the second half, which a server may repeat alone."""
    if isinstance(item, (Mapping, list, tuple)):
        return [text for entry in (item.values() if isinstance(item, Mapping) else item) for text in _texts(entry)]
    return [item, item.rpartition(" ")[2]] if isinstance(item, str) else []


def _irregular(text: str) -> bool:
    """Long and irregular enough to be no word."""
    if len(text) < 8 or any(c.isspace() for c in text) or REMOVED in text:
        return False
    return len(text) >= 16 or any(c.isdigit() for c in text) or not (text.islower() or text.isupper() or text.istitle())


def remember_environment() -> None:
    """Remember the environment variables that are named like secrets; paths are none."""
    for name, value in os.environ.items():
        if is_secret_name(name) and not value.startswith(("/", "~")):
            remember(value)


def clean_logging() -> None:
    """Clean every log record of this process when it is made, whoever logs it and wherever it is written."""
    make = logging.getLogRecordFactory()
    if getattr(make, "cleans", False):
        return

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make(*args, **kwargs)
        try:
            text = made.getMessage()
        except (TypeError, ValueError):  # a wrong format string: the handler complains about it, as always
            return made
        if (cleaned := clean(text)) != text:
            made.msg, made.args = cleaned, ()
        return made

    record.cleans = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)
