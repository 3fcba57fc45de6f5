"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, SGLang, llama.cpp, Ollama and the many gateways.

Calls are plain POSTs of ready-made bytes; the only retries are those of `limiter`. A model holds only its settings; clients,
slots and the cache are opened once per event loop, so a model can be made anywhere and sent to another process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from agentexp.core import Completion, Message, Request, Sampling
from agentexp.errors import ContextOverflow, FatalError, ModelError, UserError
from agentexp.models import openai_wire as wire
from agentexp.models.cache import key
from agentexp.models.limiter import Limiter, Retry
from agentexp.models.openai_client import OPENAI_URL, KeySource, Session
from agentexp.models.pricing import Price

log = logging.getLogger(__name__)

_OURS = ("model", "messages", "stream", "n")
_CHATS_REMEMBERED = 4096


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    Args:
        name: model name as the server knows it.
        base_url: address of the API, usually ending in /v1; None takes OPENAI_BASE_URL or OpenAI's own.
        api_key_env: environment variable that holds the key. Servers other than OpenAI's work without one.
        api_key_file: file that holds the key, read instead of the variable.
        temperature: 0 = greedy. With a value above 0 every call gets its own seed.
        max_tokens: most tokens of a reply.
        top_p: nucleus sampling; None = the server's default.
        stop: strings that end a reply, also in the middle of its reasoning. Text in the world's name is cut off without them.
        max_tokens_field: name of the field for `max_tokens`; OpenAI's reasoning models want "max_completion_tokens".
        omit: request fields not to send, for servers that refuse them ("temperature", "seed", "stop" ...).
        extra_body: further request fields, for example {"reasoning_effort": "low"} or {"top_k": 20}.
        concurrency: most calls at once.
        request_timeout: seconds of one attempt.
        total_timeout: seconds of one call with all its attempts and waits; waiting for a free slot does not count.
        max_retries: attempts after the first one.
        start_timeout: seconds that `start` waits for a server that is not up yet.
        price_in: US dollars per million prompt tokens; None = unknown.
        price_out: US dollars per million reply tokens.
        price_cached: US dollars per million prompt tokens read from the server's cache; None = `price_in`.
        context_limit: tokens of prompt and reply that fit. Needed only for servers that shorten prompts silently (Ollama).
        cache: path of a SQLite file with replies, or None.
        decode: "generate" lets the model write; "rank" takes the admissible action that it finds most likely (vLLM only).
        label: short name for folders and tables; None = last part of `name`.
    """

    def __init__(
        self,
        *,
        name: str,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        api_key_file: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 256,
        top_p: float | None = None,
        stop: list[str] | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        omit: list[str] | None = None,
        extra_body: dict[str, Any] | None = None,
        concurrency: int = 32,
        request_timeout: float = 120.0,
        total_timeout: float = 300.0,
        max_retries: int = 8,
        start_timeout: float = 5.0,
        price_in: float | None = None,
        price_out: float | None = None,
        price_cached: float | None = None,
        context_limit: int | None = None,
        cache: str | None = None,
        decode: Literal["generate", "rank"] = "generate",
        label: str | None = None,
    ) -> None:
        self.name = name
        self.label = label or name.rstrip("/").rsplit("/", 1)[-1]
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        self.sampling = Sampling(float(temperature), max_tokens, top_p, tuple(stop or ()))
        self.decode = decode
        self.context_limit = context_limit
        self.cache = cache
        self.concurrency = concurrency
        self._key_source = KeySource(api_key_env, api_key_file)
        self._field, self._omit, self._extra = max_tokens_field, tuple(omit or ()), dict(extra_body or {})
        self._start_timeout = start_timeout
        self.retry = Retry(max_retries, request_timeout, total_timeout)
        self.price = Price.of(price_in, price_out, price_cached)
        self._prompts: OrderedDict[str, tuple[list[Message], int]] = OrderedDict()  # by conversation: the last one, its tokens
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Session] = WeakKeyDictionary()
        self._check_settings()

    def _check_settings(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"model.base_url={self.base_url} is no address; write for example http://127.0.0.1:8000/v1.")
        if parts.username or parts.password:
            raise UserError("model.base_url must not hold a user or password; put the key into the variable model.api_key_env.")
        if parts.query or parts.fragment:  # the paths of the calls are appended to it, and a query may hold a key
            raise UserError("model.base_url must end with a path such as /v1, without a query (?...) or a fragment (#...).")
        if taken := [field for field in _OURS if field in self._extra]:
            raise UserError(f"model.extra_body must not set {', '.join(taken)}: agentexp sets these fields itself.")
        if taken := [field for field in self._omit if field in _OURS]:
            raise UserError(f"model.omit must not name {', '.join(taken)}.")
        if self.concurrency < 1 or self.retry.max_retries < 0 or self.sampling.max_tokens < 1:
            raise UserError("model.concurrency and model.max_tokens must be at least 1, model.max_retries at least 0.")
        if min(self.retry.request_timeout, self.retry.total_timeout, self._start_timeout) <= 0:
            raise UserError("model.request_timeout, model.total_timeout and model.start_timeout must be above 0 seconds.")
        for setting, value, choices in (
            ("decode", self.decode, ("generate", "rank")),
            ("max_tokens_field", self._field, ("max_tokens", "max_completion_tokens")),
        ):
            if value not in choices:
                raise UserError(f"model.{setting}={value} is not possible; choose one of: {', '.join(choices)}.")

    def __repr__(self) -> str:
        return f"OpenAIModel(name={self.name!r}, base_url={self.base_url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_sessions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._sessions = WeakKeyDictionary()

    # ------------------------------------------------------------------------------------------------------ protocol

    async def start(self) -> None:
        """Check that the server answers and, for `decode=rank`, that it returns the likelihood of prompts.

        Raises:
            UserError: nobody answers at the address, the key is missing or refused, or `decode=rank` cannot work. A server that
                is away is only a warning while `cache` holds replies: a run can be repeated without it.
        """
        session = self.session()
        patience = Retry(10_000, self._start_timeout, self._start_timeout, 0.2, 1.0, "start_timeout", "start_timeout")
        try:
            names, _ = await patience.run(session.models, Limiter(1))
        except FatalError as error:
            raise UserError(str(error)) from None
        except ModelError as error:
            if session.cache is None or not len(session.cache):
                raise UserError(f"No model server answers at model.base_url={self.base_url}. {error}") from None
            log.warning(
                "No model server answers at %s; only replies kept in model.cache=%s can be used.", self.base_url, self.cache
            )
            return
        if names and self.name not in names:
            shown = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
            log.warning("%s does not list model.name=%s; it lists: %s", self.base_url, self.name, shown)
        if self.decode == "rank":
            from agentexp.models.openai_rank import check

            await check(self)

    async def chat(self, request: Request) -> Completion:
        """Answer. See `Model.chat`; the harness' part costs well under a millisecond of CPU time, whatever the history."""
        if self.decode == "rank" and request.purpose == "act" and request.view.step.admissible:
            from agentexp.models.openai_rank import rank

            return await rank(self, request)
        self._check_context(request)
        reply = await self.complete(self.body(request.sampling), request.messages, request)
        self._note_context(request, reply)
        return reply

    async def close(self) -> None:
        """Close the connections and the cache of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def versions(self) -> dict[str, str]:
        """The server's address and the model's name; the client's version changes no reply."""
        return {"base_url": self.base_url, "model": self.name}

    # ---------------------------------------------------------------------------------------------------------- calls

    def session(self) -> Session:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = Session(self.name, self.base_url, self._key_source, self.concurrency, self.cache)
            self._sessions[loop] = session
        return session

    def body(self, sampling: Sampling) -> dict[str, Any]:
        """The request fields for `sampling`, without the messages."""
        return wire.settings(self.name, sampling, self._field, self._omit, self._extra)

    async def complete(self, body: Mapping[str, Any], messages: Sequence[Message], request: Request) -> Completion:
        """One call of /chat/completions through cache, slots and retries.

        Args:
            body: the request without its messages.
            messages: the prompt; usually, but not always, that of `request`.
            request: what the call is for.
        """
        session = self.session()
        content = session.conversations.encode(body, messages, request.chat)
        slot = b""
        if session.cache is not None:
            # Seed and repeat count even when they are not sent: repeats are there to see how much a server varies.
            task = request.view.task
            slot = key(self.base_url, content, task.seed, task.repeat, request.sampling.seed)
            if (kept := session.cache.get(slot)) is not None:
                return self._priced(kept)
        at = replace(session.endpoint, max_tokens=request.sampling.max_tokens)
        started = 0.0

        async def attempt() -> Completion:
            nonlocal started
            started = started or time.perf_counter()
            return wire.read_completion(await session.post(content, at), self.name)

        reply, retries = await self.retry.run(attempt, session.limiter)
        reply.retries, reply.seconds = retries, time.perf_counter() - started
        if session.cache is not None:
            session.cache.put(slot, reply)
        return self._priced(reply)

    def _priced(self, reply: Completion) -> Completion:
        # Also for cached replies, at today's prices: `Completion.cached` says that nothing was paid, and a cost limit ends an
        # episode at the same turn with and without the cache.
        if self.price is not None:
            usage = reply.usage
            cost = self.price.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
            reply.usage = replace(usage, cost=cost)
        return reply

    def _tokens_before(self, request: Request) -> int:
        """Tokens of the conversation's last prompt, if this one begins with it: then it cannot be shorter; else 0.

        It does not where an attempt at the episode begins anew, or where old observations were left out.
        """
        messages, tokens = self._prompts.get(request.chat, ([], 0))
        return tokens if list(request.messages[: len(messages)]) == messages else 0  # identical strings: compared by address

    def _check_context(self, request: Request) -> None:
        known = self._tokens_before(request)
        if self.context_limit is not None and known + request.sampling.max_tokens > self.context_limit:
            raise ContextOverflow(
                f"A prompt of at least {known} tokens and model.max_tokens={request.sampling.max_tokens} do not fit into "
                f"model.context_limit={self.context_limit}."
            )

    def _note_context(self, request: Request, reply: Completion) -> None:
        now, before = reply.usage.prompt_tokens, self._tokens_before(request)
        if 0 < now < before:
            reply.info["prompt_shrank"] = [before, now]  # the server may have cut the prompt without saying so
        if self.context_limit is not None and now >= self.context_limit:
            raise ContextOverflow(f"The prompt of {now} tokens fills model.context_limit={self.context_limit}.")
        self._prompts[request.chat] = (list(request.messages), max(now, before))
        self._prompts.move_to_end(request.chat)
        if len(self._prompts) > _CHATS_REMEMBERED:
            self._prompts.popitem(last=False)
