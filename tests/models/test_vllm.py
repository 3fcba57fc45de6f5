import asyncio
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from agentexp.core import Message, Model, Request, Sampling
from agentexp.errors import ContextOverflow, FatalError, MissingDependency, ModelError, UserError
from agentexp.models import guard
from agentexp.models.vllm import VllmModel
from agentexp.training.core import RecordsTokens, Sampled, rows

FAKE = Path(__file__).with_name("fake_vllm.py")


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "vllm"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def assert_gone(processes: list[psutil.Process], seconds: float = 15) -> None:
    _, alive = psutil.wait_procs(processes, seconds)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_serves_and_leaves_nothing(program: str, request_for: Callable[..., Request]) -> None:
    async def run() -> None:
        model = VllmModel(name="org/tiny", executable=program, max_model_len=512, args=["--enforce-eager"])
        assert isinstance(model, Model) and model.label == "tiny"
        await model.start()
        await model.start()
        assert model._server is not None
        processes = family(model._server.pid)
        assert len(processes) >= 2
        reply = await model.chat(request_for("hello"))
        for part in ("'serve', 'org/tiny', '--host', '127.0.0.1'", "'--max-model-len', '512'", "'--enforce-eager'", "hello"):
            assert part in reply.text
        assert reply.usage.prompt_tokens == 3
        assert model.server_url.startswith("http://127.0.0.1:")
        assert pickle.loads(pickle.dumps(model))._server is None
        await model.close()
        await model.close()
        assert_gone(processes, 2)
        with pytest.raises(ModelError, match="not been started"):
            await model.chat(request_for("hello"))

    asyncio.run(run())


def test_server_that_cannot_start(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "die")
    with pytest.raises(UserError, match=r"`vllm serve tiny` ended with exit code 3 .*no GPU here"):
        asyncio.run(VllmModel(name="tiny", executable=program).start())
    monkeypatch.setenv("FAKE_VLLM", "slow")
    with pytest.raises(UserError, match=r"not ready within model.start_timeout=1 seconds"):
        asyncio.run(VllmModel(name="tiny", executable=program, start_timeout=1).start())


def test_server_that_dies(program: str, request_for: Callable[..., Request]) -> None:
    async def run() -> None:
        model = VllmModel(name="tiny", executable=program, max_retries=1)
        await model.start()
        assert model._server is not None
        for process in reversed(family(model._server.pid)):
            process.kill()
        for _ in range(100):
            if not model._server.alive:
                break
            await asyncio.sleep(0.05)
        with pytest.raises(ModelError, match="has ended"):
            await model.chat(request_for("hello"))
        await model.close()

    asyncio.run(run())


SCRIPT = """
import asyncio, sys
from agentexp.models.vllm import VllmModel
from agentexp.training.core import RecordsTokens, Sampled, rows
async def main():
    model = VllmModel(name="tiny", executable=sys.argv[1])
    await model.start()
    print(model._server.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.slow
def test_even_a_stubborn_server_ends_with_a_killed_parent(program: str) -> None:
    environment = {**os.environ, "FAKE_VLLM": "stubborn"}
    command = [sys.executable, "-c", SCRIPT, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        processes = family(int(parent.stdout.readline()))
        assert len(processes) >= 3  # guard, server, its child
        parent.kill()
    assert_gone(processes, guard.GRACE_SECONDS + 10)


def test_guard_passes_the_exit_code_on() -> None:
    command = [sys.executable, "-m", "agentexp.models.guard", sys.executable, "-c", "raise SystemExit(7)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        assert child.wait(20) == 7
    command[-1] = "import time; time.sleep(60)"
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        time.sleep(0.5)
        child.terminate()
        assert child.wait(20) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "cluster"}, "choose one of: server, inprocess"),
        ({"mode": "inprocess", "decode": "rank"}, "needs model.mode=server"),
        ({"args": ["--port=1"]}, "must not hold --port=1"),
        ({"concurrency": 0}, "model.concurrency"),
        ({"tokens": True, "top_p": 0.9}, "model.top_p=null"),
        ({"tokens": True, "cache": "replies.sqlite"}, "model.cache=null"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        VllmModel(name="tiny", **settings)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    for settings in ({"executable": "no-such-vllm"}, {"mode": "inprocess"}):
        with pytest.raises(MissingDependency, match=r"pip install 'agentexp\[vllm\]'"):
            asyncio.run(VllmModel(name="tiny", **settings).start())  # type: ignore[arg-type]


class FakeLLM:
    """The part of `vllm.LLM` that is used; characters are tokens."""

    batches: list[int]

    def __init__(self, model: str, **options: Any) -> None:
        assert options["tensor_parallel_size"] == 1 and options["seed"] == 5
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=50))
        FakeLLM.batches = []

    def get_tokenizer(self) -> Any:
        def apply(messages: list[dict[str, str]], **options: Any) -> list[int]:
            assert options == {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
            return [ord(letter) for message in messages for letter in message["content"]]

        return SimpleNamespace(apply_chat_template=apply)

    def generate(self, prompts: list[dict[str, Any]], params: list[Any], use_tqdm: bool) -> list[Any]:
        FakeLLM.batches.append(len(prompts))
        time.sleep(0.05)
        texts = ["".join(map(chr, prompt["prompt_token_ids"])) for prompt in prompts]
        if "boom" in texts:
            raise RuntimeError("CUDA error")
        outputs = []
        for text, p in zip(texts, params, strict=True):
            reply = SimpleNamespace(text=text.upper(), token_ids=[1, 2], finish_reason="stop")
            outputs.append(SimpleNamespace(outputs=[reply], num_cached_tokens=p["max_tokens"]))
        return outputs


def test_in_process(monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request]) -> None:
    fake = ModuleType("vllm")
    fake.LLM, fake.SamplingParams = FakeLLM, dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", fake)

    async def run() -> None:
        model = VllmModel(name="tiny", mode="inprocess", engine_args={"seed": 5})
        await model.start()
        sampling = Sampling(max_tokens=7)
        calls = [model.chat(request_for(f"call {i}", sampling=sampling)) for i in range(5)]
        replies = await asyncio.gather(*calls)
        assert [reply.text for reply in replies] == [f"CALL {i}" for i in range(5)]
        assert FakeLLM.batches == [5]
        assert (replies[0].usage.prompt_tokens, replies[0].usage.completion_tokens) == (6, 2)
        assert replies[0].usage.cached_tokens == 7 and replies[0].token_ids == [1, 2]
        with pytest.raises(ContextOverflow, match="60 tokens"):
            await model.chat(request_for(messages=[Message("user", "x" * 60)]))
        with pytest.raises(ModelError, match="CUDA error"):
            await model.chat(request_for("boom"))
        assert (await model.chat(request_for("after"))).text == "AFTER"
        await model.close()
        await model.close()

    asyncio.run(run())


def test_server_returns_the_tokens(program: str, request_for: Callable[..., Request], monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        model = VllmModel(name="tiny", executable=program, tokens=True)
        assert isinstance(model, RecordsTokens)
        await model.start()
        reply = await model.chat(request_for("abc", chat="t|x", sampling=Sampling(0.5)))
        assert "'--logprobs-mode', 'processed_logprobs'" in reply.text
        assert (reply.token_ids, reply.logprobs, reply.info) == ([5, 6], [-0.5, -0.25], {})
        assert model.take("s|") == {}
        assert model.take("t|") == {"t|x": [Sampled([97, 98, 99], [5, 6], [-0.5, -0.25], True, 0.5)]}
        await model.close()
        monkeypatch.setenv("FAKE_VLLM", "old")
        await model.start()
        with pytest.raises(FatalError, match="returns token ids"):
            await model.chat(request_for("abc"))
        await model.close()

    asyncio.run(run())


def test_in_process_goes_on_from_sampled_tokens(monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request]) -> None:
    pytest.importorskip("transformers", reason="needs agentexp[train]")
    from agentexp.training.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    he, llo, end = tokenizer.convert_tokens_to_ids(["he", "llo", "<|im_end|>"])

    class Sampler:
        def __init__(self, model: str, **options: Any) -> None:
            assert options["logprobs_mode"] == "processed_logprobs"
            self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=500))

        def get_tokenizer(self) -> Any:
            return tokenizer

        def generate(self, prompts: list[dict[str, Any]], params: list[Any], use_tqdm: bool) -> list[Any]:
            assert all(p["logprobs"] == 0 for p in params)
            logprobs = [{token: SimpleNamespace(logprob=-1.0)} for token in (he, llo, end)]
            reply = SimpleNamespace(text="hello", token_ids=[he, llo, end], finish_reason="stop", logprobs=logprobs)
            return [SimpleNamespace(outputs=[reply], num_cached_tokens=0) for _ in prompts]

    fake = ModuleType("vllm")
    fake.LLM, fake.SamplingParams = Sampler, dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", fake)

    async def run() -> None:
        model = VllmModel(name="tiny", mode="inprocess", tokens=True)
        await model.start()
        talk = [Message("user", "say hello")]
        for _ in range(3):
            reply = await model.chat(request_for(messages=list(talk), chat="t|x", sampling=Sampling(1.0)))
            assert reply.token_ids == [he, llo, end] and reply.logprobs == [-1.0] * 3
            talk += [Message("assistant", reply.text), Message("user", "again")]
        (row,) = rows(model.take("t|")["t|x"])
        assert [t for t, counts in zip(row.ids, row.trained, strict=True) if counts] == [he, llo, end] * 3
        await model.close()

    asyncio.run(run())
