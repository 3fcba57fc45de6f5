import asyncio
import math
import random

import pytest

from agentexp.models.rank import NextTokens, Normalise, Ranking, best

END = 0
VOCABULARY = 40


class RandomModel:
    """A language model with a fixed random distribution after every path."""

    def __init__(self, seed: int, sharpness: float) -> None:
        self.seed, self.sharpness = seed, sharpness
        self.calls: list[tuple[tuple[int, ...], int]] = []

    def logprobs(self, path: tuple[int, ...]) -> list[float]:
        draw = random.Random(f"{self.seed}{path}")
        logits = [draw.gauss(0, self.sharpness) for _ in range(VOCABULARY)]
        total = math.log(sum(map(math.exp, logits)))
        return [logit - total for logit in logits]

    async def __call__(self, path: tuple[int, ...], n: int) -> NextTokens:
        self.calls.append((path, n))
        ranked = sorted(enumerate(self.logprobs(path)), key=lambda item: -item[1])[:n]
        return NextTokens(dict(ranked), ranked[-1][1])

    def score(self, tokens: tuple[int, ...], normalise: Normalise) -> float:
        total = sum(self.logprobs(tokens[:i])[token] for i, token in enumerate(tokens))
        return total if normalise == "none" else total / len(tokens)


def candidates(draw: random.Random) -> list[tuple[int, ...]]:
    # Few different tokens, so that candidates share beginnings and one is the beginning of another but for its end.
    return [(*(draw.randint(1, 4) for _ in range(draw.randint(1, 6))), END) for _ in range(draw.randint(1, 25))]


def search(options: list[tuple[int, ...]], model: RandomModel, normalise: Normalise, width: int) -> Ranking:
    return asyncio.run(best(options, model, VOCABULARY, normalise, width))


@pytest.mark.parametrize("normalise", ["none", "tokens"])
@pytest.mark.parametrize("width", [1, 3, VOCABULARY])
@pytest.mark.parametrize("sharpness", [0.2, 1.0, 4.0])
def test_is_the_exact_maximum(normalise: Normalise, width: int, sharpness: float) -> None:
    for seed in range(12):
        options = candidates(random.Random(seed))
        model = RandomModel(seed, sharpness)
        found = search(options, model, normalise, width)
        scores = [model.score(option, normalise) for option in options]
        assert found.score == pytest.approx(max(scores))
        assert found.index == options.index(options[scores.index(max(scores))])
        assert found.logprob == pytest.approx(model.score(options[found.index], "none"))
        others = [s for s, option in zip(scores, options, strict=True) if option != options[found.index]]
        if found.margin is None:
            assert not others
        else:
            assert 0 <= found.margin <= found.score - max(others) + 1e-9


def test_unlikely_branches_stay_closed() -> None:
    async def likes_one(path: tuple[int, ...], n: int) -> NextTokens:
        return NextTokens({token: -0.1 if token in (1, END) else -6.0 for token in range(VOCABULARY)}, -6.0)

    options = [(branch, *[token] * 5, END) for branch in range(1, 11) for token in (1, 2, 3)]
    found = asyncio.run(best(options, likes_one, VOCABULARY))
    assert options[found.index] == (1, 1, 1, 1, 1, 1, END)
    assert found.evaluations == 7  # the winner's own tokens and nothing else
    assert found.margin == pytest.approx(6.0 - 0.7)


def test_equal_candidates_and_ties_go_to_the_first() -> None:
    async def flat(path: tuple[int, ...], n: int) -> NextTokens:
        return NextTokens(dict.fromkeys(range(VOCABULARY), -1.0), -1.0)

    assert asyncio.run(best([(5, 0), (3, 0), (5, 0), (1, 0)], flat, VOCABULARY)).index == 0
    only = asyncio.run(best([(5, 0), (5, 0)], flat, VOCABULARY))
    assert (only.index, only.margin) == (0, None)


def test_impossible_tokens() -> None:
    async def never(path: tuple[int, ...], n: int) -> NextTokens:
        return NextTokens({7: 0.0}, 0.0)

    found = asyncio.run(best([(5, 0), (3, 0)], never, VOCABULARY))
    assert found.logprob == -math.inf and found.margin == 0.0


@pytest.mark.parametrize("options", [[], [()], [(1, 2), (1,)], [(1,), (1, 2)]])
def test_refuses(options: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError):
        search(options, RandomModel(0, 1.0), "none", 4)
