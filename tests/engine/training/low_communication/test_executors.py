"""One program three ways: in turns, on a described network, as real ranks; with the same result."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Blob, Level, Move
from engine.core.log import Log
from engine.distributed.program import Receive, Wait
from engine.training.low_communication.in_process_runtime import InProcessRuntime
from tests.engine.training.low_communication.small import log_of, small


def losses(log: Log) -> list[tuple[str, str, float]]:
    """Every replica's losses in its own order."""
    return sorted(
        ((level.lane, level.name, level.value) for level in log.of(Level) if "loss" in level.name),
    )


def moved(log: Log) -> list[tuple[str, str, float, str]]:
    return sorted((m.source, m.target, m.bytes, m.tag.split()[0]) for m in log.of(Move))


def test_real_ranks_find_the_losses_and_send_the_bytes_of_one_process():
    """Gradients at every step; the other methods' studies claim it of themselves."""
    config = small(method="synchronous")
    here, there = log_of(config), log_of(update(config, {"executor": "real"}))
    ours, theirs = losses(here), losses(there)
    assert [one[:2] for one in ours] == [one[:2] for one in theirs]
    for (_, _, a), (_, _, b) in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, abs=1e-6)
    assert moved(here) == moved(there)


def test_a_described_network_changes_times_and_nothing_else():
    config = small(**{"method.every": 4})
    slow = log_of(update(config, {"executor": "modelled", "executor.latency": 0.5}))
    quick = log_of(update(config, {"executor": "modelled", "executor.latency": 0.0}))
    assert losses(slow) == losses(quick) == losses(log_of(config))
    assert slow.duration > quick.duration
    times = [event.time for event in slow]
    assert times == sorted(times)


def test_curves_grow_to_the_last_step():
    log = log_of(small())
    names = {blob.name for blob in log.of(Blob)}
    assert "curve/held-out loss by step/streaming_diloco" in names
    last = [b for b in log.of(Blob) if b.name.startswith("curve/held-out loss by step")][-1]
    assert log.blobs[last.ref][0].tolist() == [6.0, 12.0]


def test_synchronous_training_beside_it_leaves_only_its_curves():
    alone, beside = log_of(small()), log_of(small(beside=True))
    assert losses(beside) == losses(alone)
    assert moved(beside) == moved(alone)
    plain = log_of(small(method="synchronous"))
    (drawn,) = (
        beside.blobs[blob.ref]
        for blob in beside.of(Blob)
        if blob.name == "curve/held-out loss by bytes/synchronous AdamW"
    )
    ends = [b for b in plain.of(Blob) if b.name == "curve/held-out loss by bytes/synchronous"]
    assert (drawn == plain.blobs[ends[-1].ref]).all()


def test_replicas_that_wait_for_ever_are_told():
    def alone():
        ticket = yield Receive(1, [], "a word")
        yield Wait(ticket)

    def silent():
        yield from ()

    with pytest.raises(BadInput, match="0 for 1 .a word."):
        InProcessRuntime([alone(), silent()], lambda event: None, lambda now: None).run()
