"""The loss on tensors: test vectors, gradients, masks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from agentexp.training.grpo.batches import token_weights  # noqa: E402
from agentexp.training.grpo.loss import grpo_loss, token_logprobs  # noqa: E402

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))


def padded(rows: list[list[float]]) -> Any:
    longest = max(map(len, rows))
    return torch.tensor([row + [float("-inf")] * (longest - len(row)) for row in rows])  # what is masked may be anything


def mask_of(rows: list[list[float]]) -> Any:
    longest = max(map(len, rows))
    return torch.tensor([[i < len(row) for i in range(longest)] for row in rows])


def test_the_loss_equals_the_test_vector() -> None:
    file = SHARED / "spec" / "testvectors.json"
    if not file.is_file():
        pytest.skip("the specification's test vectors are not here")
    case = json.loads(file.read_text())["grpo_loss"]
    logp = case["logp"]
    weights = token_weights([len(row) for row in logp], range(len(logp)), "sequence", len(logp))
    parts = grpo_loss(
        padded(logp),
        padded(case["logp_old"]),
        padded(case["logp_ref"]),
        torch.tensor(case["adv"]),
        mask_of(logp),
        torch.tensor(weights),
        case["beta"],
        case["clip"],
    )
    assert [float(parts.loss), float(parts.policy), float(parts.kl)] == pytest.approx(case["loss_policy_kl"], abs=1e-7)
    assert int(parts.clipped) == 0  # 1.82 with a negative advantage is not clipped: min() keeps the worse of both


def test_the_literal_sum_of_eq_5_weighs_every_token_alike() -> None:
    logp = torch.tensor([[-1.0, -2.0], [-3.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True], [True, False]])
    weights = torch.tensor(token_weights([2, 1], [0, 1], "sum", 2))
    grpo_loss(logp, logp.detach(), None, torch.tensor([1.5, -0.5]), mask, weights, 0.0).loss.backward()
    assert torch.equal(logp.grad, -torch.tensor([[0.75, 0.75], [-0.25, 0.0]]))  # - A / G


def test_with_one_inner_epoch_the_gradient_is_that_of_a_log_pi() -> None:
    torch.manual_seed(0)
    logp = (-torch.rand(3, 5)).requires_grad_()
    mask = torch.rand(3, 5) < 0.6
    advantages, weights = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.1, 0.2, 0.3])
    grpo_loss(logp, logp.detach(), None, advantages, mask, weights, 0.0).loss.backward()
    expected = -torch.where(mask, (advantages * weights)[:, None], torch.zeros(()))
    assert torch.allclose(logp.grad, expected)


def test_clipping_stops_the_gradient_on_the_good_side_only() -> None:
    logp = torch.tensor([[0.5], [-0.5], [0.5], [-0.5]], requires_grad=True)  # ratios 1.65, 0.61
    parts = grpo_loss(
        logp,
        torch.zeros(4, 1),
        None,
        torch.tensor([1.0, -1.0, -1.0, 1.0]),
        torch.ones(4, 1, dtype=torch.bool),
        torch.ones(4),
        0.0,
    )
    parts.loss.backward()
    assert (logp.grad[:, 0] == 0).tolist() == [True, True, False, False]
    assert int(parts.clipped) == 2


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_the_gradient_on_environment_tokens_is_exactly_0(beta: float) -> None:
    torch.manual_seed(1)
    batch, length, vocabulary = 2, 9, 11
    logits = torch.randn(batch, length, vocabulary, requires_grad=True)
    ids = torch.randint(vocabulary, (batch, length))
    trained = torch.zeros(batch, length, dtype=torch.bool)
    trained[0, 3:5] = trained[1, 2] = trained[1, 7:] = True
    logp = torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
    reference = torch.where(trained[:, 1:], logp.detach() - 0.3, torch.full((), float("nan")))
    old = torch.where(trained[:, 1:], logp.detach() + 0.1, torch.full((), float("inf")))
    loss = grpo_loss(logp, old, reference, torch.tensor([1.0, -1.0]), trained[:, 1:], torch.ones(batch), beta).loss
    loss.backward()
    touched = (logits.grad != 0).any(-1)
    assert torch.equal(touched[:, :-1], trained[:, 1:]) and not touched[:, -1].any()
    assert torch.isfinite(logits.grad).all()


def test_splitting_the_batch_changes_nothing() -> None:
    torch.manual_seed(2)
    logp, old, reference = (-torch.rand(6, 4, dtype=torch.float64) for _ in range(3))
    mask, advantages, weights = torch.rand(6, 4) < 0.7, torch.randn(6).double(), torch.rand(6).double()
    whole = grpo_loss(logp, old, reference, advantages, mask, weights).loss
    parts = [
        grpo_loss(
            logp[i : i + 2], old[i : i + 2], reference[i : i + 2], advantages[i : i + 2], mask[i : i + 2], weights[i : i + 2]
        ).loss
        for i in (0, 2, 4)
    ]
    assert float(sum(parts)) == pytest.approx(float(whole), abs=1e-12)


def test_the_kl_term_is_never_negative_and_can_be_left_out_row_by_row() -> None:
    logp = torch.tensor([[-1.0], [-1.0]], requires_grad=True)
    reference = torch.tensor([[-2.0], [-2.0]])
    ones = torch.ones(2, 1, dtype=torch.bool)
    parts = grpo_loss(logp, logp.detach(), reference, torch.zeros(2), ones, torch.ones(2), 1.0, 0.2, torch.tensor([1.0, 0.0]))
    parts.loss.backward()
    assert float(parts.kl) > 0
    assert float(logp.grad[0, 0]) > 0 and float(logp.grad[1, 0]) == 0.0


def test_log_probabilities_in_chunks_equal_those_at_once() -> None:
    torch.manual_seed(3)
    logits = torch.randn(37, 13, requires_grad=True)
    ids, heat = torch.randint(13, (37,)), torch.rand(37) + 0.5
    whole, entropy = token_logprobs(logits, ids, heat)
    (grad,) = torch.autograd.grad(whole.sum(), logits)
    chunked, also = token_logprobs(logits, ids, heat, chunk=10)
    (other,) = torch.autograd.grad(chunked.sum(), logits)
    assert torch.allclose(whole, chunked) and torch.allclose(entropy, also) and torch.allclose(grad, other)
    assert torch.allclose(whole, torch.log_softmax(logits / heat[:, None], -1).gather(-1, ids[:, None])[:, 0])
    uniform = token_logprobs(torch.zeros(1, 8), torch.tensor([0]), torch.ones(1))[1]
    assert float(uniform) == pytest.approx(torch.log(torch.tensor(8.0)))
