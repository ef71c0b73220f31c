"""A step's clock stands still where it is told to, and nowhere else."""

import pytest

from engine.core.clock import StepClock, VirtualClock, WallClock


def test_it_stands_still_within_a_moment_and_goes_on_after_it():
    under = VirtualClock()
    clock = StepClock(under)
    under.wait_until(1.0)
    with clock.at(1.0):
        under.wait_until(2.0)
        assert clock.now() == 1.0
        with clock.at(1.5):
            assert clock.now() == 1.5
        assert clock.now() == 1.0
    assert clock.now() == 2.0


def test_a_fault_within_a_moment_does_not_stop_it_for_good():
    under = VirtualClock()
    clock = StepClock(under)
    with pytest.raises(ValueError), clock.at(0.0):
        raise ValueError
    clock.wait_until(3.0)
    assert clock.now() == under.now() == 3.0


def test_it_is_of_the_kind_of_the_clock_under_it():
    assert StepClock(WallClock()).name == "wall"
    assert StepClock(VirtualClock()).name == "virtual"
