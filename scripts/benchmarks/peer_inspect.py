"""The workload in inspect-ai, as its documentation does it: a solver that calls `generate` and appends what the world says."""

from __future__ import annotations

import tempfile

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from peer_process import Load, serve


@solver
def play(turns: int, observation: str, replies: list[int]) -> Solver:
    """So many turns in the same world; `replies` gets the number of them for each episode that ended."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for _ in range(turns):
            state = await generate(state)
            state.messages.append(ChatMessageUser(content=observation))
        replies.append(sum(message.role == "assistant" for message in state.messages))
        return state

    return solve


def drive(load: Load) -> int:
    """One `eval` with a log, without a display and without a scorer."""
    begin = [ChatMessageSystem(content=load.system), ChatMessageUser(content=load.observation)]
    replies: list[int] = []
    task = Task(
        dataset=MemoryDataset([Sample(input=list(begin), id=str(i)) for i in range(load.episodes)]),
        solver=play(load.turns, load.observation, replies),
    )
    config = GenerateConfig(temperature=0.0, max_tokens=256, max_connections=load.in_flight)
    model = get_model("openai-api/fake/fake", base_url=load.url, api_key="none", config=config)
    with tempfile.TemporaryDirectory() as folder:
        (log,) = eval(task, model=model, max_samples=load.in_flight, display="none", log_dir=folder)
    if log.status != "success":
        raise RuntimeError(str(log.error))
    return sum(replies)


if __name__ == "__main__":
    serve(drive)
