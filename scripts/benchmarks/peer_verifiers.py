"""The workload in verifiers, as its documentation does it: a `MultiTurnEnv` and a rubric, evaluated."""

from __future__ import annotations

import asyncio
from typing import Any

import verifiers as vf
from datasets import Dataset
from peer_process import Load, serve
from verifiers.types import ClientConfig


class Kitchen(vf.MultiTurnEnv):
    """The same world for ever."""

    def __init__(self, observation: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.observation = observation

    async def env_response(self, messages: vf.Messages, state: vf.State, **_: Any) -> vf.Messages:
        """What the world says after each reply."""
        return [vf.UserMessage(content=self.observation)]


def won(completion: vf.Messages, **_: Any) -> float:
    """The reward: nobody wins."""
    return 0.0


def drive(load: Load) -> int:
    """One evaluation, without a progress bar."""
    prompt = [{"role": "system", "content": load.system}, {"role": "user", "content": load.observation}]
    env = Kitchen(
        load.observation,
        eval_dataset=Dataset.from_list([{"prompt": prompt, "answer": "", "example_id": i} for i in range(load.episodes)]),
        rubric=vf.Rubric(funcs=[won]),
        max_turns=load.turns,
    )
    outputs = asyncio.run(
        env.evaluate(
            ClientConfig(api_key_var="NO_KEY", api_base_url=load.url),
            "fake",
            sampling_args={"temperature": 0.0, "max_tokens": 256},
            max_concurrent=load.in_flight,
            on_progress=lambda *_: None,
        )
    )
    failed = [output["error"] for output in outputs["outputs"] if output.get("error")]
    if failed:
        raise RuntimeError(str(failed[0]))
    return sum(message["role"] == "assistant" for output in outputs["outputs"] for message in output["completion"])


if __name__ == "__main__":
    serve(drive)
