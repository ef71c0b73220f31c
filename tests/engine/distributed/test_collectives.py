"""Collectives as plans: right on plain arrays, exact against closed forms where nothing else is on
the links, and on real ranks equal to torch's with the plan's bytes on the wire."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from engine.core.config import kinds
from engine.core.errors import BadInput
from engine.distributed.collective import Collective, Round, Transfers
from engine.distributed.flows.collective_work import (
    algorithms,
    alone,
    in_step,
    times,
)
from engine.distributed.launch import launch
from engine.hardware.cluster import Cluster
from engine.hardware.link import Link
from engine.hardware.link import link as sheet
from engine.hardware.topology import Switch
from tests.engine.distributed import works

WIRE = Link(name="wire", bandwidth=1e9, latency=1e-5)
KINDS = {kind: made() for kind, made in kinds(Collective).items()}
REDUCES = [kind for kind, each in KINDS.items() if each.operation == "all_reduce"]
NODES = Cluster(
    name="nodes of 4", device="a100-sxm-80gb", node=4, scale_up="nvlink3", adapters=4,
    network="infiniband-200", nodes=8, block=8,
)  # fmt: skip
SHAPES = [(2, 2), (4, 4), (4, 2), (6, 3), (8, 4), (8, 8), (5, 5), (16, 4)]
REAL = 8  # ranks


def patterns_of(
    rounds: Sequence[Round], pieces: int
) -> Counter[tuple[tuple[int, int, float], ...]]:
    """What travels at once in each round, and how many rounds are alike."""
    return Counter(
        tuple(sorted((a, b, (last - first) / pieces) for a, b, first, last, *_ in round))
        for round in rounds
    )


def played(plan: Transfers, held: list[np.ndarray]) -> list[np.ndarray]:
    """The plan on plain arrays."""
    edge = plan.bounds(len(held[0]))
    now = [each.copy() for each in held]
    for round in plan.rounds:
        before = held if plan.original else [each.copy() for each in now]
        for each in round:
            part = before[each.source][edge[each.first] : edge[each.last]]
            start = edge[each.first if each.place < 0 else each.place]
            if each.add:
                now[each.target][start : start + len(part)] += part
            else:
                now[each.target][start : start + len(part)] = part
    return now


def fitting(kind: str):
    return [shape for shape in SHAPES if KINDS[kind].fits(*shape)]


@pytest.mark.parametrize("kind", REDUCES)
def test_an_all_reduce_leaves_the_sum_everywhere(kind):
    assert fitting(kind)
    for ranks, node in fitting(kind):
        held = [np.arange(37.0) * (rank + 1) for rank in range(ranks)]
        for found in played(KINDS[kind].transfers(ranks, node), held):
            np.testing.assert_array_equal(found, sum(held))


def test_the_other_operations_do_what_they_are_called():
    ranks = 5
    held = [np.arange(20.0) + 100 * rank for rank in range(ranks)]
    plan = KINDS["scatter_ring"].transfers(ranks, ranks)
    edge = plan.bounds(20)
    for rank, found in enumerate(played(plan, held)):
        first, last = plan.owned[rank]
        own = slice(edge[first], edge[last])
        np.testing.assert_array_equal(found[own], sum(held)[own])
    gathered = played(KINDS["gather_ring"].transfers(ranks, ranks), held)
    whole = np.concatenate([held[r][4 * r : 4 * r + 4] for r in range(ranks)])
    assert all((found == whole).all() for found in gathered)
    for rank, found in enumerate(played(KINDS["shifts"].transfers(ranks, ranks), held)):
        given = np.concatenate([held[r][4 * rank : 4 * rank + 4] for r in range(ranks)])
        np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_patterns_are_the_rounds_without_their_pieces(kind):
    for ranks, node in fitting(kind):
        plan = KINDS[kind].transfers(ranks, node)
        found = patterns_of(plan.rounds, plan.pieces)
        told: dict[tuple, int] = {}
        for pattern in KINDS[kind].patterns(ranks, node):
            alike = tuple(sorted((a, b, pattern.share) for a, b in pattern.pairs))
            told[alike] = told.get(alike, 0) + pattern.times
        if kind in ("tree", "star", "halving_doubling"):  # there and back again
            assert sum(told.values()) == sum(found.values())
        else:
            assert told == dict(found)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"hierarchical"}))
@pytest.mark.parametrize("size", [64.0, 1e6, 1e9])
def test_on_equal_links_the_clock_is_the_closed_form(kind, size):
    each = KINDS[kind]
    for ranks in (2, 3, 4, 8):
        if each.fits(ranks, ranks):
            plan = each.transfers(ranks, ranks)
            asked = alone(Switch(ranks, WIRE), plan, range(ranks), size)
            assert asked == pytest.approx(each.seconds(WIRE, WIRE, ranks, ranks, size), rel=1e-9)


@pytest.mark.parametrize("kind", ["ring", "tree", "halving_doubling", "hierarchical",
                                  "gather_ring", "scatter_ring"])  # fmt: skip
@pytest.mark.parametrize("size", [64.0, 1e9])
def test_on_nodes_whose_devices_have_adapters_of_their_own_too(kind, size):
    each, near, far = KINDS[kind], sheet("nvlink3"), sheet("infiniband-200")
    for ranks in (8, 16, 32):
        found = alone(NODES.topology(ranks), each.transfers(ranks, 4), range(ranks), size)
        assert found == pytest.approx(each.seconds(near, far, ranks, 4, size), rel=1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rounds_in_step_take_at_least_what_the_plan_does_and_groups_add_to_it(kind):
    each = KINDS[kind]
    shared = NODES.model_copy(update={"adapters": 1}).topology(16)
    whole = alone(shared, each.transfers(16, 4), range(16), 1e8)
    step = in_step(shared, each.patterns(16, 4), [range(16)], 1e8)
    assert step >= whole * (1 - 1e-9)
    assert step == pytest.approx(whole, rel=0.35)
    halves = in_step(shared, KINDS["ring"].patterns(8, 2), [range(0, 16, 2), range(1, 16, 2)], 1e8)
    one = in_step(shared, KINDS["ring"].patterns(8, 2), [range(0, 16, 2)], 1e8)
    assert halves == pytest.approx(2 * one, rel=0.01)  # two rings through one adapter


def test_the_fastest_changes_with_the_size():
    topology = NODES.topology(16)
    small = times(topology, "all_reduce", [range(16)], 4, 256.0)
    large = times(topology, "all_reduce", [range(16)], 4, 1e9)
    assert next(iter(small)) == "one_phase"
    assert next(iter(large)) == "hierarchical"
    assert set(small) == set(REDUCES)
    with pytest.raises(BadInput, match="operation 'all_reduc': unknown; did you mean all_reduce"):
        algorithms("all_reduc")


@pytest.mark.parametrize(("kind", "ranks", "node", "says"), [
    ("hierarchical", 6, 4, "take several whole nodes"),
    ("halving_doubling", 6, 6, "6 ranks are no power of two"),
])  # fmt: skip
def test_ranks_that_do_not_fit_are_refused(kind, ranks, node, says):
    with pytest.raises(BadInput, match=says):
        KINDS[kind].transfers(ranks, node)


@pytest.fixture(scope="module")
def records():
    return launch(works.planned_collectives, REAL, {"kinds": REDUCES, "node": 4, "length": 1003},
                  limit=300)  # fmt: skip


@pytest.mark.parametrize("kind", REDUCES)
def test_on_real_ranks_the_sum_is_torchs_and_the_bytes_are_the_plans(kind, records):
    sent = KINDS[kind].transfers(REAL, 4).sent(1003)
    for record in records:
        np.testing.assert_array_equal(record.array(f"{kind}/whole"), record.array("torch/whole"))
        np.testing.assert_allclose(
            record.array(f"{kind}/real"), record.array("torch/real"), rtol=1e-5, atol=1e-6
        )
        planned = sum(n for (source, _), n in sent.items() if source == record.rank)
        assert int(record.array(f"{kind}/sent").item()) == 4 * planned
