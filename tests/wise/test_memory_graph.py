from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wise_helpers import axis, picture, record, said

from agentexp.errors import UserError
from agentexp.wise.core import Pose
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.graph import CO_OCCURS, AffordanceGraph
from agentexp.wise.memory.graph_files import draw, load, positions, save, save_graphml
from agentexp.wise.memory.grounding import by_keyframe, ground
from agentexp.wise.memory.keyframes import KeyframeFilter, entropy

KB = KnowledgeBase()


def graph_of(*answers: tuple[float, float, int, dict]) -> AffordanceGraph:
    graph = AffordanceGraph(KB)
    for number, (x, z, tick, answer) in enumerate(answers):
        graph.insert(ground(answer, record(number, x, z, tick), KB))
    return graph


# ------------------------------------------------------------------------------------------------------------- filters


def test_the_papers_example_cow_can_obtain_beef() -> None:
    graph = graph_of((3, 4, 100, said(100, "cow", cow="beef")))
    (cow,) = graph.affording("beef")
    assert (cow.name, cow.relation, cow.pose.x, cow.pose.z, cow.tick) == ("cow", "CAN_OBTAIN", 3, 4, 100)
    assert graph.affording("obtain beef") == [cow]
    assert graph.affording("log") == []


def test_names_are_normalised_and_unknown_ones_dropped() -> None:
    found = ground(said(1, "Oak trees", "a pond", "cattle", "UFO", "cow"), record(1), KB)
    assert found.entities == ["log", "water", "cow"]
    assert found.labels["log"] == "Oak trees"
    assert found.dropped["unknown"] == 1


def test_edges_need_an_observed_source_and_the_games_consent() -> None:
    answer = said(1, "cow", "tree", cow="wool", sheep="mutton", tree="logs", pig="phlogiston")
    found = ground(answer, record(1), KB)
    assert [fact[:3] for fact in found.affordances] == [("log", "CAN_OBTAIN", "log")]
    assert found.dropped == {"unknown": 1, "unobserved": 1, "invalid": 1}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"entities": None, "affordances": "none"},
        {"entities": [{"name": "cow"}, 3, ["x"], {"no": 1}], "affordances": [["cow", "beef"], {"source": 1}]},
        {"entities": [" "], "affordances": [{"source": None, "relation": None, "target": None}]},
    ],
)
def test_forms_of_all_kinds_are_survived(answer: dict) -> None:
    assert ground(answer, record(1), KB).affordances == []


def test_answers_are_matched_by_timestep_or_else_by_position() -> None:
    records = [record(i, tick=100 + i) for i in range(3)]
    by_tick = by_keyframe({"frames": [said(102, "pig"), said(100, "cow")]}, records)
    assert [(r.tick, a["entities"]) for r, a in by_tick] == [(100, ["cow"]), (102, ["pig"])]
    by_place = by_keyframe({"frames": [{"entities": [n]} for n in ("cow", "pig", "sheep")]}, records)
    assert [a["entities"] for _, a in by_place] == [["cow"], ["pig"], ["sheep"]]
    assert by_keyframe({"frames": [{"entities": ["cow"]}]}, records) == []


# --------------------------------------------------------------------------------------------------------------- merging


def test_sightings_nearby_are_one_instance_with_the_newest_place() -> None:
    graph = graph_of(
        (0, 0, 10, said(10, "cow", cow="beef")),
        (5, 0, 50, said(50, "cow", cow="beef")),
        (30, 0, 60, said(60, "cow", cow="beef")),
        (4, 0, 20, said(20, "cow", cow="beef")),  # a late answer about an earlier frame
    )
    far, near = graph.affording("beef")
    assert (far.pose.x, near.pose.x, near.tick) == (30, 5, 50)
    assert graph.graph.nodes[near.node]["seen"] == 3
    assert graph.graph.nodes[near.node]["first_tick"] == 10


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from(["cow", "tree", "pond"])), max_size=30))
def test_merging_is_idempotent_and_keeps_nothing_apart_that_is_near(seen: list[tuple[int, int, str]]) -> None:
    answers = [(x, z, i, said(i, name)) for i, (x, z, name) in enumerate(seen)]
    graph = graph_of(*answers)
    for x, z, name in seen:
        assert any(one.pose.distance(x, z) < 12 for one in graph.instances(KB.source(name)))
    nodes, places = set(graph.graph), {one.node: one.pose for one in graph.instances()}
    for one in graph.instances():  # seeing each instance again where it is adds nothing and moves nothing
        graph.insert(ground(said(999, one.name), record(999, one.pose.x, one.pose.z, 999), KB))
    assert set(graph.graph) == nodes
    assert {one.node: one.pose[:3] for one in graph.instances()} == {n: p[:3] for n, p in places.items()}


def test_what_is_seen_together_is_linked() -> None:
    graph = graph_of(
        (0, 0, 1, said(1, "cow", "tree", "desert")),
        (3, 0, 2, said(2, "pond")),  # a few blocks off
        (90, 0, 3, said(3, "pig")),
    )
    together = {
        frozenset(graph.graph.nodes[n]["name"] for n in edge[:2])
        for edge in graph.graph.edges(keys=True)
        if edge[2] == CO_OCCURS
    }
    assert together == {
        frozenset(pair) for pair in (("cow", "log"), ("cow", "desert"), ("log", "desert"), ("water", "cow"), ("water", "log"))
    }
    assert graph.companions("cow") == {"log": 2, "desert": 1, "water": 1}


def test_landmarks_are_what_sources_were_seen_with_and_outlive_them() -> None:
    graph = graph_of(
        (0, 0, 1, said(1, "cow", "tree", cow="beef")),
        (50, 0, 2, said(2, "tree")),
        (100, 0, 3, said(3, "pond")),
        (150, 0, 4, said(4, "pig", "sand")),
    )
    (cow,) = graph.instances("cow")
    graph.remove(cow.node)
    found = graph.landmarks("beef")
    assert [(one.name, one.pose.x, share) for one, share in found] == [("log", 50, 0.5), ("log", 0, 0.5)]
    assert [one.name for one, _ in graph.landmarks("porkchop")] == ["sand"]
    assert not graph.landmarks("diamond")


def test_nodes_have_the_papers_kinds() -> None:
    graph = graph_of((0, 0, 1, said(1, "cow", "rain", cow="beef")))
    kinds = {node: data["kind"] for node, data in graph.graph.nodes(data=True)}
    assert kinds == {"cow#1": "entity", "beef": "entity", "do:kill": "action", "env:rain": "environment"}
    counts = graph.statistics()
    assert (counts["nodes"], counts["edges_CAN_OBTAIN"], counts["edges_CO_OCCURS_WITH"]) == (4, 2, 1)


def test_an_instance_that_is_gone_takes_its_links_along() -> None:
    graph = graph_of((0, 0, 1, said(1, "cow", cow="beef")), (50, 0, 2, said(2, "cow", cow="beef")))
    near, far = sorted(graph.affording("beef"), key=lambda one: one.pose.x)
    graph.remove(near.node)
    assert graph.affording("beef") == [far]
    graph.remove(far.node)
    assert graph.affording("beef") == [] and len(graph.graph) == 0


# ----------------------------------------------------------------------------------------------------------------- files


def some_graph() -> AffordanceGraph:
    return graph_of(
        (0, 0, 1, said(1, "cow", "tree", "rain", cow="beef", tree="log")),
        (40, -20, 2, said(2, "pond", "sheep", pond="water", sheep="wool")),
    )


def test_a_saved_graph_answers_as_before_and_goes_on(tmp_path: Path) -> None:
    graph = some_graph()
    save(graph, tmp_path / "graph.json")
    again = load(tmp_path / "graph.json")
    for target in ("beef", "log", "water_bucket", "wool", "coal"):
        assert again.affording(target) == graph.affording(target)
    assert again.statistics() == {k: v for k, v in graph.statistics().items() if not k.startswith("dropped")}
    for one in (graph, again):
        one.insert(ground(said(9, "cow", cow="leather"), record(9, 1, 1), KB))
    assert again.affording("leather") == graph.affording("leather")
    assert sorted(again.graph) == sorted(graph.graph)


def test_a_file_that_is_no_graph_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match=r"x\.json"):
        load(tmp_path / "x.json")


def test_graphml_holds_all_nodes_and_edges(tmp_path: Path) -> None:
    graph = some_graph()
    save_graphml(graph, tmp_path / "graph.graphml")
    again = networkx.read_graphml(tmp_path / "graph.graphml")
    assert set(again) == set(graph.graph) and again.number_of_edges() == graph.graph.number_of_edges()
    assert again.nodes["cow#1"]["x"] == 0.0


@pytest.mark.parametrize("graph", [some_graph(), AffordanceGraph(KB)], ids=["some", "empty"])
def test_the_picture_is_drawn(graph: AffordanceGraph, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(graph, tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes()[:4] == b"\x89PNG"
    assert set(positions(graph)) == set(graph.graph)


# ------------------------------------------------------------------------------------------------------------- keyframes


def test_entropy_is_that_of_grey_values() -> None:
    assert entropy(np.full((8, 8, 3), 90, np.uint8)) == 0
    half = np.zeros((8, 8, 3), np.uint8)
    half[:4] = 255
    assert entropy(half) == pytest.approx(1 / 8)
    every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    assert entropy(every) == pytest.approx(1, abs=0.01)


def test_keyframes_are_representatives_and_rich_frames_without_duplicates() -> None:
    chosen = KeyframeFilter(every=20, window=100)
    rich, flat, here = picture(), picture(flat=True), Pose(0, 64, 0)
    assert chosen.wants(rich, axis(0), here, 0)
    assert not chosen.wants(rich, axis(1), here, 5)  # not its turn
    assert chosen.wants(flat, axis(1), here, 6, represents=True)  # it is the first of its cluster
    assert not chosen.wants(flat, axis(2), here, 30)  # flat
    assert not chosen.wants(rich, axis(0), Pose(9, 64, 0), 60)  # near-duplicate
    close = (axis(0) * 0.8 + axis(3) * 0.6).astype(np.float32)
    assert chosen.wants(rich, close, here, 81)  # cosine .8 is not
    assert chosen.wants(rich, axis(0), Pose(40, 64, 0), 101)  # elsewhere
    assert chosen.wants(rich, axis(0), here, 122)  # the window has passed
    assert chosen.counts == {"representative": 1, "entropy": 4, "duplicate": 1, "flat": 1}
    assert chosen.fresh().counts["entropy"] == 0


def test_duplicates_may_be_those_of_anywhere() -> None:
    chosen = KeyframeFilter(radius=None).fresh()
    assert chosen.wants(picture(), axis(0), Pose(0, 64, 0), 0)
    assert not chosen.wants(picture(), axis(0), Pose(900, 64, 0), 20)
    with pytest.raises(UserError, match="keyframes"):
        KeyframeFilter(every=0)
