"""vLLM as rollout engine, with stand-ins for the interfaces of TRL's helpers. The real engine was not run."""

from __future__ import annotations

import asyncio
import sys
import types
from dataclasses import dataclass, field
from typing import Any

import pytest
from grpo_kit import END, CharFormat, playing

from agentexp.core import Sampling
from agentexp.envs.toy import ToyRooms
from agentexp.errors import MissingDependency, UserError
from agentexp.training.grpo.draws import Group
from agentexp.training.grpo.vllm import Reply, TokenSampler, VllmEngine, open_vllm

LOOK = [*map(ord, "Action: look"), END]


def play(sampler: Any, steps: int = 3, size: int = 3) -> Any:
    env = ToyRooms()
    rollouts = playing(env, {"_target_": "agentexp.envs.toy.ToyRooms"}, steps=steps)
    groups = [Group(0, "task", env.tasks("train")[0])]

    async def run() -> Any:
        played = await rollouts.play(sampler, Sampling(1.0, 30), groups, size)
        await sampler.close()
        return played

    return asyncio.run(run())[0]


def test_episodes_get_exactly_the_tokens_of_the_engine_in_batches() -> None:
    batches: list[int] = []

    def generate(prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        batches.append(len(prompts))
        assert sampling == Sampling(1.0, 30)
        return [Reply(list(LOOK), [-0.25] * len(LOOK)) for _ in prompts]

    played = play(TokenSampler(CharFormat(), generate, Sampling(), 10_000, [END], "m"))
    for one in played:
        (row,) = one.rows  # every prompt extends the one before
        assert [t for t, on in zip(row.ids, row.trained, strict=True) if on] == LOOK * 3
        assert {p for p, on in zip(row.logprobs, row.trained, strict=True) if on} == {-0.25}
        assert one.cut_replies == 0
    assert sum(batches) == 9 and max(batches) == 3


def test_a_cut_reply_and_a_full_window_are_seen() -> None:
    def generate(prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        return [Reply(LOOK[:-1], [-0.25] * (len(LOOK) - 1)) for _ in prompts]

    played = play(TokenSampler(CharFormat(), generate, Sampling(), 10_000, [END], "m"))
    assert all(one.cut_replies == one.replies == 3 for one in played)
    short = play(TokenSampler(CharFormat(), generate, Sampling(), 50, [END], "m"))
    assert all(one.end_reason == "context_limit" and one.fate == "no_tokens" for one in short)


def test_an_engine_that_fails_costs_the_rollout_not_the_training() -> None:
    def generate(prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        raise RuntimeError("out of memory")

    played = play(TokenSampler(CharFormat(), generate, Sampling(), 10_000, [END], "m"))
    assert {one.fate for one in played} == {"harness"} and "out of memory" in played[0].error


@dataclass
class Generation:
    """The part of `trl.generation.vllm_generation.VLLMGeneration` that is used."""

    settings: dict[str, Any]
    synced: int = 0
    calls: list[Any] = field(default_factory=list)
    temperature: float = -1.0
    max_completion_length: int = -1

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, prompts: Any, images: Any, num_generations: int) -> Any:
        self.calls.append((self.temperature, self.max_completion_length, images, num_generations))
        return prompts, [list(LOOK) for _ in prompts], [[[-0.5]] * len(LOOK) for _ in prompts], None


@dataclass
class Client:
    """The part of `VLLMClient` that is used."""

    settings: dict[str, Any]
    calls: list[Any] = field(default_factory=list)

    def generate(self, **request: Any) -> Any:
        self.calls.append(request)
        prompts = request["prompts"]
        return {"completion_ids": [list(LOOK) for _ in prompts], "logprobs": [[[-0.5]] * len(LOOK) for _ in prompts]}


def test_colocated_and_served_engines_are_asked_as_trl_wants_it() -> None:
    for client in (None, Client({})):
        generation = Generation({})
        engine = VllmEngine(
            generation, client, lambda generate: TokenSampler(CharFormat(), generate, Sampling(), 10_000, [END], "m")
        )
        engine.sync()
        played = play(engine.sampler)
        assert generation.synced == 1
        assert all(one.rows[0].logprobs[-1] == -0.5 for one in played)
        if client is None:
            assert set(generation.calls) == {(1.0, 30, None, 1)}
        else:
            assert not generation.calls
            asked = {tuple(call[name] for name in ("n", "temperature", "max_tokens", "logprobs")) for call in client.calls}
            assert asked == {(1, 1.0, 30, 0)}


def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    made: dict[str, Any] = {}

    def generation(**settings: Any) -> Generation:
        return made.setdefault("generation", Generation(settings))

    def client(**settings: Any) -> Client:
        return made.setdefault("client", Client(settings))

    modules = {
        "vllm": {},
        "trl": {},
        "trl.generation": {},
        "trl.generation.vllm_generation": {"VLLMGeneration": generation},
        "trl.generation.vllm_client": {"VLLMClient": client},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__spec__ = types.SimpleNamespace(name=name)  # type: ignore[assignment]
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_opening_hands_everything_over(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the tokenizer needs transformers")
    from agentexp.training.tiny import tiny_tokenizer

    made, tokenizer = fakes(monkeypatch), tiny_tokenizer()
    learner: Any = types.SimpleNamespace(policy=object(), accelerator=object())
    open_vllm(learner, tokenizer, Sampling(0.9, 77), {}, 999, "m")
    settings = made["generation"].settings
    assert settings["model"] is learner.policy and settings["accelerator"] is learner.accelerator
    assert (settings["mode"], settings["temperature"], settings["max_completion_length"]) == ("colocate", 0.9, 77)
    assert settings["max_model_length"] == 999 and not settings["enable_sleep_mode"] and "client" not in made
    made.clear()
    open_vllm(learner, tokenizer, Sampling(1.0, 5), {}, 999, "m", mode="server", server="http://s:1")
    assert made["client"].settings["base_url"] == made["generation"].settings["server_base_url"] == "http://s:1"
    with pytest.raises(UserError, match="colocate or server"):
        open_vllm(learner, tokenizer, Sampling(), {}, 9, "m", mode="nowhere")  # type: ignore[arg-type]


def test_the_stand_ins_have_the_signatures_of_trl() -> None:
    """Every keyword that is handed over exists in the installed TRL."""
    pytest.importorskip("trl", reason="compares with TRL's signatures")
    import ast
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec("trl")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "generation"

    def parameters(file: str, owner: str, method: str) -> set[str]:
        tree = ast.parse((folder / file).read_text())
        (kind,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
        (found,) = [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == method]
        return {argument.arg for argument in found.args.args}

    init = parameters("vllm_generation.py", "VLLMGeneration", "__init__")
    used = {"model", "accelerator", "processing_class", "mode", "server_base_url", "server_timeout", "group_port"}
    used |= {
        "gpu_memory_utilization",
        "max_model_length",
        "enable_sleep_mode",
        "temperature",
        "max_completion_length",
        "logprobs",
    }
    assert used <= init
    assert {"prompts", "images", "num_generations"} <= parameters("vllm_generation.py", "VLLMGeneration", "generate")
    assert {"base_url", "connection_timeout"} <= parameters("vllm_client.py", "VLLMClient", "__init__")
    assert {"prompts", "n", "temperature", "max_tokens", "logprobs"} <= parameters("vllm_client.py", "VLLMClient", "generate")


def test_without_vllm_there_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'agentexp\[train,vllm\]'"):
        open_vllm(None, None, Sampling(), {}, 9, "m")  # type: ignore[arg-type]
