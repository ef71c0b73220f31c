"""Flows that share channels: against the plain form, closed forms, and what must always hold."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.distributed.flows import reference
from engine.distributed.flows.work import Work
from engine.hardware.cluster import cluster, clusters
from engine.hardware.link import Link
from engine.hardware.topology import Ring, Switch

WIRE = Link(name="wire", bandwidth=100.0, latency=0.25)


def random_work(seed: int, topology=None, tasks: int = 40) -> Work:
    """Computations and messages with random sizes, ends and what they wait for."""
    dice = np.random.default_rng(seed)
    work = Work(topology or cluster("ethernet-pods").topology(64))
    for number in range(tasks):
        count = min(number, int(dice.integers(0, 3)))
        after = dice.choice(number, count, replace=False).tolist() if number else []
        if dice.random() < 0.3:
            work.compute(float(dice.random()) * 1e-2, after)
        else:
            source, target = dice.integers(0, work.topology.ranks, 2).tolist()
            work.send(source, target, float(dice.random()) * 1e9, after)
    return work


@pytest.mark.parametrize("seed", range(12))
def test_the_compiled_clock_is_the_plain_one(seed):
    work = random_work(seed, None if seed % 2 else Ring(9, WIRE))
    start, stop = reference.play(work.graph())
    found = work.played()
    np.testing.assert_allclose(found.start, start, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.stop, stop, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("flows", [1, 2, 3, 7, 31])
def test_flows_into_one_port_share_it_alike(flows):
    work = Work(Switch(flows + 1, WIRE))
    for source in range(1, flows + 1):
        work.send(source, 0, 50.0)
    assert work.played().stop == pytest.approx(0.25 + flows * 50.0 / 100.0, rel=1e-12)


def test_who_is_done_leaves_its_share_to_the_rest():
    work = Work(Switch(3, WIRE))
    short, long = work.send(1, 0, 10.0), work.send(2, 0, 30.0)
    stop = work.played().stop
    assert stop[short] == pytest.approx(0.25 + 20.0 / 100.0)
    assert stop[long] == pytest.approx(0.25 + 40.0 / 100.0)


def test_a_flow_held_up_elsewhere_leaves_its_room_to_others():
    """Two into port 2 take half each; the second flow out of port 0 has what the first leaves."""
    work = Work(Switch(4, WIRE))
    for source, target, size in ((0, 2, 50.0), (1, 2, 50.0), (3, 2, 50.0), (0, 3, 200.0 / 3)):
        work.send(source, target, size)
    stop = work.played().stop
    assert stop[:3] == pytest.approx(0.25 + 1.5)
    assert stop[3] == pytest.approx(0.25 + 1.0)  # at two thirds of the port


@pytest.mark.parametrize("seed", range(6))
def test_bytes_are_conserved_and_no_channel_goes_over_its_bandwidth(seed):
    work = random_work(seed + 100, tasks=120)
    found = work.played(uses=True)
    capacity = np.array([channel.bandwidth for channel in work.topology.channels])
    carried = np.zeros(len(capacity))
    now, level = np.zeros(len(capacity)), np.zeros(len(capacity))
    for time, channel, used in found.uses:
        number = int(channel)
        carried[number] += level[number] * (time - now[number])
        now[number], level[number] = time, used
        assert used <= capacity[number] * (1 + 1e-9)
    assert level == pytest.approx(0)
    np.testing.assert_allclose(carried, work.carried(), rtol=1e-6, atol=1.0)
    assert (np.diff(found.uses[:, 0]) >= 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_fair_shares_leave_nobody_a_reason_to_complain(seed):
    """Max-min: each flow holds a full channel on which nobody has more than it."""
    dice = np.random.default_rng(seed)
    capacity = dice.uniform(1, 10, 6).tolist()
    held = {n: dice.choice(6, dice.integers(1, 4), replace=False).tolist() for n in range(9)}
    rates = reference.fair(held, capacity)
    for flow, channels in held.items():
        reasons = []
        for channel in channels:
            beside = [rates[other] for other in held if channel in held[other]]
            full = sum(beside) >= capacity[channel] * (1 - 1e-9)
            reasons.append(full and rates[flow] >= max(beside) * (1 - 1e-9))
        assert any(reasons)


def test_work_that_waits_for_itself_is_refused():
    work = Work(Switch(2, WIRE))
    first = work.compute(1.0)
    second = work.compute(1.0, [first])
    work.wait(first, second)
    with pytest.raises(BadInput, match="2 of 2 tasks wait for one another in a circle"):
        work.played()


def test_ways_of_a_cluster_hold_what_they_pass():
    small = cluster("ethernet-pods").topology(64)

    def names(source, target):
        return [small.channels[n].name for n in small.way(source, target).channels]

    assert names(0, 7) == ["device 0 out", "device 7 in"]
    assert names(3, 12) == ["node 0 adapter 0 out", "node 1 adapter 1 in"]
    assert names(0, 63) == ["node 0 adapter 0 out", "block 0 out", "block 1 in",
                            "node 7 adapter 1 in"]  # fmt: skip
    assert names(5, 5) == [] and small.seconds(5, 5, 1e9) == 0.0
    block = next(c for c in small.channels if c.name == "block 0 out")
    assert block.bandwidth == pytest.approx(4 * 2 * 1.25e10 * 0.8 / 4.0)


def test_a_ring_passes_messages_on_the_shorter_way():
    ring = Ring(6, WIRE)
    assert [ring.channels[n].name for n in ring.way(0, 2).channels] == [
        "device 0 to 1", "device 1 to 2",
    ]  # fmt: skip
    assert [ring.channels[n].name for n in ring.way(0, 5).channels] == ["device 0 to 5"]
    assert ring.way(1, 4).latency == pytest.approx(0.75)


def test_every_cluster_says_where_its_facts_come_from_and_refuses_too_many_devices():
    for name in clusters():
        found = cluster(name)
        assert {"node", "network", "oversubscription"} <= set(found.sources)
        found.topology(min(64, found.devices))
        with pytest.raises(BadInput, match="devices asked for, it has"):
            found.topology(found.devices + 1)
    with pytest.raises(BadInput, match=r"cluster 'selen': no data sheet; did you mean selene"):
        cluster("selen")
