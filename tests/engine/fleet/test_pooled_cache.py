"""A pooled cache: what it finds, forgets and costs, and a fleet that fetches from it."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.events import Move
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.faults import Faults
from engine.fleet.measure import columns, served
from engine.fleet.pooled_cache import PooledCache
from engine.fleet.pools.peer_to_peer import PeerToPeer
from engine.fleet.run import run
from engine.hardware.link import Link
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.workloads.shared_prefix import SharedPrefix
from engine.inference.workloads.synthetic import Lengths

LINK = Link(name="a bus", bandwidth=100.0, latency=1.0)
CONFIG = FleetConfig(
    replicas=4,
    pools=PeerToPeer(prefill=2, cache_pages=4000),
    link="nvlink4",
    engine=InferenceConfig(
        model="llama-3.1-8b",
        dtype="bfloat16",
        executor=Modelled(),
        workload=SharedPrefix(
            groups=6, per_group=6, prefix=Lengths(median=900, longest=2000), rate=12.0,
            suffix=Lengths(median=60), output=Lengths(median=8, longest=20),
        ),
        pages=2000,
    ),
    tokens=False,
)  # fmt: skip


def pool(pages: int = 8, reach="everybody", rate: float = 100.0) -> PooledCache:
    return PooledCache(pages, 4, LINK, rate, reach, Faults())


def tokens(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.int32)


def test_everybody_finds_what_one_wrote_at_the_same_cost() -> None:
    one = pool()
    assert one.keep(tokens(18), 0, 50.0, 0.0) == 4  # whole pages alone
    assert one.keep(tokens(18), 1, 50.0, 0.0) == 0  # it is there
    assert [one.found(tokens(30), replica) for replica in range(3)] == [4, 4, 4]
    assert one.found(tokens(16), 2) == 3  # the last token is computed in any case
    ends = [one.fetch(tokens(30), replica, 200.0, 5.0).stop for replica in range(3)]
    assert ends == [8.0, 8.0, 8.0]  # a latency and two seconds


def test_a_port_carries_one_transfer_at_a_time() -> None:
    one = pool()
    one.keep(tokens(16), 0, 50.0, 0.0)
    first, second = (one.fetch(tokens(16), 3, 100.0, 10.0) for _ in range(2))
    assert (first.stop, second.stop) == (12.0, 14.0)


def test_what_was_used_longest_ago_goes_first() -> None:
    one = pool(pages=8)
    one.keep(tokens(16), 0, 1.0, 0.0)
    one.keep(tokens(16, 100), 0, 1.0, 0.0)
    one.fetch(tokens(17), 0, 1.0, 1.0)
    one.keep(tokens(8, 200), 0, 1.0, 2.0)
    found = [one.found(tokens(20, first), 0) for first in (0, 100, 200)]
    assert found == [4, 2, 2]


def test_more_than_it_holds_is_kept_as_far_as_it_goes() -> None:
    one = pool(pages=3)
    assert one.keep(tokens(40), 0, 1.0, 0.0) == 3
    assert one.found(tokens(41), 1) == 3


def test_by_its_writer_alone() -> None:
    one = pool(reach="writer")
    one.keep(tokens(16), 0, 1.0, 0.0)
    assert [one.found(tokens(20), replica) for replica in (0, 1)] == [4, 0]


def figures(**changes):
    config = update(CONFIG, changes)
    log = Run.execute(run, config, seed=0).log
    return served(log, config), log, config


def test_a_fleet_fetches_what_another_replica_computed() -> None:
    ours, log, config = figures()
    theirs, *_ = figures(**{"pools.reach": "writer"})
    alone, *_ = figures(**{"pools.cache_pages": 1})
    assert ours.finished == theirs.finished == alone.finished == 36
    assert ours.hit_rate > max(theirs.hit_rate, alone.hit_rate)
    fetched = [move for move in log.of(Move) if move.source == "pool"]
    assert fetched and {move.target for move in fetched} <= {"replica 0", "replica 1"}
    assert all(move.time > move.start for move in fetched)


def test_answers_are_as_without_a_pool() -> None:
    """The same tokens, each once, wherever a prompt's beginning came from."""
    one, two = (
        figures(tokens=True, **{"pools.cache_pages": pages})[1].blobs["requests"]
        for pages in (1, 4000)
    )
    assert (columns_of(one, "answer") == columns_of(two, "answer")).all()


def columns_of(table: np.ndarray, name: str) -> np.ndarray:
    from engine.fleet.life import COLUMNS

    return table[COLUMNS.index(name)]


@pytest.mark.parametrize("number", [0, 3])
def test_a_killed_replica_loses_nobody_who_waits_for_the_pool(number) -> None:
    slow = {"pools.plane_bandwidth": 2e8, "faults.kill": number, "faults.kill_at": 1.0}
    found, log, _ = figures(**slow, **{"engine.workload.rate": 60.0})
    assert found.finished == 36 and found.refused == 0
    told = columns(log)
    assert (told["answer"] >= 1).all() and found.retries > 0


def test_a_pool_that_is_slow_to_reach_is_slow() -> None:
    usual, *_ = figures()
    slow, *_ = figures(**{"pools.plane_bandwidth": 1e8})
    assert slow.ttft.mean > usual.ttft.mean
