import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import UserError
from agentexp.wise.core import Frame, Opportunity, Pose, Scheduler, Subtask
from agentexp.wise.scheduler import FixedOrder, OpportunisticScheduler, preempts

ABC = [Subtask("obtain water", "water_bucket"), Subtask("obtain log", "log"), Subtask("obtain beef", "beef")]
HERE = Frame(1000, Pose(0, 64, 0))


def offer(x: float = 10, affordance: float = 1.0, tick: int = 900, in_view: bool = False) -> Opportunity:
    return Opportunity(x, 0, tick, 0.5, affordance, in_view=in_view)


offers = st.builds(offer, st.floats(-300, 300), st.sampled_from([0.0, 1.0]), st.integers(0, 1000), st.booleans())
tables = st.dictionaries(st.integers(0, 4), st.lists(offers, max_size=3))
weights = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1)).map(lambda w: tuple(x / sum(w) for x in w))


def queue(n: int) -> list[Subtask]:
    return [Subtask(f"task {i}", f"item{i}") for i in range(n)]


def test_a_cow_in_view_comes_first_and_the_rest_keeps_its_order() -> None:
    order = OpportunisticScheduler().order(ABC, {2: [offer(5, in_view=True)]}, HERE)  # figure 6(b): [beef, water, logs]
    assert [i for i, _ in order] == [2, 0, 1]
    assert dict(order)[2] == pytest.approx(0.3 / 3 + 0.5 + 0.2 * (1 - 5 / 181))
    assert dict(order)[0] == pytest.approx(0.3)
    assert preempts(order, 0) and not preempts(order, 2)


def test_without_knowledge_the_order_is_the_tasks() -> None:
    assert [i for i, _ in OpportunisticScheduler().order(ABC, {}, HERE)] == [0, 1, 2]


def test_terms_by_hand() -> None:
    scheduler = OpportunisticScheduler(d_max=100, fading=100.0)
    first, second, third = scheduler.terms(ABC, {0: [offer(50, tick=900)], 1: [offer(500, 0.0)]}, HERE)
    assert (first.urgency, second.urgency, third.urgency) == (1, pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert first.affordance == pytest.approx(0.3679, abs=1e-4) and second.affordance == third.affordance == 0
    assert (first.cost, second.cost, third.cost) == (0.5, 1, 1)
    assert scheduler.terms(ABC, {0: [offer(50, tick=0, in_view=True)]}, HERE)[0].affordance == 1


def test_waiting_makes_urgent() -> None:
    scheduler = OpportunisticScheduler(ageing=100)
    scheduler.order(ABC, {}, HERE)
    later = scheduler.terms(ABC, {}, Frame(1090, HERE.pose))
    assert [term.urgency for term in later] == pytest.approx([1, 0.9, 0.9])
    assert scheduler.fresh().terms(ABC, {}, Frame(1090, HERE.pose))[2].urgency == pytest.approx(1 / 3)


@given(st.integers(1, 5), tables, weights)
def test_every_subtask_is_ordered_once_with_terms_in_range(n: int, table: dict, w: tuple) -> None:
    scheduler = OpportunisticScheduler(urgency=w[0], affordance=w[1], navigation=w[2])
    order = scheduler.order(queue(n), table, HERE)
    assert sorted(i for i, _ in order) == list(range(n))
    priorities = [p for _, p in order]
    assert priorities == sorted(priorities, reverse=True)
    for term in scheduler.terms(queue(n), table, HERE):
        assert all(0 <= value <= 1 + 1e-9 for value in (term.urgency, term.affordance, term.cost, term.priority))


@given(st.integers(1, 5), tables)
def test_urgency_alone_is_the_fixed_order(n: int, table: dict) -> None:
    by_urgency = OpportunisticScheduler(urgency=1, affordance=0, navigation=0).order(queue(n), table, HERE)
    fixed = FixedOrder().order(queue(n), table, HERE)
    assert [i for i, _ in by_urgency] == [i for i, _ in fixed]
    assert [p for _, p in by_urgency] == pytest.approx([p for _, p in fixed])


@given(st.integers(2, 5), tables, st.integers(0, 4), st.floats(0, 200))
def test_an_affordance_or_a_nearer_place_never_lowers_a_priority(n: int, table: dict, which: int, distance: float) -> None:
    which %= n
    scheduler = OpportunisticScheduler()
    before = scheduler.terms(queue(n), {**table, which: [offer(distance + 10, 0.0)]}, HERE)
    linked = scheduler.terms(queue(n), {**table, which: [offer(distance + 10, 1.0)]}, HERE)
    nearer = scheduler.terms(queue(n), {**table, which: [offer(distance, 0.0)]}, HERE)
    assert linked[which].priority >= before[which].priority + 0.5 - 1e-9
    assert nearer[which].priority >= before[which].priority
    for i in range(n):
        if i != which:
            assert linked[i] == before[i] == nearer[i]


def test_preemption_needs_the_margin() -> None:
    order = [(2, 0.6), (0, 0.5)]
    assert preempts(order, 0) and not preempts(order, 0, margin=0.2)
    assert preempts(order, None) and not preempts([], 0) and not preempts([], None)
    assert preempts(order, 7)  # the active one is no longer pending


def test_both_are_schedulers() -> None:
    one: Scheduler = OpportunisticScheduler().fresh()
    other: Scheduler = FixedOrder().fresh()
    assert one.order([], {}, HERE) == other.order([], {}, HERE) == []


@pytest.mark.parametrize("given", [{"urgency": 0.5}, {"urgency": -0.2, "affordance": 1.0}, {"d_max": 0}, {"ageing": 0}])
def test_settings_out_of_range_are_the_users_errors(given: dict) -> None:
    with pytest.raises(UserError, match="scheduler"):
        OpportunisticScheduler(**given)
