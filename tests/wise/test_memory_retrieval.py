import asyncio
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wise_helpers import AxisEncoder, ScriptedVision, frame, said

from agentexp.errors import UserError
from agentexp.wise.core import Frame, Memory, Opportunity, Pose, Subtask
from agentexp.wise.memory.keyframes import KeyframeFilter
from agentexp.wise.memory.labelled import LabelMemory, SaegMemory
from agentexp.wise.memory.memories import FeatureMemory, MrSteveMemory, NoMemory
from agentexp.wise.memory.retrieval import Bans, Candidate, rank, score
from agentexp.wise.memory.text import EncoderSimilarity, query_text, word_similarity
from agentexp.wise.vlm.worker import VisionWorker

BEEF, LOG, WATER = Subtask("obtain beef", "beef"), Subtask("obtain log", "log"), Subtask("obtain water", "water_bucket")


class Now:
    """Labels what `picture` shows at once; blind to what is not in `sees`."""

    def __init__(self, sees: tuple[str, ...] = ("cow", "tree", "water")) -> None:
        self.sees = sees

    def label_now(self, keyframes: list) -> dict:
        yields = {"cow": "beef", "tree": "log", "water": "water_bucket"}
        frames = []
        for one in keyframes:
            shown = [name for i, name in enumerate(("cow", "tree", "water")) if one.embedding[i] > 0 and name in self.sees]
            frames.append(said(one.tick, *shown, **{name: yields[name] for name in shown}))
        return {"frames": frames}

    async def label(self, keyframes: list) -> dict:
        return self.label_now(keyframes)


def saeg(**given: object) -> SaegMemory:
    vision = given.pop("vision", Now())
    settings = {"encoder": AxisEncoder(), "threshold": 0.5, **given}
    return SaegMemory(worker=VisionWorker(vision, batch=1), **settings)  # type: ignore[arg-type]


def labels(**given: object) -> LabelMemory:
    settings = {"encoder": AxisEncoder(), "threshold": 0.5, **given}
    return LabelMemory(worker=VisionWorker(Now(), batch=1), **settings)  # type: ignore[arg-type]


def walk(memory: Memory, *steps: tuple[float, str]) -> Frame:
    """A step each 30 ticks: (x, what is shown); returns the last frame."""
    last = frame(0)
    for i, (x, shown) in enumerate(steps):
        last = frame(i * 30, x, 0, *shown.split())
        memory.observe(last)
    memory.observe(Frame(last.tick + 1, last.pose))  # answers come in with the next tick
    return Frame(last.tick + 1, last.pose)


def test_co_occurrence_offers_landmarks_where_nothing_affords_the_task() -> None:
    def offers(**given: object) -> list[Opportunity]:
        memory = saeg(**given)
        # A cow among trees at 0; trees alone at 60. The cow turns out to be gone.
        now = walk(memory, (0, "cow tree"), (60, "tree"), (90, "water"))
        (cow, *_) = memory.candidates(BEEF, now)
        assert cow.relation == "CAN_OBTAIN" and cow.entity == "cow"
        memory.forget(cow)
        return memory.candidates(BEEF, now)

    assert not offers()
    (tree,) = offers(landmarks=True)
    assert (tree.entity, tree.relation, tree.x) == ("log", "CO_OCCURS_WITH", 60)  # not the place that was tried in vain
    assert tree.affordance == 0 and tree.score <= 0.5


def test_landmarks_stand_back_behind_affordances_and_survive_fresh() -> None:
    memory = saeg(landmarks=True)
    now = walk(memory, (0, "cow tree"), (60, "tree"))
    assert {one.relation for one in memory.candidates(BEEF, now)} == {"CAN_OBTAIN"}
    assert memory.fresh().landmarks and not memory.fresh().graph.landmarks("beef")


# ----------------------------------------------------------------------------------------------------------------- eq. 6


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_scores_are_between_0_and_1_and_grow_with_both_terms(similarity: float, affordance: float, weight: float) -> None:
    value = score(similarity, affordance, weight)
    assert 0 <= value <= 1
    assert score(min(1, similarity + 0.1), affordance, weight) >= value
    assert score(similarity, min(1, affordance + 0.1), weight) >= value - 1e-12


def test_eq_6_at_the_published_weight() -> None:
    assert score(0.3, 1, 0.5) == pytest.approx(0.65)
    assert score(0.9, 0, 0.5) == pytest.approx(0.45)  # the graph's word outweighs any likeness


def test_both_pathways_are_merged_by_frame_and_ties_go_to_the_nearest() -> None:
    here = Pose(0, 64, 0)
    seen = Candidate(1, Pose(9, 64, 0), 5, 0.8)
    linked = Candidate(1, Pose(9, 64, 0), 5, 0.8, 1.0, "cow", "CAN_OBTAIN")
    far = Candidate(2, Pose(20, 64, 0), 5, 0.8, 1.0, "cow", "CAN_OBTAIN")
    offers = rank([seen, far, linked], "beef", here, 0.5, 10)
    assert [(o.x, o.affordance, o.target) for o in offers] == [(9, 1.0, "beef"), (20, 1.0, "beef")]
    assert len(rank([seen, far, linked], "beef", here, 0.5, 1)) == 1


def test_bans_are_of_a_target_and_place_and_end() -> None:
    bans = Bans(radius=6, ticks=100)
    bans.add("beef", 10, 0, 50)
    for tick, x, target, allowed in (
        *((40, 10, "beef", False), (149, 12, "beef", False)),
        *((151, 10, "beef", True), (40, 17, "beef", True), (40, 10, "log", True)),
    ):
        assert bans.allows(target, Pose(x, 64, 0), tick) == allowed
        assert bans.allowed(target, np.array([[x, 0.0]]), np.array([tick]))[0] == allowed


# ------------------------------------------------------------------------------------------------------------------ text


def test_skills_hold_the_link_that_raw_text_lacks() -> None:
    assert query_text(BEEF, "skills") == "near cow" and query_text(BEEF, "raw") == "obtain beef"
    assert query_text(Subtask("obtain coal", "coal"), "skills") == "obtain coal"


def test_word_similarity_is_about_spelling() -> None:
    assert word_similarity("near cow", "Cows") == 1 and word_similarity("obtain beef", "cow") == 0
    assert word_similarity("obtain log", "logs and leaf") > 0.5 and word_similarity("", "cow") == 0
    assert EncoderSimilarity(AxisEncoder())("near cow", "a cow") == 1


# ------------------------------------------------------------------------------------------------------------- the methods


def test_nothing_is_remembered_by_none() -> None:
    memory = NoMemory().fresh()
    assert memory.candidates(BEEF, walk(memory, (0, "cow"))) == []


@pytest.mark.parametrize("kind", [FeatureMemory, MrSteveMemory])
def test_features_find_what_looks_like_the_text(kind: type[FeatureMemory]) -> None:
    memory = kind(encoder=AxisEncoder(), threshold=0.5)
    now = walk(memory, (0, ""), (20, "cow"), (40, "tree"), (60, "cow"), (90, ""))
    found = memory.candidates(BEEF, now)
    assert found[0].x in (20, 60) and all(offer.affordance == 0 and not offer.in_view for offer in found)
    assert len(found) == (1 if kind is MrSteveMemory else 2)
    if kind is MrSteveMemory:
        assert found[0].x == 60  # the nearest
    assert memory.candidates(LOG, now)[0].x == 40
    assert memory.candidates(WATER, now) == []


def test_raw_text_finds_no_cow_for_beef_in_features_but_the_graph_does() -> None:
    steps = ((0, ""), (20, "cow"), (60, ""))
    features, graph = FeatureMemory(encoder=AxisEncoder(), threshold=0.5, text_query="raw"), saeg(text_query="raw")
    assert features.candidates(BEEF, walk(features, *steps)) == []
    (offer,) = graph.candidates(BEEF, walk(graph, *steps))
    assert (offer.x, offer.entity, offer.relation, offer.affordance, offer.score) == (20, "cow", "CAN_OBTAIN", 1.0, 0.5)


def test_labels_find_names_like_the_text_and_claim_no_affordance() -> None:
    steps = ((0, ""), (20, "cow"), (60, ""))
    by_skill, raw = labels(), labels(text_query="raw")
    (offer, *_) = by_skill.candidates(BEEF, walk(by_skill, *steps))
    assert (offer.x, offer.entity, offer.affordance) == (20, "cow", 0.0) and offer.score > 0.5
    assert raw.candidates(BEEF, walk(raw, *steps)) == []


def test_the_graph_ranks_by_eq_6_and_marks_what_is_in_view() -> None:
    memory = saeg()
    now = walk(memory, (0, "cow"), (50, "cow"))
    offers = memory.candidates(BEEF, now)
    assert {offer.x: offer.in_view for offer in offers} == {50: True, 0: False}
    assert all(offer.affordance == 1 and offer.similarity > 0.5 for offer in offers)
    assert [offer.score for offer in offers] == pytest.approx([0.5 * offer.similarity + 0.5 for offer in offers])
    assert offers[0].score >= offers[1].score
    turned = Frame(now.tick, now.pose._replace(yaw=180.0))
    assert not any(offer.in_view for offer in memory.candidates(BEEF, turned))


def test_what_the_vision_model_missed_is_still_found_by_likeness() -> None:
    memory = saeg(vision=Now(sees=("tree",)))
    now = walk(memory, (0, "cow"), (60, ""))
    (offer,) = memory.candidates(BEEF, now)
    assert offer.affordance == 0 and offer.score == pytest.approx(0.5 * offer.similarity)


@pytest.mark.parametrize("make", [lambda: FeatureMemory(encoder=AxisEncoder(), threshold=0.5), saeg, labels])
def test_what_was_tried_in_vain_is_not_offered_again(make: object) -> None:
    memory = make()  # type: ignore[operator]
    now = walk(memory, (0, "cow"), (50, "cow"), (100, ""))
    while offers := memory.candidates(BEEF, now):
        before = {offer.x for offer in offers}
        memory.forget(offers[0])
        assert offers[0].x not in {offer.x for offer in memory.candidates(BEEF, now)}
        assert len(before) <= 2
    later = frame(now.tick + 2000, 0, 0, "cow")
    memory.observe(later)
    assert memory.candidates(BEEF, later)  # seen anew


@pytest.mark.parametrize(
    "make",
    [
        lambda: FeatureMemory(encoder=AxisEncoder(), threshold=0.4, k=3),
        lambda: MrSteveMemory(encoder=AxisEncoder()),
        saeg,
        labels,
    ],
)
def test_a_fresh_memory_is_empty_and_has_the_same_settings(make: object) -> None:
    memory = make()  # type: ignore[operator]
    walk(memory, (0, "cow"))
    other = memory.fresh()
    assert type(other) is type(memory) and len(other.short) == 0
    assert (other.k, other.threshold, other.short.cluster) == (memory.k, memory.threshold, memory.short.cluster)
    assert other.candidates(BEEF, frame(0)) == []
    assert isinstance(other.statistics(), dict)


def test_frames_without_pictures_and_out_of_turn_are_not_remembered() -> None:
    memory = FeatureMemory(encoder=AxisEncoder(), every=4)
    for tick in range(8):
        memory.observe(frame(tick))
        memory.observe(Frame(tick, Pose(0, 64, 0)))
    assert memory.statistics()["frames"] == 2


def test_a_dead_vision_model_leaves_what_features_find() -> None:
    async def run() -> None:
        memory = SaegMemory(encoder=AxisEncoder(), threshold=0.5, worker=VisionWorker(ScriptedVision({"frames": 1}), batch=2))
        for i in range(6):
            memory.observe(frame(i * 30, i * 20, 0, *(["cow"] if i == 2 else [])))
            await asyncio.sleep(0)
        await memory.pace(frame(180))
        await memory.settle()
        assert memory.statistics()["failures"] > 0
        assert memory.candidates(BEEF, frame(200, 100))[0].x == 40

    asyncio.run(run())


def test_settling_takes_in_the_last_answers() -> None:
    async def run() -> None:
        memory = SaegMemory(encoder=AxisEncoder(), worker=VisionWorker(ScriptedVision()))
        memory.observe(frame(0, 0, 0, "cow"))
        assert memory.graph.affording("beef") == []
        await memory.settle()
        assert len(memory.graph.affording("beef")) == 1
        assert all(record.picture is None for record in memory.records.values())

    asyncio.run(run())


def test_settings_out_of_range_are_the_users_errors() -> None:
    for wrong in ({"k": 0}, {"text_query": "magic"}):
        with pytest.raises(UserError, match="memory"):
            FeatureMemory(encoder=AxisEncoder(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"memory\.weight"):
        saeg(weight=2)


# ----------------------------------------------------------------------------------------------------------------- speed


def test_a_control_step_with_ten_thousand_frames_is_fast() -> None:
    from agentexp.wise.scheduler import OpportunisticScheduler

    # Twice the paper's keyframes and several times its graph.
    memory, scheduler = saeg(keyframes=KeyframeFilter(cosine_threshold=1.01)), OpportunisticScheduler()
    rng = np.random.default_rng(0)
    where = np.cumsum(rng.normal(0.02, 0.4, (10_400, 2)), axis=0)
    pending = [WATER, LOG, BEEF, Subtask("obtain wool", "wool"), Subtask("obtain sand", "sand")]
    kinds = ["", "cow", "tree", "water", "tree water"]
    times = []
    for tick, (x, z) in enumerate(where):
        now = frame(tick, float(x), float(z), *kinds[tick // 50 % 5].split(), yaw=tick // 3 % 360)
        begin = time.thread_time()
        memory.observe(now)
        if tick >= 10_000:
            found = {i: memory.candidates(subtask, now) for i, subtask in enumerate(pending)}
            order: list[tuple[int, float]] = scheduler.order(pending, found, now)
            assert len(order) == 5
            times.append(time.thread_time() - begin)
    assert memory.statistics()["frames"] == 10_000 and memory.statistics()["nodes"] > 80
    print(memory.statistics(), np.quantile(times, [0.5, 0.99]))
    assert np.quantile(times, 0.99) < 0.010


def test_opportunities_name_their_target() -> None:
    assert Opportunity(0, 0, 0, 0).target == ""


def test_an_encoder_that_looks_back_begins_anew_with_each_episode() -> None:
    class LooksBack(AxisEncoder):
        begun = 0

        def begin(self) -> None:
            self.begun += 1

    encoder = LooksBack()
    FeatureMemory(encoder=encoder).fresh().fresh()
    assert encoder.begun == 2


def test_clusters_looked_at_are_the_papers_where_nothing_is_said() -> None:
    encoder = AxisEncoder()
    assert FeatureMemory(encoder=encoder).k == 10 and MrSteveMemory(encoder=encoder).k == 30
    assert MrSteveMemory(encoder=encoder, k=5).fresh().k == 5
