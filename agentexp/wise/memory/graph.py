"""M_SAEG, the Semantic Affordance Event Graph (paper 004, 3.1.2, A.2, A.8): why a place is worth going to.

A networkx multigraph. Nodes, by their attribute `kind`:

* entity: an instance with a place and a tick ("cow#3"), or a resource without a place ("beef");
* action: what is done for it ("kill");
* environment: biomes, weather, needs; one node each, with where and when it was seen last.

Edges, by their key: CAN_OBTAIN, CAN_CRAFT, CAN_SMELT from an instance or an action to a resource, CO_OCCURS_WITH between what
was seen together. Places are the poses that keyframes were taken from, as a vision model gives no distances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import hypot
from typing import Any

from agentexp.wise.core import Pose
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.knowledge.base import RELATIONS
from agentexp.wise.memory.grounding import Grounded

CO_OCCURS = "CO_OCCURS_WITH"


@dataclass(frozen=True, slots=True)
class Instance:
    """An entity at a place.

    Attributes:
        node: its key in the graph.
        name: of the base.
        pose: from where it was seen last.
        tick: when it was seen last.
        record: id of that keyframe.
        relation: the affordance that links it to what was asked for; empty where nothing was.
    """

    node: str
    name: str
    pose: Pose
    tick: int
    record: int
    relation: str = ""


class AffordanceGraph:
    """The graph and its queries.

    Args:
        knowledge: names and facts.
        merge_radius: blocks within which two sightings of one name are one instance (not given in the paper; the size of a
            place cluster).
    """

    def __init__(self, knowledge: KnowledgeBase, merge_radius: float = 6.0) -> None:
        import networkx

        self.knowledge, self.merge_radius = knowledge, merge_radius
        self.graph: Any = networkx.MultiDiGraph()
        self.version = 0
        self.dropped: Counter[str] = Counter()
        self._instances: dict[str, list[str]] = {}
        self._number = 0
        self._answers: tuple[int, dict[str, list[Instance]]] = (0, {})
        self._landmarks: tuple[int, dict[str, list[tuple[Instance, float]]]] = (0, {})
        # Names outlive their instances: that cows were seen near trees stays true when the cow is gone.
        self._seen: Counter[str] = Counter()
        self._together: Counter[frozenset[str]] = Counter()

    # ---------------------------------------------------------------------------------------------------------- update

    def insert(self, found: Grounded) -> list[str]:
        """Take in one keyframe; return the nodes of its entities. The graph's `version` counts these updates."""
        self.version += 1
        self.dropped.update(found.dropped)
        nodes = {name: self._place(name, found.labels[name], found) for name in found.entities}
        for fact in found.affordances:
            self._add("entity", fact.target, name=fact.target)
            self._add("action", f"do:{fact.action}", name=fact.action)
            self._connect(nodes[fact.source], fact.target, fact.relation, found.record.tick, action=fact.action)
            self._connect(f"do:{fact.action}", fact.target, fact.relation, found.record.tick)
        near = [node for name, node in nodes.items() if self.knowledge.kind(name) != "environment"]
        near += [node for node in self._around(found.record.pose) if node not in near]
        together = {*map(frozenset, combinations(near, 2)), *(frozenset((nodes[a], nodes[b])) for a, b in found.pairs)}
        for pair in sorted(map(sorted, together)):
            self._connect(pair[0], pair[1], CO_OCCURS, found.record.tick)
        self._seen.update(found.entities)
        self._together.update({frozenset(self.graph.nodes[n]["name"] for n in pair) for pair in together})
        return list(nodes.values())

    def _place(self, name: str, label: str, found: Grounded) -> str:
        pose, tick, record = found.record.pose, found.record.tick, found.record.id
        if self.knowledge.kind(name) == "environment":
            node = f"env:{name}"
            self._add("environment", node, name=name)
        else:
            near = [n for n in self._instances.get(name, ()) if self._distance(n, pose) < self.merge_radius]
            node = min(near, key=lambda n: self._distance(n, pose), default="")
            if not node:
                self._number += 1
                node = f"{name}#{self._number}"
                self._add("entity", node, name=name)
                self._instances.setdefault(name, []).append(node)
        data = self.graph.nodes[node]
        data["seen"] = data.get("seen", 0) + 1
        data.setdefault("first_tick", tick)
        data["first_tick"] = min(data["first_tick"], tick)
        if tick >= data.get("tick", -1):  # answers may overtake each other
            x, y, z, yaw, pitch = map(float, pose)
            data.update(label=label, tick=tick, record=record, x=x, y=y, z=z, yaw=yaw, pitch=pitch)
        return node

    def _add(self, kind: str, node: str, name: str) -> None:
        if node not in self.graph:
            self.graph.add_node(node, kind=kind, name=name)

    def _connect(self, source: str, target: str, relation: str, tick: int, **attributes: str) -> None:
        if not self.graph.has_edge(source, target, relation):
            self.graph.add_edge(source, target, relation, count=0, tick=tick, **attributes)
        data = self.graph.edges[source, target, relation]
        data["count"] += 1
        data["tick"] = max(data["tick"], tick)

    def _distance(self, node: str, pose: Pose) -> float:
        data = self.graph.nodes[node]
        return hypot(data["x"] - pose.x, data["z"] - pose.z)

    def _around(self, pose: Pose) -> Iterator[str]:
        return (n for nodes in self._instances.values() for n in nodes if self._distance(n, pose) < self.merge_radius)

    def remove(self, node: str) -> None:
        """Forget an instance, with its edges; resources and actions that nothing leads to any more go with it."""
        name = self.graph.nodes[node]["name"]
        resources = [target for _, target, key in self.graph.out_edges(node, keys=True) if key in RELATIONS]
        self.graph.remove_node(node)
        self._instances[name].remove(node)
        for resource in dict.fromkeys(resources):
            into = list(self.graph.predecessors(resource)) if resource in self.graph else []
            if not any("tick" in self.graph.nodes[source] for source in into):
                self.graph.remove_node(resource)
                self.graph.remove_nodes_from([source for source in into if not self.graph.out_degree(source)])
        self.version += 1

    # ---------------------------------------------------------------------------------------------------------- queries

    def affording(self, target: str) -> list[Instance]:
        """Instances that an affordance links to a resource, newest first: "obtain beef" leads to the cows.

        A target that is no outcome but a thing itself ("sheep") leads to its instances. Do not change the list: it is kept
        until the graph changes.
        """
        if self._answers[0] != self.version:
            self._answers = (self.version, {})
        if target not in self._answers[1]:
            self._answers[1][target] = self._affording(target)
        return self._answers[1][target]

    def _affording(self, target: str) -> list[Instance]:
        wanted = self.knowledge.outcome(target)
        found: dict[str, Instance] = {}
        if wanted in self.graph:
            for node, _, relation in self.graph.in_edges(wanted, keys=True):
                if relation in RELATIONS and "tick" in self.graph.nodes[node]:
                    found.setdefault(node, self._instance(node, relation))
        if not found and wanted and self.knowledge.kind(wanted) == "entity":
            found = {node: self._instance(node, "") for node in self._instances.get(wanted, ())}
        return sorted(found.values(), key=lambda one: -one.tick)

    def landmarks(self, target: str) -> list[tuple[Instance, float]]:
        """Where a resource may be although nothing known affords it: things whose kind was seen together with a source of it.

        Returns:
            (instance, share of the keyframes with its kind that showed, or were near, such a source), the best first and of
            equals the newest. Do not change the list: it is kept until the graph changes.
        """
        if self._landmarks[0] != self.version:
            self._landmarks = (self.version, {})
        if target not in self._landmarks[1]:
            self._landmarks[1][target] = self._near_sources(target)
        return self._landmarks[1][target]

    def _near_sources(self, target: str) -> list[tuple[Instance, float]]:
        sources = {fact.source for fact in self.knowledge.sources(target)}
        shares: dict[str, float] = {}
        for pair, count in self._together.items():
            for name in pair - sources if pair & sources else ():
                shares[name] = max(shares.get(name, 0.0), min(1.0, count / self._seen[name]))
        found = [(one, share) for name, share in shares.items() for one in self.instances(name)]
        return sorted(found, key=lambda pair: (-pair[1], -pair[0].tick))

    def instances(self, name: str | None = None) -> list[Instance]:
        """All instances, or those of a name."""
        names = self._instances if name is None else [name]
        return [self._instance(node, "") for one in names for node in self._instances.get(one, ())]

    def companions(self, name: str) -> Counter[str]:
        """How often other names were seen together with this one."""
        counts: Counter[str] = Counter()
        for node in self._instances.get(name, ()):
            for source, target, key, data in (
                *self.graph.out_edges(node, keys=True, data=True),
                *self.graph.in_edges(node, keys=True, data=True),
            ):
                if key == CO_OCCURS:
                    counts[self.graph.nodes[target if source == node else source]["name"]] += data["count"]
        return counts

    def _instance(self, node: str, relation: str) -> Instance:
        data = self.graph.nodes[node]
        pose = Pose(data["x"], data["y"], data["z"], data["yaw"], data["pitch"])
        return Instance(node, data["name"], pose, data["tick"], data["record"], relation)

    def statistics(self) -> dict[str, int]:
        """Counts of nodes by kind, edges by relation, and of what the filters dropped."""
        kinds = Counter(f"nodes_{data['kind']}" for _, data in self.graph.nodes(data=True))
        edges = Counter(f"edges_{key}" for _, _, key in self.graph.edges(keys=True))
        total = {"nodes": self.graph.number_of_nodes(), "edges": self.graph.number_of_edges()}
        return {**total, **kinds, **edges, **{f"dropped_{why}": count for why, count in self.dropped.items()}}

    def adopt(self, graph: Any) -> None:
        """Take over a networkx graph of this form (one that was saved)."""
        self.graph = graph
        self._instances = {}
        self.version += 1
        for node, data in graph.nodes(data=True):
            if data["kind"] == "entity" and "tick" in data:
                self._instances.setdefault(data["name"], []).append(node)
                self._number = max(self._number, int(node.rpartition("#")[2]))
