import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import UserError
from agentexp.training.schedule import pack, sequences

lengths = st.lists(st.integers(1, 50), min_size=1, max_size=40)


def flat(order):
    return [row for sequence in order for row in sequence]


@given(lengths, st.integers(1, 4), st.integers(0, 5), st.booleans())
def test_every_epoch_holds_every_row_once(rows, epochs, seed, packed):
    order = sequences(rows, rows, epochs=epochs, seed=seed, pack_to=50 if packed else None)
    assert Counter(flat(order)) == dict.fromkeys(range(len(rows)), epochs)


@given(lengths, st.integers(0, 5))
def test_the_order_depends_on_the_seed_alone(rows, seed):
    first = sequences(rows, rows, epochs=3, seed=seed, pack_to=64)
    random.seed(seed + 1)
    assert first == sequences(rows, rows, epochs=3, seed=seed, pack_to=64)


def test_epochs_are_shuffled_anew():
    order = flat(sequences([1] * 30, [1] * 30, epochs=2, seed=0))
    assert order[:30] != order[30:] != sorted(order[30:])
    assert order[:30] != flat(sequences([1] * 30, [1] * 30, epochs=1, seed=1))


@given(lengths, st.integers(1, 500), st.integers(0, 3))
def test_a_budget_is_reached_and_passed_by_less_than_its_last_row(rows, budget, seed):
    taken = flat(sequences(rows, rows, epochs=1, seed=seed, token_budget=budget))
    total = sum(rows[row] for row in taken)
    assert total >= budget > total - rows[taken[-1]]
    times = Counter(taken)
    assert max(times.values()) - min((times[row] for row in range(len(rows))), default=0) <= 1


def test_two_data_sets_of_other_lengths_get_the_same_budget():
    short, long = [10] * 50, [40] * 50
    for rows in (short, long):
        assert sum(rows[row] for row in flat(sequences(rows, rows, epochs=3, seed=0, token_budget=1000))) == 1000


def test_a_budget_that_no_row_counts_for_is_refused():
    with pytest.raises(UserError, match="token_budget cannot be reached"):
        sequences([5, 6], [0, 0], epochs=1, seed=0, token_budget=10)


@given(lengths, st.integers(50, 120))
def test_packing_splits_nothing_and_wastes_little(rows, capacity):
    bins = pack(range(len(rows)), rows, capacity)
    assert sorted(flat(bins)) == list(range(len(rows)))
    fills = [sum(rows[row] for row in sequence) for sequence in bins]
    assert all(fill <= capacity for fill in fills)
    least = -(-sum(rows) // capacity)
    assert least <= len(bins) <= 2 * least  # any-fit is never worse than twice the optimum
