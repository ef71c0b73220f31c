"""Programs on the virtual clock: when messages start and arrive is arithmetic, checked by hand."""

import pytest
import torch

from engine.core.config import from_dict
from engine.core.errors import BadInput
from engine.core.events import Move, Span
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.distributed.transport import Shape
from engine.distributed.virtual import Network, play
from engine.distributed.wirings.circle import Circle
from engine.distributed.wirings.mesh import Mesh
from engine.distributed.wirings.switch import Switch
from engine.hardware.link import Link

LINK = Link(name="test", bandwidth=100.0, latency=0.5)
BLOCK = torch.zeros(50, dtype=torch.uint8)  # half a second on that link
SHAPE = [Shape((50,), torch.uint8)]


def work(seconds: float) -> Compute:
    return Compute("work", lambda: None, seconds)


def run(programs, wiring):
    network = Network(wiring, LINK, len(programs))
    return play(programs, [MemoryTracker() for _ in programs], lambda step: step.flops, network)


def giver(*targets: int) -> Program[None]:
    for target in targets:
        yield Send(target, [BLOCK], f"to_{target}")
    yield work(1.0)


def taker(source: int, first: float) -> Program[int]:
    ticket = yield Receive(source, SHAPE, "block")
    yield work(first)
    (got,) = yield Wait(ticket)
    return got.numel()


def waits(ran) -> dict[str, tuple[float, float]]:
    return {
        e.lane: (e.start, e.time) for e in ran.events if isinstance(e, Span) and e.name == "receive"
    }


def test_a_message_takes_latency_and_bytes_and_only_what_work_does_not_hide_is_a_wait():
    ran = run([giver(1, 2), taker(0, 0.25), taker(0, 3.0)], Mesh())
    assert ran.results == [None, 50, 50]
    moves = [e for e in ran.events if isinstance(e, Move)]
    assert [(m.start, m.time, m.bytes) for m in moves] == [(0.0, 1.0, 50.0)] * 2
    assert waits(ran) == {"rank 1": (0.25, 1.0)}
    assert ran.end == 3.0


def test_messages_of_one_port_go_one_after_another():
    ran = run([giver(1, 2), taker(0, 0.0), taker(0, 0.0)], Switch())
    moves = {e.target: (e.start, e.time) for e in ran.events if isinstance(e, Move)}
    assert moves == {"rank 1": (0.0, 1.0), "rank 2": (0.5, 1.5)}


def test_a_ring_passes_messages_on_the_shorter_way():
    assert Circle().path(0, 3, 4) == [("0>3",)]
    assert Circle().path(3, 1, 4) == [("3>0",), ("0>1",)]
    ran = run([giver(2), giver(), taker(0, 0.0), giver()], Circle())
    assert waits(ran)["rank 2"] == (0.0, 2.0)


def test_a_message_never_sent_is_a_deadlock_that_says_who_waits():
    with pytest.raises(BadInput, match=r"deadlock.*rank 1 for rank 0 \(block\)"):
        run([giver(), taker(0, 0.0)], Mesh())


def test_bytes_are_held_from_their_making_to_their_end():
    with MemoryTracker() as held:
        a = torch.zeros(100)
        b = a + 1
        view = b[:10]
        assert held.alive == 800
        del a, b
        assert held.alive == 400
        del view
    assert (held.alive, held.peak) == (0, 800)


def test_wirings_are_chosen_by_kind():
    assert from_dict(Circle, {"kind": "ring"}) == Circle()
