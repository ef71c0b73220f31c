"""Ways of many messages looked up at once are those looked up one by one; sheets are read once."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.hardware.cluster import cluster, clusters
from engine.hardware.device import device
from engine.hardware.link import Link
from engine.hardware.topology import Ring, Switch, Topology

WIRE = Link(name="wire", bandwidth=1e9, latency=1e-5)
RANKS = 100


def topologies() -> dict[str, Topology]:
    small = {"switch": Switch(RANKS, WIRE), "ring": Ring(RANKS, WIRE)}
    described = {name: cluster(name).topology(RANKS) for name in clusters()}
    shared = cluster("selene").topology(RANKS, adapters=2, block=3, oversubscription=4.0, hop=1e-6)
    return {**small, **described, "shared adapters, blocks of three nodes": shared}


@pytest.mark.parametrize("name", topologies())
def test_ways_are_each_way(name):
    topology = topologies()[name]
    drawn = np.random.default_rng(0)
    sources, targets = drawn.integers(0, RANKS, (2, 400))
    targets[:20] = sources[:20]  # nowhere to go
    found = topology.ways(sources, targets)
    for n, pair in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        way = topology.way(*pair)
        assert tuple(found.held[found.first[n] : found.first[n + 1]].tolist()) == way.channels
        assert found.latency[n] == way.latency


def test_a_sheet_is_read_once_and_names_stay_inside_their_folder():
    assert device("h100-sxm") is device("h100-sxm")
    for name in ("../models", "links/nvlink3", "", "h100-sxm.toml", "h" * 5000, "a\0b"):
        with pytest.raises(BadInput, match="no data sheet"):
            device(name)
