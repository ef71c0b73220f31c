"""Programs of put, signal and wait on the clock: closed forms, faults, a pipelined tree."""

import pytest

from engine.cluster import put_and_signal
from engine.cluster.put_and_signal import Described, one_sided, pipelined, seconds, two_sided
from engine.core.errors import BadInput
from engine.distributed.channel import Wait
from engine.distributed.channels.shared_memory import MemoryHB, MemoryLL, Port
from engine.distributed.flows.collective_work import algorithm
from engine.hardware.link import Link
from engine.hardware.topology import Switch

LINK = Link(name="a link", bandwidth=1e9, latency=1e-5)
NODE = Described(Switch(4, LINK), 4, 4, 1e-4)


@pytest.mark.parametrize(("channel", "wire", "signal"), [
    (MemoryLL(), 2.0, 0.0),
    (MemoryHB(), 1.0, LINK.latency),
    (Port(proxy=5e-6), 1.0, LINK.latency + 5e-6),
])  # fmt: skip
def test_one_phase_takes_a_launch_a_latency_its_bytes_and_a_signal(channel, wire, signal):
    took = seconds(NODE, algorithm("one_phase").transfers(4, 4), 1e6, channel)
    assert took == pytest.approx(1e-4 + LINK.latency + 3 * wire * 1e-3 + signal, rel=1e-3)


def test_packets_are_for_small_tensors_and_puts_that_return_late_for_none():
    assert one_sided(NODE, 1e2).told == "one_phase by memory_ll"
    assert "memory_hb" in one_sided(NODE, 1e8).told
    for size in (1e2, 1e5, 1e8):
        ours = one_sided(NODE, size).seconds
        assert ours < two_sided(NODE, size).seconds
        assert ours < one_sided(NODE, size, synchronous=True).seconds


def test_a_signal_that_nobody_gives_is_told(monkeypatch):
    monkeypatch.setattr(put_and_signal, "programs", lambda plan, ranks: [[Wait(1, 1)], []])
    with pytest.raises(BadInput, match="ranks .0. wait for signals"):
        seconds(NODE, algorithm("ring").transfers(4, 4), 1e3, MemoryHB())


def test_a_pipelined_tree_moves_as_many_numbers_in_smaller_rounds():
    tree = algorithm("tree").transfers(4, 4)
    chunked = pipelined(tree, 5)
    assert chunked.sent(100) == tree.sent(100)
    assert len(chunked.rounds) == len(tree.rounds) + 4
    with pytest.raises(BadInput, match="whole tensors"):
        pipelined(algorithm("ring").transfers(4, 4), 2)
