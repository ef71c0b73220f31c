"""Clocks of ranks: second nought is the same moment for all, and nothing of a run precedes it."""

import pytest
from torch import Tensor

from engine.distributed.transport import Transport


class Told:
    """A group in which rank 0's second nought lies `ahead` seconds from this clock's now."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.transport = Transport(self, 1, 2)

    def broadcast(self, start_1: Tensor, source: int) -> "Told":
        start_1[0] = self.transport.now() + self.ahead
        return self

    def wait(self) -> None:
        pass


@pytest.mark.parametrize("ahead", [0.0, 0.5])
def test_a_clock_that_lags_is_set_by_the_nought_that_it_hears_of(ahead):
    told = Told(ahead)
    told.transport.open()
    assert 0.0 <= told.transport.now() < 0.4


def test_a_nought_that_is_past_stays_where_it_was():
    told = Told(-0.5)
    told.transport.open()
    assert 0.5 <= told.transport.now() < 0.9
