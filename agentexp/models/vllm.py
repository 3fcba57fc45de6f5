"""vLLM that agentexp starts itself: as a server of its own, or inside this process.

A vLLM server that already runs is used with `model=openai model.base_url=...` instead.

What was tested: the handling of the server process, with a stand-in for the `vllm` program, and the in-process calls, with a
stand-in for the package's interface of 0.22 to 0.31. The real engine needs a GPU and was not run.
"""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentexp.core import Completion, Request, Sampling
from agentexp.errors import FatalError, MissingDependency, ModelError, UserError
from agentexp.models.openai_api import OpenAIModel
from agentexp.models.sampled_chats import SampledChats
from agentexp.models.server_process import ServerProcess
from agentexp.packages import version_of
from agentexp.training.core import Sampled

if TYPE_CHECKING:
    from agentexp.models.vllm_inprocess import Engine

INSTALL = "pip install 'agentexp[vllm]' (Linux with a GPU)"
_OWN = ("--host", "--port", "--served-model-name", "--uds")


class VllmModel:
    """A model served by vLLM.

    Args:
        name: Hugging Face name or local folder of the model.
        mode: "server" starts `vllm serve` on a free port of this machine and stops it at the end; "inprocess" loads
            `vllm.LLM` here, which saves the server's overhead but answers calls in batches that wait for their slowest.
        tensor_parallel: GPUs to spread the model over.
        gpu_memory: share of each GPU's memory that vLLM takes.
        max_model_len: context in tokens; None = the model's own.
        dtype: "auto", "bfloat16", "float16" or "float32".
        args: with "server", further arguments of `vllm serve`, for example ["--reasoning-parser", "qwen3"].
        engine_args: with "inprocess", further arguments of `vllm.LLM`.
        executable: the `vllm` program; it may be that of another virtual environment.
        start_timeout: seconds that loading may take.
        temperature: 0 = greedy. With a value above 0 every call gets its own seed.
        max_tokens: most tokens of a reply.
        top_p: nucleus sampling; None = vLLM's default.
        stop: strings that end a reply, also in the middle of its reasoning. Text in the world's name is cut off without them.
        extra_body: with "server", further request fields ({"chat_template_kwargs": {"enable_thinking": false}}).
        concurrency: most calls at once.
        request_timeout: with "server", seconds of one attempt.
        total_timeout: with "server", seconds of one call with all its attempts.
        max_retries: with "server", attempts after the first one.
        cache: with "server", path of a SQLite file with replies, or None.
        decode: "generate", or with "server" "rank": the admissible action that the model finds most likely.
        tokens: record token ids and log-probabilities of sampled replies, in the record and for `take`. "inprocess" goes on
            from the sampled tokens of earlier turns; "server" tokenises each prompt anew, so that a call whose prompt does not
            begin with the tokens of the one before becomes a training row of its own. Not with `top_p`, which would enter
            vLLM's log-probabilities.
        label: short name for folders and tables; None = last part of `name`.

    Raises:
        UserError: a setting has an impossible value.
    """

    def __init__(
        self,
        *,
        name: str,
        mode: Literal["server", "inprocess"] = "server",
        tensor_parallel: int = 1,
        gpu_memory: float = 0.9,
        max_model_len: int | None = None,
        dtype: str = "auto",
        args: list[str] | None = None,
        engine_args: dict[str, Any] | None = None,
        executable: str = "vllm",
        start_timeout: float = 1200.0,
        temperature: float = 0.0,
        max_tokens: int = 256,
        top_p: float | None = None,
        stop: list[str] | None = None,
        extra_body: dict[str, Any] | None = None,
        concurrency: int = 64,
        request_timeout: float = 300.0,
        total_timeout: float = 900.0,
        max_retries: int = 8,
        cache: str | None = None,
        decode: Literal["generate", "rank"] = "generate",
        tokens: bool = False,
        label: str | None = None,
    ) -> None:
        self.name, self.mode, self.decode, self.concurrency, self.tokens = name, mode, decode, concurrency, tokens
        self.label = label or name.rstrip("/").rsplit("/", 1)[-1]
        self.sampling = Sampling(float(temperature), max_tokens, top_p, tuple(stop or ()))
        self.start_timeout, self.executable = start_timeout, executable
        self._options: dict[str, Any] = {
            "tensor_parallel_size": tensor_parallel,
            "gpu_memory_utilization": gpu_memory,
            "dtype": dtype,
        }
        if max_model_len is not None:
            self._options["max_model_len"] = max_model_len
        self._args, self._engine_args = list(args or ()), dict(engine_args or {})
        if tokens and mode == "server":
            self._args += ["--logprobs-mode", "processed_logprobs"]
            extra_body = {**(extra_body or {}), "return_token_ids": True, "logprobs": True}
        self._sampled = SampledChats(tokens)
        self._client_settings: dict[str, Any] = {
            "name": name,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
            "stop": stop,
            "extra_body": extra_body,
            "concurrency": concurrency,
            "request_timeout": request_timeout,
            "total_timeout": total_timeout,
            "max_retries": max_retries,
            "cache": cache,
            "decode": decode,
            "api_key_env": "AGENTEXP_NO_KEY",  # a server of our own wants none, and OPENAI_API_KEY is not for it
        }
        self._server: ServerProcess | None = None
        self._client: OpenAIModel | None = None
        self._engine: Engine | None = None
        self._check_settings()

    def _check_settings(self) -> None:
        if self.mode not in ("server", "inprocess"):
            raise UserError(f"model.mode={self.mode} is not possible; choose one of: server, inprocess.")
        if self.mode == "inprocess" and self.decode != "generate":
            raise UserError("model.decode=rank needs model.mode=server.")
        if self.tokens and self.sampling.top_p not in (None, 1.0):
            raise UserError("model.tokens=true needs model.top_p=null: vLLM's log-probabilities include the nucleus.")
        if self.tokens and self._client_settings["cache"] is not None:
            raise UserError("model.tokens=true needs model.cache=null: a kept reply was not sampled by these weights.")
        if taken := [arg for arg in self._args if arg.split("=", 1)[0] in _OWN]:
            raise UserError(f"model.args must not hold {', '.join(taken)}: agentexp chooses address and name itself.")
        # Wrong settings of the client should not cost the time to load a model first.
        OpenAIModel(**self._client_settings, base_url="http://127.0.0.1:1/v1")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_server": None, "_client": None, "_engine": None}

    @property
    def server_url(self) -> str:
        """Base address of the server (ends in /v1), once started. Raises `UserError` before, and with `mode=inprocess`."""
        if self._client is None:
            raise UserError("vLLM has no address before start(), nor with model.mode=inprocess.")
        return self._client.base_url

    # ------------------------------------------------------------------------------------------------------ protocol

    async def start(self) -> None:
        """Start the server and wait until it is healthy, or load the engine.

        Raises:
            MissingDependency: vLLM is not installed.
            UserError: the server ended, or was not ready within `start_timeout`; the message quotes its last lines.
        """
        if self.mode == "inprocess":
            if self._engine is None:
                from agentexp.models.vllm_inprocess import Engine

                sampled = self._sampled if self.tokens else None
                self._engine = await Engine.load(self.name, {**self._options, **self._engine_args}, sampled)
            return
        if self._client is not None:
            return
        port = _free_port()
        base_url = f"http://127.0.0.1:{port}/v1"
        server = ServerProcess(_guarded(self.command(port)), f"`vllm serve {self.name}`")

        async def healthy() -> bool:
            return server.alive and await _answers(f"http://127.0.0.1:{port}/health")

        await server.wait_ready(healthy, self.start_timeout, "model.start_timeout")
        self._server, self._client = server, OpenAIModel(**self._client_settings, base_url=base_url)
        try:
            await self._client.start()
        except BaseException:
            await self.close()
            raise

    def command(self, port: int) -> list[str]:
        """The command line of the server.

        Raises:
            MissingDependency: there is no such program.
        """
        beside = Path(sys.executable).parent / self.executable
        program = shutil.which(self.executable) or (str(beside) if beside.is_file() else None)
        if program is None:
            raise MissingDependency(
                f"model=vllm needs vLLM: {INSTALL}; or set model.executable to the `vllm` of another place."
            )
        options = [text for key, value in self._options.items() for text in (f"--{key.replace('_', '-')}", str(value))]
        address = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", self.name]
        return [program, "serve", self.name, *address, *options, *self._args]

    async def chat(self, request: Request) -> Completion:
        """Answer; see `Model.chat`. A server that has died fails the call at once with its last words."""
        if self._engine is not None:
            return await self._engine.chat(request)
        if self._client is None or self._server is None:
            raise ModelError("vLLM has not been started.")
        self._check_alive(self._server)
        try:
            reply = await self._client.chat(request)
        except ModelError as error:
            self._check_alive(self._server, error)
            raise
        if self.tokens:
            self._record(request, reply)
        return reply

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        """Sampled calls by conversation, see `RecordsTokens`; empty unless `tokens`."""
        return self._sampled.take(prefix)

    def _record(self, request: Request, reply: Completion) -> None:
        """Keep what the server says that it was given and sampled; replies that were ranked sampled nothing."""
        prompt = reply.info.pop("prompt_token_ids", None)
        if reply.info.get("decode") == "rank":
            return
        tokens, logprobs = reply.token_ids, reply.logprobs
        if not prompt or tokens is None or logprobs is None or len(tokens) != len(logprobs):
            raise FatalError(
                "model.tokens=true needs a vLLM that returns token ids (return_token_ids, version 0.10.2 or later)."
            )
        ended = reply.finish_reason != "length"
        self._sampled.add(request, reply.text, Sampled(prompt, tokens, logprobs, ended, request.sampling.temperature))

    def _check_alive(self, server: ServerProcess, cause: Exception | None = None) -> None:
        if not server.alive:
            raise ModelError(f"{server.name} has ended. {server.said()}") from cause

    async def close(self) -> None:
        """Stop the server or drop the engine."""
        client, server, engine = self._client, self._server, self._engine
        self._client = self._server = self._engine = None
        if client is not None:
            await client.close()
        if server is not None:
            await server.stop()
        if engine is not None:
            await engine.close()

    def versions(self) -> dict[str, str]:
        """Version of vLLM ("other environment" where the program is not of this one) and the model's name."""
        return {"vllm": version_of("vllm", "other environment"), "model": self.name}


def _guarded(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "agentexp.models.guard", *command]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _answers(url: str) -> bool:
    import aiohttp

    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session, session.get(url) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
