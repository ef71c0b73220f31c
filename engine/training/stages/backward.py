"""A stage's backward, whole or as the two halves that zero-bubble schedules need.

`Forward` keeps what a microbatch's forward leaves. `backward_input` runs the chain from the stage's
output to its input and notes the gradient at every place where a weight comes in;
`backward_weight` runs from those places to the weights, so nothing of the chain is done twice
(Qi et al., arXiv 2401.10241, section 2; autograd's graph is cut as PyTorch's own runtime cuts it).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

Gradients = dict[str, Tensor]


@dataclass
class Forward:
    """One microbatch through one stage: its `input`, the graph, and the end where that begins.

    The output itself is not kept: nothing of a backward needs its numbers.
    """

    input: Tensor
    output: GradientEdge
    begun: Tensor | None = None  # what `input` was made of on the first stage
    places: list["Place"] = field(default_factory=list)  # noted by `backward_input`
    shared: tuple[str, ...] = ()  # weights that come in at several places
    given: Tensor | None = None  # the gradient of the output, kept for those


@dataclass
class Place:
    """A node of the chain where weights come in, and the gradients that reached it."""

    node: Node
    names: tuple[str, ...]
    arrived: tuple[Tensor | None, ...] = ()


def backward(
    done: Forward, gradient: Tensor, weights: Mapping[str, Tensor]
) -> tuple[Tensor | None, Gradients]:
    """The whole backward from the `gradient` of the output: the gradient of the stage's input (None
    where that wants none), and those of its weights."""
    with_input = done.input.requires_grad
    wanted = [*([done.input] if with_input else []), *weights.values()]
    found = list(_grad([done.output], [gradient], wanted))
    of_input = found.pop(0) if with_input else None
    return of_input, _begun(done, of_input, weights, _named(weights, found))


def backward_input(done: Forward, gradient: Tensor, weights: Mapping[str, Tensor]) -> Tensor | None:
    """The gradient of the stage's input; `done` keeps what `backward_weight` goes on from."""
    if not done.input.requires_grad:
        done.given = gradient
        return None
    done.places, done.shared = _places(done, weights)
    handles = [place.node.register_prehook(_noting(place)) for place in done.places]
    (found,) = _grad([done.output], [gradient], [done.input], keep=True)
    for handle in handles:
        handle.remove()
    done.given = gradient if done.shared else None
    return found


def backward_weight(
    done: Forward, of_input: Tensor | None, weights: Mapping[str, Tensor]
) -> Gradients:
    """The weights' gradients; `of_input`: what `backward_input` gave, for what made the input."""
    if not done.input.requires_grad:
        assert done.given is not None
        return backward(done, done.given, weights)[1]
    found: Gradients = {}
    if done.shared:  # from the output, before the graph is let go
        left = {name: weights[name] for name in done.shared}
        again = _grad([done.output], [done.given], list(left.values()), keep=True)
        found |= _named(left, again)
    for place in done.places:
        roots = [(GradientEdge(place.node, i), g) for i, g in enumerate(place.arrived)
                 if g is not None]  # fmt: skip
        own = [weights[name] for name in place.names]
        part = _grad([root for root, _ in roots], [g for _, g in roots], own)
        found |= _named({name: weights[name] for name in place.names}, part)
    done.places = []
    return _begun(done, of_input, weights, found)


def _begun(
    done: Forward, of_input: Tensor | None, weights: Mapping[str, Tensor], found: Gradients
) -> Gradients:
    """`found` and what the weights that made the input come in for."""
    if done.begun is not None and of_input is not None:
        part = _grad([done.begun], [of_input], list(weights.values()))
        for name, more in _named(weights, part).items():
            found[name] = found[name] + more if name in found else more
    return found


def _grad(
    roots: Sequence[Any], gradients: Sequence[Tensor | None], wanted: Sequence[Tensor],
    keep: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        roots, wanted, gradients, retain_graph=keep, allow_unused=True
    )
    return found


def _named(weights: Mapping[str, Tensor], found: Sequence[Tensor | None]) -> Gradients:
    return {n: g for n, g in zip(weights, found, strict=True) if g is not None}


def _noting(place: Place) -> Any:
    def note(arrived: tuple[Tensor | None, ...]) -> None:
        place.arrived = arrived

    return note


def _places(done: Forward, weights: Mapping[str, Tensor]) -> tuple[list[Place], tuple[str, ...]]:
    """Where weights come into the chain from output to input, and the weights that have no place of
    their own, because they come in at several."""
    end = _edge(done.input)
    leaves = {_edge(weight): name for name, weight in weights.items()}
    order = _below(done.output.node)
    chain: set[Node] = {end}
    reach: dict[Node, set[str]] = {}  # off the chain: the weights that lie behind a node
    entries: defaultdict[str, list[Node]] = defaultdict(list)
    for node in order:
        after = [other for other, _ in node.next_functions if other is not None]
        if node in leaves:
            reach[node] = {leaves[node]}
        elif node is end or any(other in chain for other in after):
            chain.add(node)
            for other in {*after} - chain:
                for name in reach[other]:
                    entries[name].append(node)
        else:
            reach[node] = {name for other in after for name in reach[other]}
    own: defaultdict[Node, list[str]] = defaultdict(list)
    for name, nodes in entries.items():
        if len(nodes) == 1:
            own[nodes[0]].append(name)
    places = [Place(node, tuple(own[node])) for node in order if node in own]
    return places, tuple(name for name, nodes in entries.items() if len(nodes) > 1)


def _edge(tensor: Tensor) -> Node:
    """The node that a leaf's gradient arrives at."""
    node: Node = torch.autograd.graph.get_gradient_edge(tensor).node
    return node


def _below(root: Node) -> list[Node]:
    """All nodes from `root` on, each after everything it leads to."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(other, False) for other, _ in node.next_functions if other is not None]
    return order
