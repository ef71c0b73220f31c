"""A step's clock stands still where it is told to, and nowhere else."""

import threading
import time

import pytest

from engine.core.clock import StepClock, VirtualClock, WallClock, aside, counted


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


def test_what_a_thread_does_aside_is_in_no_time_of_its_runs():
    clock, start = WallClock(), counted()
    with pytest.raises(ValueError), aside():
        before = clock.now()
        with aside():
            time.sleep(0.05)
        assert clock.now() == before, "it stands still within, the inner block over or not"
        raise ValueError
    wall = clock.origin + clock.now()
    assert time.perf_counter() - wall >= 0.05
    assert clock.now() >= before and counted() - start >= clock.now() - before


def test_what_another_thread_does_aside_is_in_this_ones_time():
    clock = WallClock()

    def compiles():
        with aside():
            time.sleep(0.05)

    thread = threading.Thread(target=compiles)
    thread.start()
    thread.join()
    assert clock.now() >= 0.05
