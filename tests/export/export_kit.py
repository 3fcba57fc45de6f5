"""Run folders of the toy world with scripted agents, and one written by hand with everything that can go wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentexp.core import Call, Episode, Message, StepRecord, Task, Usage
from agentexp.envs.toy import ToyRooms
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.explore_then_act import ExploreThenAct
from agentexp.paradigms.map.paradigm import MapThenAct
from agentexp.paradigms.react import ReAct
from agentexp.plan import run_folder
from agentexp.records import episode_to_json
from agentexp.rollout import Budget, Limits
from agentexp.run import Run
from agentexp.runner import run_sync
from agentexp.store import RunFolder, write_json

UNICODE = "Gedanke: naïve 漢字 🙂 \u2028 \r\n\ttab \"quoted\", 'comma'; <b> & NUL-free"
LONE = "half a pair: \ud83d end"


def toy_run(root: Path, paradigm: str = "react", policy: str = "oracle", **options: Any) -> Path:
    """Run the toy world in this process; returns the run folder."""
    made = {"react": ReAct, "explore_then_act": lambda: ExploreThenAct(explore_steps=6)}
    made["map"] = lambda: MapThenAct(stage1=False)
    model = ScriptedModel(policy)
    roles = {"explorer": ScriptedModel("curious"), "summariser": ScriptedModel("curious")}
    models = {"actor": model, **(roles if paradigm == "explore_then_act" else {})}
    config = {"command": "eval", "env": {"name": "toy"}, "paradigm": {"name": paradigm}, "model": {"name": model.label}}
    config["roles"] = {role: {"policy": "curious"} for role in models if role != "actor"}
    run = Run(
        command="eval",
        config=config,
        env=ToyRooms(n_tasks=3),
        env_spec={"_target_": "agentexp.envs.toy.ToyRooms", "n_tasks": 3},
        models=models,
        paradigm=made[paradigm](),
        budget=Budget(0, 8, 6) if paradigm == "explore_then_act" else Budget(6, 8),
        folder=run_folder(root, "eval", "toy", paradigm, model.label, config),
        output_root=root,
        split="test",
        limits=Limits(attempts=1),
        in_process=True,
        progress="off",
        **options,
    )
    run_sync(run)
    return run.folder


def episode(number: int, **more: Any) -> Episode:
    """A hand-made episode of two calls: one reply is cut by the parser, one is unreadable."""
    task = Task(f"g/{number}", "house", "dev", kind="käse", spec={"n": number})
    made = Episode(task, "react", "made-up", end_reason="won", success=True, score=1.0, goal=f"Find {UNICODE}", **more)
    made.chats["acting"] = [
        Message("system", f"You act. {UNICODE}"),
        Message("user", "Start."),
        Message("assistant", "I ponder."),
        Message("user", "That could not be read."),
        Message("assistant", f"{UNICODE}\nAction: look"),
        Message("user", "A prompt that nobody answered."),
    ]
    made.chats["acting.2"] = [Message("user", "A rewritten prompt that nobody answered.")]
    usage = Usage(100, 10, 40, 1, 0.01)
    made.calls = [
        Call(
            "acting", 2, "actor", "act", "acting", usage, 0.5, "stop", reasoning="Hm.", token_ids=[7, 8], logprobs=[-0.5, -1.0]
        ),
        Call("acting", 4, "actor", "act", "acting", usage, 0.25, "length", raw=f"{LONE}\nAction: look\nObservation: gold"),
        Call("lost", 0, "extractor", "map_extractor", "acting", usage, 0.1, "stop"),
    ]
    made.trajectory = [
        StepRecord("acting", None, "invalid", "That could not be read.", 0.0, False, False, True, 0, flags=["empty"]),
        StepRecord("acting", "look", "ok", LONE, 1.0, True, True, False, 1, seconds=0.2, info={"room": "küche"}),
    ]
    made.usage, made.usage_by_role = usage + usage + usage, {"actor": usage + usage, "extractor": usage}
    made.steps, made.steps_by_phase, made.notes = 2, {"acting": 2}, {"summary": UNICODE, "odd": LONE}
    return made


def hand_made(folder: Path, *, planned: int = 5, config: dict[str, Any] | None = None) -> Path:
    """Four records of a plan of five: won, failed at the step limit, harness error, a phase without success criterion."""
    failed = episode(1)
    failed.success, failed.score, failed.end_reason = False, 0.25, "step_limit"
    broken = episode(2, status="error", error="Traceback (most recent call last):\n  File x\nEngineError: it died")
    broken.success, broken.score, broken.end_reason = False, 0.0, "env_error"
    explored = episode(3)
    explored.success, explored.score, explored.end_reason = False, 0.0, "completed"
    made = [episode(0), failed, broken, explored]
    keys = [done.task.key for done in made] + [f"house/dev/missing{i}#seed0.0" for i in range(planned - len(made))]
    with RunFolder(folder) as run:
        for done in made:
            run.append(episode_to_json(done))
    labels = {"schema": 1, "command": "eval", "env": "house", "paradigm": "react", "model": "made-up", "split": "dev"}
    created = "2026-01-02T03:04:05+00:00"
    write_json(
        folder / "manifest.json",
        {**labels, "seeds": [0], "repeats": 1, "planned": keys, "config": config or {}, "created": created},
    )
    return folder


def empty_run(folder: Path) -> Path:
    """A run that was stopped before anything finished."""
    with RunFolder(folder):
        pass
    write_json(folder / "manifest.json", {"schema": 1, "command": "eval", "env": "toy", "planned": ["toy/test/t#seed0.0"]})
    return folder
