"""Global prefix groups: which requests of a whole job should share which common prefix.

In come all prompts of a job; out comes one group for each request, all members of a group sharing
its prefix, chosen so that the prompt tokens computed are fewest when every group computes its
prefix once (BatchLLM, arXiv 2412.03594: the prefix tree flattened to one level).

Shape letters: A ancestors of a node on its path, the root first and the node itself last.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class Node:
    """A branching point of the prefix tree: `depth` tokens that all prompts below it share."""

    depth: int
    children: list["Node"] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)  # prompts that end or branch off here
    path: list[int] = field(default_factory=list)  # depths from the root to here, itself included
    saved_A: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, slots=True)
class Group:
    """Prompts that begin with the same `shared` tokens; a single prompt shares none."""

    members: tuple[int, ...]
    shared: int


def prefix_tree(prompts: Sequence[np.ndarray], unit: int, by_ends: bool = False) -> Node:
    """The tree of common prefixes of int32 `prompts`, lengths rounded down to whole `unit`s.

    A prompt's last token never counts: its logits have to be computed even where all is shared.
    `by_ends`: a mistake, the wrong key: prompts that end alike stand together, not those that begin
    alike.
    """
    way = -1 if by_ends else 1
    keys = [np.asarray(prompt).astype(">i4")[::way].tobytes() for prompt in prompts]
    order = sorted(range(len(prompts)), key=keys.__getitem__)
    root = Node(0)
    path = [root]
    for place, prompt in enumerate(order):
        before = _common(prompts, order, place - 1, unit)
        after = _common(prompts, order, place, unit)
        _close(path, before)
        if after > path[-1].depth:
            path.append(Node(after))
        path[-1].leaves.append(prompt)
    _close(path, 0)
    return root


def _common(prompts: Sequence[np.ndarray], order: list[int], place: int, unit: int) -> int:
    """Shareable tokens of the prompts at `place` and the next one in order; 0 at the ends."""
    if place < 0 or place + 1 >= len(order):
        return 0
    one, other = prompts[order[place]], prompts[order[place + 1]]
    length = min(len(one), len(other)) - 1
    differ = np.flatnonzero(one[:length] != other[:length])
    return int(differ[0] if len(differ) else max(length, 0)) // unit * unit


def _close(path: list[Node], depth: int) -> None:
    """End the nodes deeper than `depth`, keeping one at that very depth on the path."""
    last = None
    while path[-1].depth > depth:
        last = path.pop()
        if path[-1].depth < depth:
            path.append(Node(depth))
        path[-1].children.append(last)


def groups(prompts: Sequence[np.ndarray], unit: int, by_ends: bool = False) -> list[Group]:
    """The groups that leave the fewest tokens to compute, exactly, by dynamic programming.

    A node that becomes a group pays its depth once and saves it for each prompt assigned to it; a
    prompt belongs to its deepest group. Best below a node therefore depends on the ancestors only
    through the depth of the nearest one that is a group, and is kept for each of them. `by_ends` as
    in `prefix_tree`.
    """
    root = prefix_tree(prompts, unit, by_ends)
    nodes = _in_order(root)
    for node in reversed(nodes):
        _solve(node)
    return _chosen(root)


def _in_order(root: Node) -> list[Node]:
    root.path = [0]
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        found.append(node)
        for child in node.children:
            child.path = [*node.path, child.depth]
            stack.append(child)
    return found


def _solve(node: Node) -> None:
    """saved_A: most tokens saved below `node` if ancestor a is the nearest group; children done."""
    saved_A = len(node.leaves) * np.array(node.path, np.float64)
    for child in node.children:
        best_A = np.maximum(child.saved_A[:-1], child.saved_A[-1] - child.depth)
        saved_A = saved_A + best_A
    node.saved_A = saved_A


def _chosen(root: Node) -> list[Group]:
    found: list[Group] = []
    loose: list[int] = []
    stack: list[tuple[Node, int, list[int]]] = [(root, 0, loose)]
    opened: list[tuple[int, list[int]]] = []
    while stack:
        node, nearest, members = stack.pop()
        if node is not root and node.saved_A[-1] - node.depth > node.saved_A[nearest]:
            nearest, members = len(node.path) - 1, []
            opened.append((node.depth, members))
        members.extend(node.leaves)
        stack.extend((child, nearest, members) for child in node.children)
    found += [Group(tuple(sorted(members)), depth) for depth, members in opened]
    found += [Group((prompt,), 0) for prompt in sorted(loose)]
    return found


def saved(found: Sequence[Group]) -> int:
    """Prompt tokens that need not be computed when each group computes its prefix once."""
    return sum((len(group.members) - 1) * group.shared for group in found)
