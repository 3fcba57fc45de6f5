import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.wise.core import Pose
from agentexp.wise.memory.dpmeans import dp_means, merge_labels, unit
from agentexp.wise.memory.short_term import ShortTermMemory


def near(axis: int, dimension: int = 8, noise: float = 0.1, seed: int = 0) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(0, noise, dimension).astype(np.float32)
    vector[axis] += 1
    return unit(vector)


def axis(i: int, dimension: int = 8) -> np.ndarray:
    return np.eye(dimension, dtype=np.float32)[i]


# ------------------------------------------------------------------------------------------------------------ DP-means


def test_dp_means_finds_the_groups() -> None:
    points = np.stack([near(i % 3, seed=i) for i in range(60)])
    centres, labels = dp_means(points, penalty=0.5, seeds=2)
    assert len(centres) == 3
    assert all(len(set(labels[i::3])) == 1 for i in range(3))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 8), st.floats(0.05, 3.0), st.integers(0, 1000))
def test_dp_means_properties(n: int, seeds: int, penalty: float, seed: int) -> None:
    points = unit(np.random.default_rng(seed).normal(size=(n, 5)).astype(np.float32))
    centres, labels = dp_means(points, penalty, seeds)
    assert set(labels) == set(range(len(centres)))
    for i, centre in enumerate(centres):
        assert np.allclose(centre, points[labels == i].mean(axis=0), atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), st.floats(-0.5, 0.99), st.integers(0, 1000))
def test_merging_groups_is_transitive_and_idempotent(n: int, threshold: float, seed: int) -> None:
    centres = unit(np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32))
    labels = merge_labels(centres, threshold)
    close = centres @ centres.T > threshold
    assert all(labels[i] == labels[j] for i, j in np.argwhere(close))
    assert set(labels) == set(range(labels.max() + 1))
    # Representing each group by all of its centres and merging again changes nothing.
    assert np.array_equal(merge_labels(centres, threshold), labels)
    first = [int(np.flatnonzero(labels == g)[0]) for g in range(labels.max() + 1)]
    assert len(set(merge_labels(centres[first], threshold))) == len(first)


# ------------------------------------------------------------------------------------------------------- place and event


def test_places_are_six_blocks_and_sixty_degrees_about_the_first_pose() -> None:
    memory = ShortTermMemory()
    memory.add(axis(0), Pose(100.5, 64, -7, 10), 0)
    here = memory.place(Pose(100.5, 64, -7, 0))
    for same in (Pose(103.4, 64, -7), Pose(97.6, 64, -4.1), Pose(100.5, 64, -7, -29), Pose(100.5, 64, -7, 389)):
        assert memory.place(same) == here
    for other in (Pose(103.6, 64, -7), Pose(100.5, 64, -10.1), Pose(100.5, 64, -7, 31), Pose(100.5, 64, -7, 180)):
        assert memory.place(other) != here


def test_a_glimpse_becomes_an_event_of_its_own_and_is_found() -> None:
    memory = ShortTermMemory()
    for tick in range(50):
        memory.add(near(0, seed=tick), Pose(0, 64, 0), tick)
    assert not memory.founded
    seen = memory.add(near(3), Pose(0.5, 64, 0), 50)
    assert memory.founded
    text = memory.watch(axis(3))
    assert memory.statistics()["events"] == 2
    (hit,) = memory.top(text, 0.5)
    assert hit.id == seen and hit.similarity > 0.9
    assert memory.top(text, 0.999) == []


def test_top_gives_clusters_in_order_one_frame_each() -> None:
    memory = ShortTermMemory()
    for place in range(20):
        for tick in range(5):
            vector = unit(axis(0) * (20 - place) + axis(1) * place)
            memory.add(vector, Pose(place * 10, 64, 0), place * 5 + tick)
    hits = memory.top(memory.watch(axis(0)), 0.1, k=10)
    assert len(hits) == 10 and [h.similarity for h in hits] == sorted((h.similarity for h in hits), reverse=True)
    assert len({h.cluster for h in hits}) == 10


def test_texts_watched_early_and_late_agree() -> None:
    early, late = ShortTermMemory(capacity=60), ShortTermMemory(capacity=60)
    early.watch(axis(2))
    for tick in range(200):
        for memory in (early, late):
            memory.add(near(tick % 4, seed=tick), Pose(tick % 30, 64, 0), tick)
    a, b = early.top(early.watch(axis(2)), 0.3), late.top(late.watch(axis(2)), 0.3)
    assert [h.id for h in a] == [h.id for h in b]
    assert [h.similarity for h in a] == pytest.approx([h.similarity for h in b], abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(5, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=150),
    st.sampled_from(["event", "place"]),
)
def test_the_oldest_frame_of_the_largest_cluster_goes(capacity: int, steps: list[tuple[int, int, int]], evict: str) -> None:
    memory = ShortTermMemory(capacity=capacity, evict=evict, update_every=10)  # type: ignore[arg-type]
    for tick, (x, z, kind) in enumerate(steps):
        before = memory.events()
        number = memory.add(near(kind, seed=tick), Pose(x * 10, 64, z * 10), tick)
        after = memory.events()
        assert len(memory) == min(capacity, tick + 1)
        members = [i for ids in after.values() for i in ids]
        assert sorted(members) == sorted(set(members)) and len(members) == len(memory)
        assert all(ids and ids == sorted(ids) for ids in after.values())
        gone = {i for ids in before.values() for i in ids} - set(members)
        assert len(gone) == (tick >= capacity) or number not in members
        if evict == "event" and gone and set(before) == set(after):
            (oldest,) = gone
            home = next(ids for ids in before.values() if oldest in ids)
            assert oldest == home[0]
            assert len(home) >= max(map(len, before.values())) - 1


def test_centres_follow_their_frames_also_after_eviction() -> None:
    memory = ShortTermMemory(capacity=30)
    for tick in range(200):
        memory.add(near(tick % 2, noise=0.2, seed=tick), Pose(0, 64, 0), tick)
    for cluster, ids in memory.events().items():
        total = sum(memory.record(i).embedding for i in ids)  # type: ignore[union-attr]
        assert np.allclose(memory._known.vectors[cluster], unit(total), atol=1e-4)
        assert memory.representative(cluster) in ids


def test_merging_ends_and_changes_nothing_more() -> None:
    memory = ShortTermMemory(merge_old=0.99, merge_new=0.8, update_every=60)
    for tick in range(59):
        memory.add(near(tick % 2, seed=tick), Pose(0, 64, 0), tick)
    assert memory.statistics()["events"] > 20
    memory.add(near(0, seed=99), Pose(0, 64, 0), 59)
    events = memory.events()
    assert sorted(map(len, events.values())) == [29, 31]
    (place,) = memory._places.values()
    assert not memory._merge_place(place) and memory.events() == events


def test_records_come_back_as_they_were_and_go_when_forgotten() -> None:
    memory = ShortTermMemory(capacity=1)
    pose = Pose(1.5, 64, -2.5, 370, 12)
    number = memory.add(axis(1), pose, 7, np.zeros((2, 2, 3), np.uint8))
    record = memory.record(number)
    assert record is not None and record.pose == pose and record.tick == 7 and record.picture is not None
    assert np.array_equal(record.embedding, axis(1))
    memory.add(axis(2), pose, 8)
    assert memory.record(number) is None and len(memory) == 1


# -------------------------------------------------------------------------------------------------------------- MrSteve


def test_batches_cluster_when_full_and_hide_frames_until_then() -> None:
    memory = ShortTermMemory(cluster="batch", update_every=20, seeds=1, penalty=0.5)
    text = memory.watch(axis(3))
    for tick in range(20):
        memory.add(near(0 if tick != 10 else 3, seed=tick), Pose(0, 64, 0), tick)
    assert memory.statistics()["events"] == 1
    assert memory.nearest(text, 0.8, 0, 0) is not None  # a frame of an open place can be found
    memory.add(near(0, seed=99), Pose(0, 64, 0), 20)
    assert memory.statistics()["events"] == 2
    for tick in range(19):
        memory.add(near(5, seed=tick), Pose(0, 64, 0), 21 + tick)
    other = memory.watch(axis(5))
    assert memory.nearest(other, 0.8, 0, 0) is None
    memory.add(near(5, seed=100), Pose(0, 64, 0), 40)
    assert memory.nearest(other, 0.8, 0, 0) is not None
    assert memory.statistics()["events"] == 3


def test_new_batches_join_old_clusters_that_look_the_same() -> None:
    memory = ShortTermMemory(cluster="batch", update_every=20)
    for tick in range(121):
        memory.add(near(0, seed=tick), Pose(0, 64, 0), tick)
    assert memory.statistics()["events"] == 1


def test_the_nearest_frame_above_the_threshold_is_taken() -> None:
    memory = ShortTermMemory(cluster="batch")
    for tick, x in enumerate((0, 50, 100)):
        memory.add(near(2, noise=0.01, seed=tick), Pose(x, 64, 0), tick)
    memory.add(unit(axis(2) + axis(3)), Pose(70, 64, 0), 9)
    text = memory.watch(axis(2))
    hit = memory.nearest(text, 0.9, 72, 0)
    assert hit is not None and hit.id == 1
    banned = memory.nearest(text, 0.9, 72, 0, allowed=lambda places, ticks: places[:, 0] != 50)
    assert banned is not None and banned.id == 2
    assert memory.nearest(text, 0.9, 72, 0, k=1) is not None


def test_place_eviction_takes_from_the_largest_place() -> None:
    memory = ShortTermMemory(cluster="batch", evict="place", capacity=10)
    for tick in range(8):
        memory.add(near(0, seed=tick), Pose(0, 64, 0), tick)
    for tick in range(5):
        memory.add(near(1, seed=tick), Pose(60, 64, 0), 8 + tick)
    assert len(memory) == 10
    assert min(i for ids in memory.events().values() for i in ids) == 3


# ----------------------------------------------------------------------------------------------------------------- speed


@pytest.mark.parametrize("dimension", [64, 512])
def test_ten_thousand_frames_cost_little(dimension: int) -> None:
    memory = ShortTermMemory(capacity=10_000)
    rng = np.random.default_rng(0)
    texts = [memory.watch(unit(rng.normal(size=dimension).astype(np.float32))) for _ in range(5)]
    base = unit(rng.normal(size=(64, dimension)).astype(np.float32))
    walk = np.cumsum(rng.normal(0, 0.4, (10_600, 2)), axis=0)
    vectors = unit(base[(np.arange(10_600) // 40) % 64] + rng.normal(0, 0.02, (10_600, dimension)).astype(np.float32))
    times = []
    for tick, (x, z) in enumerate(walk):
        begin = time.thread_time()  # the machine may be busy with other things
        memory.add(vectors[tick], Pose(x, 64, z, tick * 3 % 360), tick)
        if tick >= 10_000:
            for text in texts:
                memory.top(text, 0.05)
                memory.nearest(text, 0.05, x, z)
            times.append(time.thread_time() - begin)
    assert len(memory) == 10_000
    assert np.quantile(times, 0.99) < 0.008
