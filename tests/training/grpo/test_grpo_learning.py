"""End to end: a policy whose reward really rises. The sign of the gradient is right from the world to the weights."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("accelerate", reason="train-grpo needs accelerate")

from grpo_kit import Doors, RunStub, config, trainer  # noqa: E402

from agentexp.core import Message  # noqa: E402
from agentexp.paradigms.react import ReAct  # noqa: E402
from agentexp.training.base import Base  # noqa: E402
from agentexp.training.chat import TemplateFormat  # noqa: E402
from agentexp.training.grpo.rewards import Success  # noqa: E402
from agentexp.training.tiny import make_tiny  # noqa: E402

torch.set_num_threads(1)


def taught(folder: Path) -> Path:
    """A tiny model that has seen both doors taken, the wrong one three times as often: it wins about one time in four."""
    base = Base(path=str(make_tiny(folder / "random")), device="cpu")
    model, tokenizer = base.load_model(), base.load_tokenizer()
    env, react = Doors(), ReAct(style="compact")
    first = env.reset(env.tasks("train")[0])
    prompt = [Message("system", react.system(env.card, env.name)), Message("user", react.first(first, 1, first.goal))]
    chats = TemplateFormat(tokenizer)
    replies = [f"Action: go {side}" for side in ("left", "left", "left", "right")]
    rows = [chats.supervised([*prompt, Message("assistant", reply)]) for reply in replies]
    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in rows])
    labels = torch.full_like(ids, -100)
    for i, row in enumerate(rows):
        labels[i, : len(row.ids)] = torch.tensor([t if on else -100 for t, on in zip(row.ids, row.trained, strict=True)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(150):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder / "taught")
    tokenizer.save_pretrained(folder / "taught")
    return folder / "taught"


@pytest.mark.slow
def test_the_reward_rises(tmp_path: Path) -> None:
    made = trainer(
        str(taught(tmp_path)),
        ratio="1:0",
        groups=2,
        group_size=8,
        max_steps=30,
        task_steps=1,
        lr=1e-4,
        task_reward=Success(),
        save_every=30,
        rollout={"max_tokens": 24, "concurrency": 16},
    )
    run = RunStub(tmp_path / "run", config("grpo_kit.Doors"))
    made.train(run)
    rewards = [run.recorded[step]["task/reward"] for step in range(1, 31)]
    print(rewards)
    early, late = rewards[:8], rewards[-8:]
    gain = statistics.mean(late) - statistics.mean(early)
    error = (statistics.variance(early) / 8 + statistics.variance(late) / 8) ** 0.5
    assert gain - 2.6 * error > 0, f"gain {gain:.2f} +- {error:.2f}"  # 99 %
    assert statistics.mean(early) < 0.6 < 0.9 < statistics.mean(late)
    assert max(run.recorded[step]["logprob_diff_max"] for step in range(1, 31)) < 1e-3
