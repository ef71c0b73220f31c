"""The learning rate's shape, and why runs may be cut short or extended."""

import pytest

from engine.training.loop.learning_rate import learning_rate


def rates(steps: int, warmup: int = 10, decay: int = 20) -> list[float]:
    return [learning_rate(step, steps, 1.0, warmup, decay) for step in range(steps)]


def test_the_rate_climbs_stays_and_falls() -> None:
    curve = rates(100)
    assert curve[:10] == pytest.approx([(n + 1) / 10 for n in range(10)])
    assert curve[10:79] == [1.0] * 69
    assert all(later < earlier for earlier, later in zip(curve[79:], curve[80:], strict=False))
    assert 0 < curve[-1] < 0.01


def test_a_longer_run_is_the_same_until_the_decay() -> None:
    assert rates(100)[:80] == rates(500)[:80]


def test_no_decay_ends_at_the_peak() -> None:
    assert rates(30, decay=0)[-1] == 1.0
