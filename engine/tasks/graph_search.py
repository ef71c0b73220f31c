"""Graph search: a shortest path between two nodes of a small graph, or that there is none."""

import string
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal, TypeVar

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

Item = TypeVar("Item")
NONE = "none"
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class GraphProblem(Problem):
    """Undirected edges, such as `ab cd bd:a>c=`, to be answered by `a>b>d>c` or by `none`."""

    edges: tuple[Edge, ...]
    source: str
    goal: str
    length: int | None  # edges on a shortest path; None where there is no path

    def check(self, text: str) -> Verdict:
        """Accepts every shortest path, not only the one in `answer`."""
        said = text.strip()
        if said == NONE:
            right = self.length is None
            return Verdict(right, "there is no path" if right else "there is a path", NONE)
        nodes = said.split(">")
        if (nodes[0], nodes[-1]) != (self.source, self.goal):
            return Verdict(False, f"does not lead from {self.source} to {self.goal}")
        near = neighbours(self.edges)
        for here, there in zip(nodes, nodes[1:], strict=False):
            if there not in near.get(here, ()):
                return Verdict(False, f"has no edge {here}{there}", said)
        if len(nodes) - 1 != self.length:
            return Verdict(False, f"takes {len(nodes) - 1} edges, not {self.length}", said)
        return Verdict(True, "is a shortest path", said)


class GraphSearch(Task):
    """A random graph of letters and two of its nodes."""

    kind: Literal["graph_search"] = "graph_search"
    words: ClassVar[tuple[str, ...]] = (NONE,)
    nodes: int = knob(10, "Nodes", low=2, high=26)
    edges: int = knob(12, "Edges, where there is room for so many", low=1, high=325)

    def draw(self, chance: Random) -> GraphProblem:
        names = string.ascii_lowercase[: self.nodes]
        pairs = [(a, b) for a in names for b in names if a < b]
        edges = tuple(
            (a, b) if chance.random() < 0.5 else (b, a)
            for a, b in _some(chance, pairs, min(self.edges, len(pairs)))
        )
        source, goal = _some(chance, list(names), 2)
        path = shortest_path(edges, source, goal)
        ends = "".join(sorted((source, goal)))  # the way back is the same problem
        key = f"graph {' '.join(sorted(min(a, b) + max(a, b) for a, b in edges))}:{ends}"
        prompt = f"{' '.join(a + b for a, b in edges)}:{source}>{goal}="
        answer = ">".join(path) if path else NONE
        length = len(path) - 1 if path else None
        return GraphProblem(key, prompt, answer, edges, source, goal, length)


def neighbours(edges: Sequence[Edge]) -> dict[str, list[str]]:
    """Nodes one edge away from each node, in the edges' order."""
    near: dict[str, list[str]] = {}
    for a, b in edges:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    return near


def shortest_path(edges: Sequence[Edge], source: str, goal: str) -> tuple[str, ...] | None:
    """Breadth first; the first found where several are shortest, None where there is none."""
    near, seen = neighbours(edges), {source}
    waiting: deque[tuple[str, ...]] = deque([(source,)])
    while waiting:
        path = waiting.popleft()
        if path[-1] == goal:
            return path
        for node in near.get(path[-1], ()):
            if node not in seen:
                seen.add(node)
                waiting.append((*path, node))
    return None


def _some(chance: Random, items: Sequence[Item], count: int) -> list[Item]:
    """`count` of `items` without repeat, in random order."""
    left, taken = list(items), []
    for _ in range(count):
        taken.append(left.pop(int(chance.random() * len(left))))
    return taken
