"""The learner on a tiny random model: what it computes equals what the sampler recorded, and only that is changed."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
accelerate = pytest.importorskip("accelerate", reason="train-grpo needs accelerate")

from grpo_kit import playing  # noqa: E402

from agentexp.core import Sampling  # noqa: E402
from agentexp.envs.toy import ToyRooms  # noqa: E402
from agentexp.models.transformers import TransformersModel  # noqa: E402
from agentexp.training.base import Base  # noqa: E402
from agentexp.training.core import Row  # noqa: E402
from agentexp.training.grpo.batches import Sample  # noqa: E402
from agentexp.training.grpo.draws import Group  # noqa: E402
from agentexp.training.grpo.learner import Learner, Update  # noqa: E402
from agentexp.training.tiny import make_tiny  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"))


SAID: list[list[int]] = []  # what the tiny model sampled for `rolled`, call by call


@pytest.fixture(scope="module")
def rolled(tiny: Path) -> list[Row]:
    """Rows that the tiny model sampled in a world, at temperature 1.3."""
    base = Base(path=str(tiny), device="cpu")
    model = TransformersModel.of(base.load_model(), base.load_tokenizer(), tokens=True, batch=4, n_threads=1)
    env, take = ToyRooms(), model.take

    def remembered(prefix: str) -> Any:
        found = take(prefix)
        SAID.extend(list(call.tokens) for calls in found.values() for call in calls)
        return found

    model.take = remembered  # type: ignore[method-assign]

    async def play() -> list[Row]:
        await model.start()
        rollouts = playing(env, {"_target_": "agentexp.envs.toy.ToyRooms"}, steps=3)
        groups = [Group(i, kind, env.tasks("train")[i]) for i, kind in enumerate(("task", "explore"))]
        played = await rollouts.play(model, Sampling(1.3, 9), groups, 2)  # type: ignore[arg-type]
        await model.close()
        return [row for group in played for one in group for row in one.rows]

    return asyncio.run(play())


def learner(tiny: Path, adapters: bool = False, **update: Any) -> Learner:
    model = Base(path=str(tiny), device="cpu").load_model()
    if adapters:
        peft = pytest.importorskip("peft", reason="LoRA needs peft")
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", target_modules="all-linear"))
    return Learner(model, accelerate.Accelerator(cpu=True), Update(**{"lr": 1e-3, **update}))


def samples(rows: list[Row]) -> list[Sample]:
    return [Sample(row, (-1.0) ** i, 1 / (len(rows) * row.n_trained)) for i, row in enumerate(rows)]


def weights(made: Learner) -> list[Any]:
    return [parameter.detach().clone() for parameter in made.policy.parameters()]


def test_the_trainer_computes_the_log_probabilities_that_the_sampler_recorded(tiny: Path, rolled: list[Row]) -> None:
    found = learner(tiny, micro_batch_tokens=1500).logprobs(rolled)
    for row, values in zip(rolled, found, strict=True):
        recorded = [p for p, on in zip(row.logprobs, row.trained, strict=True) if on]
        assert values == pytest.approx(recorded, abs=2e-4)
    assert sum(map(len, found)) == sum(row.n_trained for row in rolled) > 0
    assert {row.temperature for row in rolled} == {1.3}


def test_trained_tokens_are_those_that_were_sampled_and_no_round_trip_through_text_would_give_them(
    tiny: Path, rolled: list[Row]
) -> None:
    """Case R01: byte-pair encoding is not one-to-one."""
    trained = [token for row in rolled for token, on in zip(row.ids, row.trained, strict=True) if on]
    assert sorted(trained) == sorted(token for tokens in SAID for token in tokens) and len(SAID) == 12
    tokenizer = Base(path=str(tiny), device="cpu").load_tokenizer()
    again = [tokenizer(tokenizer.decode(tokens), add_special_tokens=False).input_ids for tokens in SAID]
    assert again != SAID


def test_the_first_step_has_ratio_1_and_no_kl(tiny: Path, rolled: list[Row]) -> None:
    made = learner(tiny)
    told = made.step(0, samples(rolled))
    assert told["logprob_diff_max"] < 2e-4 and told["kl"] == pytest.approx(0, abs=1e-9) and told["clip_share"] == 0.0
    assert told["grad_norm"] > 0 and told["updated"] == 1.0
    assert told["trained_tokens"] == sum(row.n_trained for row in rolled)
    assert 0 < told["entropy"] < 6
    again = made.step(1, samples(rolled))
    assert again["kl"] > 0  # the reference has stayed where it was


def test_micro_batches_change_nothing(tiny: Path, rolled: list[Row]) -> None:
    whole, split = learner(tiny, weight_decay=0.0), learner(tiny, micro_batch_tokens=1)
    a, b = whole.step(0, samples(rolled)), split.step(0, samples(rolled))
    for name in ("loss", "grad_norm", "entropy", "kl"):
        assert a[name] == pytest.approx(b[name], abs=1e-4)


def test_the_gradient_goes_the_way_of_the_advantage(tiny: Path, rolled: list[Row]) -> None:
    made = learner(tiny, beta=0.0)
    before = made.logprobs(rolled)
    for step in range(5):
        made.step(step, samples(rolled))
    after = made.logprobs(rolled)
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        assert (sum(new) > sum(old)) == (i % 2 == 0)


def test_what_is_not_trained_has_no_influence_on_the_weights_gradient(tiny: Path, rolled: list[Row]) -> None:
    """A world token that nothing trained follows may be any other: the step is the same."""
    row = rolled[0]
    last = max(i for i, on in enumerate(row.trained) if on)
    longer = Row(
        [*row.ids[: last + 1], 7, 8, 9],
        [*row.trained[: last + 1], False, False, False],
        [*row.logprobs[: last + 1], 0, 0, 0],
        1.3,
    )
    other = copy.deepcopy(longer)
    other.ids[-3:] = [50, 60, 70]
    one, two = learner(tiny), learner(tiny)
    for made, some in ((one, longer), (two, other)):
        made.step(0, [Sample(some, 1.0, 1 / some.n_trained)])
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(two), strict=True))


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_without_advantage_only_the_kl_term_moves_the_policy(tiny: Path, rolled: list[Row], beta: float) -> None:
    made = learner(tiny, beta=beta)
    made.step(0, samples(rolled))
    moved = weights(made)
    flat = [Sample(row, 0.0, 0.01) for row in rolled]
    told = made.step(1, flat)
    assert (told["updated"] == 1.0) == bool(beta)
    assert all(torch.equal(a, b) for a, b in zip(moved, weights(made), strict=True)) == (not beta)
    left_out = [Sample(row, 0.0, 0.01, kl=0.0) for row in rolled]
    moved = weights(made)
    assert made.step(2, left_out)["updated"] == 0.0  # not even momentum
    assert all(torch.equal(a, b) for a, b in zip(moved, weights(made), strict=True))


def test_several_inner_epochs_use_the_old_log_probabilities(tiny: Path, rolled: list[Row]) -> None:
    some = samples(rolled)
    told = learner(tiny, inner_epochs=3, lr=1e-2, beta=0.0).step(0, some)
    assert told["updated"] == 3.0 and told["clip_share"] > 0
    for sample, row in zip(some, rolled, strict=True):
        assert [p for p, on in zip(sample.old, row.trained, strict=True) if on] == pytest.approx(
            [p for p, on in zip(row.logprobs, row.trained, strict=True) if on], abs=2e-4
        )


def test_adapters_have_their_base_as_reference(tiny: Path, rolled: list[Row]) -> None:
    made = learner(tiny, adapters=True, lr=1e-2)
    base = [parameter.clone() for name, parameter in made.policy.named_parameters() if "lora" not in name]
    assert made.step(0, samples(rolled))["kl"] == pytest.approx(0, abs=1e-9)
    assert made.step(1, samples(rolled))["kl"] > 0
    kept = [parameter for name, parameter in made.policy.named_parameters() if "lora" not in name]
    assert all(torch.equal(a, b) for a, b in zip(base, kept, strict=True))


def test_a_gradient_that_is_no_number_is_not_used(tiny: Path, rolled: list[Row]) -> None:
    made = learner(tiny)
    before = weights(made)
    told = made.step(0, [Sample(rolled[0], float("inf"), 1.0), *samples(rolled)[1:]])
    assert told["updated"] == 0.0 and told["skipped"] == 1.0 and told["grad_norm"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, weights(made), strict=True))


def test_the_learning_rate_is_a_function_of_the_step() -> None:
    constant, linear = Update(lr=1.0), Update(lr=1.0, lr_schedule="linear", warmup_steps=2, max_steps=12)
    assert {constant.rate(step) for step in range(300)} == {1.0}
    assert [linear.rate(step) for step in (0, 1, 2, 7, 12)] == [0.5, 1.0, 1.0, 0.5, 0.0]
    assert Update(lr=1.0, lr_schedule="cosine", max_steps=10).rate(5) == pytest.approx(0.5)
