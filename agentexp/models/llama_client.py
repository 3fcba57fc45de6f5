"""Asynchronous client for the native API of llama.cpp's server, which can do what the OpenAI-compatible one cannot: prompts as
tokens, likelihoods of the next token, grammars.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentexp.core import Completion, Message, Sampling, Usage
from agentexp.errors import ContextOverflow, ModelError
from agentexp.models.rank import NextTokens

if TYPE_CHECKING:
    import aiohttp

_REPLY_FIELDS = ["content", "tokens", "stop_type", "tokens_evaluated", "truncated", "timings", "completion_probabilities"]
_TOKENS_REMEMBERED = 50_000
_EXAMPLE_REPLY = "reply-of-the-assistant"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the engine generated.

    Attributes:
        text: the new text, without the stop word.
        tokens: the sampled tokens; the end-of-turn token is not among them.
        stop: "eos", "word" or "limit".
        prompt_tokens: tokens of the prompt.
        cached_tokens: those of them that were not computed again.
        truncated: the context was full before the reply ended.
        logprobs: log-probability of each token, None where not asked for or not aligned with `tokens`.
    """

    text: str
    tokens: list[int]
    stop: str
    prompt_tokens: int
    cached_tokens: int
    truncated: bool
    logprobs: list[float] | None


class LlamaClient:
    """Calls one server. Bound to the event loop that made it.

    Args:
        url: address of the server.
        timeout: seconds of one call.
    """

    def __init__(self, url: str, timeout: float) -> None:
        import aiohttp

        self.url, self.timeout = url, timeout
        # The server closes a connection after some calls and some idle seconds; a call that crosses with it would fail.
        self._session: aiohttp.ClientSession = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=aiohttp.ClientTimeout(total=timeout)
        )
        self._tokens: dict[str, tuple[int, ...]] = {}

    async def close(self) -> None:
        """Close the connections; calls in flight end with an error and the server stops working on them."""
        await self._session.close()

    # ---------------------------------------------------------------------------------------------------------- text

    async def render(self, messages: Sequence[Message], template: Mapping[str, Any]) -> str:
        """The prompt text of a conversation, up to where the assistant's reply begins.

        Args:
            messages: the conversation.
            template: variables for the chat template of the model.
        """
        body: dict[str, Any] = {"messages": [message._asdict() for message in messages]}
        if template:
            body["chat_template_kwargs"] = dict(template)
        return str((await self._post("/apply-template", body))["prompt"])

    async def end_of_turn(self, template: Mapping[str, Any]) -> str:
        """The token with which the chat template ends a reply, as text ("<|im_end|>")."""
        said = [Message("user", "a"), Message("assistant", _EXAMPLE_REPLY), Message("user", "b")]
        _, found, rest = (await self.render(said, template)).rpartition(_EXAMPLE_REPLY)
        if found:
            answer = await self._post("/tokenize", {"content": rest, "parse_special": True, "with_pieces": True})
            for token in answer["tokens"]:
                if isinstance(token["piece"], str) and token["piece"].strip():
                    return token["piece"].strip()
        raise ModelError("The chat template of model.path does not show how a reply ends; use model.decode=generate.")

    async def tokenize(self, text: str, *, start: bool = False) -> tuple[int, ...]:
        """Tokens of `text`, special tokens recognised.

        Args:
            text: the text.
            start: it is the beginning of a prompt, where some models want a first token of their own.
        """
        if not start and (known := self._tokens.get(text)) is not None:
            return known
        answer = await self._post("/tokenize", {"content": text, "parse_special": True, "add_special": start})
        tokens = tuple(answer["tokens"])
        if not start:  # actions come again every turn; whole prompts do not
            if len(self._tokens) >= _TOKENS_REMEMBERED:
                self._tokens.clear()
            self._tokens[text] = tokens
        return tokens

    # ---------------------------------------------------------------------------------------------------- generation

    async def complete(self, prompt: str | Sequence[int], **settings: Any) -> Reply:
        """Generate. `settings` are those of llama.cpp's /completion.

        Raises:
            ContextOverflow: the prompt is longer than the context.
            ModelError: the server failed or is gone.
        """
        data = await self._post("/completion", _body(prompt, return_tokens=True, response_fields=_REPLY_FIELDS, **settings))
        tokens = list(data["tokens"])
        # Tokens that share one character are reported as one entry, without their own probabilities.
        logprobs = [float(entry["logprob"]) for entry in data.get("completion_probabilities") or ()]
        return Reply(
            text=data["content"],
            tokens=tokens,
            stop=data["stop_type"],
            prompt_tokens=data["tokens_evaluated"],
            cached_tokens=data["timings"]["cache_n"],
            truncated=data["truncated"],
            logprobs=logprobs if tokens and len(logprobs) == len(tokens) else None,
        )

    async def next_tokens(self, prompt: Sequence[int], n: int) -> NextTokens:
        """Log-probabilities of the `n` likeliest next tokens, before any sampling setting."""
        fields = ["timings", "completion_probabilities"]
        data = await self._post("/completion", _body(prompt, n_predict=1, n_probs=n, temperature=0.0, response_fields=fields))
        entries = data["completion_probabilities"][0]["top_logprobs"]
        logprobs = {entry["id"]: float(entry["logprob"]) for entry in entries}
        return NextTokens(logprobs, min(logprobs.values()), data["timings"]["cache_n"])

    # ---------------------------------------------------------------------------------------------------------- calls

    async def model(self) -> dict[str, Any]:
        """What the server says about its model: n_vocab, n_ctx_train, n_params ..."""
        return dict((await self._call("GET", "/v1/models", None))["data"][0]["meta"])

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, body)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        import aiohttp

        try:
            async with self._session.request(method, self.url + path, json=body) as answer:
                data = await answer.json(content_type=None)
        except TimeoutError as error:
            raise EngineLost(f"The llama.cpp engine did not answer within model.request_timeout={self.timeout:g} s.") from error
        except (aiohttp.ClientError, ValueError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not self._session.closed:
                raise
            raise EngineLost(f"The llama.cpp engine is gone ({type(error).__name__}).") from error
        if not isinstance(data, dict):
            raise ModelError(f"The llama.cpp engine answered {path} with {type(data).__name__}.")
        if (error_data := data.get("error")) is not None:
            message, kind = str(error_data.get("message")), str(error_data.get("type"))
            if kind == "exceed_context_size_error":
                raise ContextOverflow(f"The prompt no longer fits: {message}; the setting is model.n_ctx.")
            raise ModelError(f"The llama.cpp engine refused {path}: {message} ({kind}).")
        return data


class EngineLost(ModelError):
    """The engine is gone or does not answer in time: it has to be started again."""


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """Sampling settings in llama.cpp's names, with its own defaults (top_k 40, min_p 0.05 ...) switched off."""
    fields: dict[str, Any] = {
        "n_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_k": 0,
        "min_p": 0.0,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "stop": list(sampling.stop),
    }
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    return fields


def completion_of(reply: Reply, *, with_tokens: bool) -> Completion:
    """A reply of the engine as a `Completion`."""
    info: dict[str, Any] = {"context_full": True} if reply.truncated else {}
    return Completion(
        text=reply.text,
        finish_reason="length" if reply.stop == "limit" else "stop",
        usage=Usage(reply.prompt_tokens, len(reply.tokens), reply.cached_tokens, calls=1),
        token_ids=reply.tokens if with_tokens else None,
        logprobs=reply.logprobs if with_tokens else None,
        info=info,
    )


def _body(prompt: str | Sequence[int], **settings: Any) -> dict[str, Any]:
    text = prompt if isinstance(prompt, str) else list(prompt)
    return {"prompt": text, "cache_prompt": True, **settings}


async def gather(client: LlamaClient, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Tokens of many texts."""
    limit = asyncio.Semaphore(16)

    async def one(text: str) -> tuple[int, ...]:
        async with limit:
            return await client.tokenize(text)

    return list(await asyncio.gather(*map(one, texts)))
