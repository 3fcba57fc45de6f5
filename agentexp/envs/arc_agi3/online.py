"""Games of the online API (three.arcprize.org), over its documented REST protocol. Nothing here runs unless env.source=online.

    GET  /api/games                                              -> [{"game_id", "title", ...}]
    POST /api/scorecard/open  {"tags", "source_url", "opaque"}   -> {"card_id"}
    POST /api/cmd/RESET       {"game_id", "card_id", "guid"?}    -> frame; without "guid" a new play begins
    POST /api/cmd/ACTION1..7  {"game_id", "guid", "x"?, "y"?}    -> frame
    POST /api/scorecard/close {"card_id"}                        -> the scorecard

Every request carries the key in X-API-Key, and the cookies that earlier answers have set (they keep a play on one server). The
key is read from the environment at each request and is stored nowhere.
"""

from __future__ import annotations

import http.client
import http.cookiejar
import json
import os
import time
import urllib.error
import urllib.request
from typing import Any

from agentexp.envs.arc_agi3.actions import Action, name
from agentexp.envs.arc_agi3.frames import Frame
from agentexp.errors import EngineError, UserError

WAITS = (1.0, 2.0, 4.0, 8.0)  # seconds before the next try, after a 429 or a server error
_NOT_DONE = (429,)  # the server has refused to do it
_MAYBE_DONE = (500, 502, 503, 504)


class Api:
    """The protocol; one connection's cookies.

    Args:
        url: of the server.
        key_env: environment variable that holds the key.
        timeout: seconds for one request.
        waits: seconds before each further try.
    """

    def __init__(self, url: str, key_env: str, timeout: float = 30.0, waits: tuple[float, ...] = WAITS) -> None:
        self.url, self.key_env, self.timeout, self.waits = url.rstrip("/"), key_env, timeout, waits
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def games(self) -> list[dict[str, Any]]:
        """All games."""
        found = self._send("GET", "/api/games", None)
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    def open(self, tags: list[str]) -> str:
        """Open a scorecard and return its id."""
        answer = self._send("POST", "/api/scorecard/open", {"tags": tags})
        return str(_field(answer, "card_id"))

    def close(self, card: str) -> dict[str, Any]:
        """Close a scorecard and return it."""
        answer = self._send("POST", "/api/scorecard/close", {"card_id": card})
        return answer if isinstance(answer, dict) else {}

    def command(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """RESET or ACTION1 ... ACTION7. What the server may have carried out is never sent again: that is an engine error."""
        answer = self._send("POST", f"/api/cmd/{action}", body, again=_NOT_DONE)
        if not isinstance(answer, dict) or "frame" not in answer:
            raise EngineError(f"{self.url} answered {action} without a frame: {str(answer)[:200]}")
        return answer

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None, again: tuple[int, ...] = (*_NOT_DONE, *_MAYBE_DONE)
    ) -> Any:
        key = os.environ.get(self.key_env, "")
        if not key:
            raise UserError(
                f"env.source=online needs a key in the environment variable {self.key_env} (env.api_key_env); "
                "env.source=own plays offline."
            )
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": key, "Accept": "application/json", "Content-Type": "application/json"}
        for wait in (*self.waits, None):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                text = error.read()[:300].decode(errors="replace")
                if error.code in (401, 403):
                    raise UserError(f"{self.url} refuses the key in {self.key_env} (HTTP {error.code}).") from error
                if error.code not in again or wait is None:
                    raise EngineError(f"{self.url}{path} answered HTTP {error.code}: {text}") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise EngineError(f"{self.url}{path} gave no usable answer: {type(error).__name__}: {error}") from error
            time.sleep(wait)
        raise AssertionError("unreachable")


class OnlineSession:
    """One play of a game online.

    Args:
        api: the server.
        card: the scorecard that it is played on.
        game_id: the game with its version.
    """

    def __init__(self, api: Api, card: str, game_id: str) -> None:
        self._api, self._card, self._game = api, card, game_id
        self._guid = ""

    def start(self) -> Frame:
        """A RESET without a guid: a new play."""
        self._guid = ""
        return self._command("RESET", {"game_id": self._game, "card_id": self._card})

    def act(self, action: Action) -> Frame:
        """See `Session`."""
        body: dict[str, Any] = {"game_id": self._game, "guid": self._guid}
        if not action.number:
            body["card_id"] = self._card
        if action.x is not None:
            body |= {"x": action.x, "y": action.y}
        return self._command(name(action.number), body)

    def close(self) -> None:
        """The scorecard is closed by whoever opened it."""

    def _command(self, action: str, body: dict[str, Any]) -> Frame:
        answer = self._api.command(action, body)
        first = not self._guid
        self._guid = str(_field(answer, "guid"))
        try:
            grids = tuple(bytes(cell for row in grid for cell in row) for grid in answer["frame"])
            levels = answer.get("win_levels", answer.get("win_score", 0))
            return Frame(
                grids,
                str(answer["state"]),
                int(answer.get("levels_completed", answer.get("score", 0))),
                int(levels),
                tuple(int(n) for n in answer.get("available_actions") or (1, 2, 3, 4, 5, 6, 7)),
                bool(answer.get("full_reset", False)) and not first,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(f"A frame of {self._game} cannot be read: {error}") from error


def _field(answer: Any, key: str) -> Any:
    if not isinstance(answer, dict) or not answer.get(key):
        raise EngineError(f"The ARC-AGI-3 server answered without {key!r}: {str(answer)[:200]}")
    return answer[key]
