"""Keys and passwords stay out of every file and every tracker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMOVED = "[removed]"

_NAME = re.compile(
    r"(^|[._-])((api|access|secret|private)[_-]?key|token|secret|password|passwd|authorization|credentials?|headers?)$",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\b(sk|pk|hf|gsk|xai|ghp|glpat)[-_][A-Za-z0-9_-]{12,}|\bBearer\s+\S+|(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def scrub(config: Any) -> Any:
    """A copy of the config without secrets: values of settings such as `api_key`, and texts that look like keys, are replaced.

    `api_key_env` stays: it only names an environment variable.
    """
    if isinstance(config, Mapping):
        return {str(k): REMOVED if _NAME.search(str(k)) and v is not None else scrub(v) for k, v in config.items()}
    if isinstance(config, (list, tuple)):
        return [scrub(item) for item in config]
    return _VALUE.sub(REMOVED, config) if isinstance(config, str) else config
