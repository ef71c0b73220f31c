"""Error feedback loses nothing: what was told and what is kept add up to what was to be said.

Over 1,000 steps with --full, to one rounding of float32 a step (Seide et al., Interspeech 2014).
"""

import pytest
import torch

from engine.core.log import Log
from engine.core.run import Live
from engine.distributed.program import Receive, Send
from engine.distributed.transport import Shape
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float16 import Float16
from engine.training.low_communication.codecs.four_bit import FourBit
from engine.training.low_communication.codecs.one_bit import OneBit
from engine.training.low_communication.in_process_runtime import InProcessRuntime
from engine.training.low_communication.mean import Feedback, feedback, mean_of_all
from engine.training.low_communication.replica import Place

RANKS, SIZE = 3, 101
ULP = 2.0**-23


class Wire:
    """A replica as far as a mean needs one."""

    def __init__(self, rank: int) -> None:
        self.place, self.weights_P = Place(rank, RANKS), torch.zeros(SIZE)

    def send(self, target, packed, task):
        return Send(target, [packed], task)

    def receive(self, source, size, task):
        return Receive(source, [Shape((size,), torch.uint8)], task)


class Sums:
    """One rank's program: means of drawn vectors; sums in float64 of what went in and came out."""

    def __init__(self, rank: int, codec: Codec, steps: int, keeps: bool) -> None:
        self.wire, self.codec, self.steps = Wire(rank), codec, steps
        self.kept: Feedback | None = feedback(self.wire) if keeps else None
        self.given, self.found = torch.zeros(2, SIZE, dtype=torch.float64)
        self.largest = 0.0

    def program(self):
        draw = torch.Generator().manual_seed(self.wire.place.rank)
        for step in range(self.steps):
            x_P = torch.randn(SIZE, generator=draw) * 10.0 ** (step % 5 - 2)
            mean_P = yield from mean_of_all(self.wire, self.codec, x_P, str(step), self.kept)
            self.given += x_P.double()
            self.found += mean_P.double()
            if self.kept is not None:
                self.largest = max(self.largest, float(self.kept.worker_P.abs().max()))


def played(codec: Codec, steps: int, keeps: bool) -> list[Sums]:
    ranks = [Sums(rank, codec, steps, keeps) for rank in range(RANKS)]
    live = Live(Log())
    InProcessRuntime([each.program() for each in ranks], live.emit, lambda now: None).run()
    return ranks


@pytest.mark.parametrize("codec", [OneBit(block=8), FourBit(block=16), Float16()], ids=str)
def test_sums_are_whole_with_feedback_and_not_without(codec, full):
    steps = 1000 if full else 50
    ranks = played(codec, steps, keeps=True)
    server_P = torch.cat([each.kept.server_S for each in ranks]).double()
    worker_P = torch.stack([each.kept.worker_P for each in ranks]).double().mean(0)
    given_P = torch.stack([each.given for each in ranks]).mean(0)
    off = float((ranks[0].found + server_P + worker_P - given_P).abs().max())
    scale = 100.0 + max(each.largest for each in ranks)
    assert off <= 3 * ULP * scale * steps, "one rounding a step at the sender, two at the server"
    assert off <= 1e-4 * float(given_P.abs().max())
    without = played(codec, steps, keeps=False)
    lost = float((without[0].found - given_P).abs().max())
    assert lost > 10 * off, "packing loses nothing that feedback could keep"
