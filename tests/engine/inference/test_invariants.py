"""The cache and the scheduler under random operations, checked after every one."""

import pytest

from tests.engine.inference.play import Life


@pytest.mark.parametrize("part", range(10))  # the last two with recurrent states
def test_every_page_has_its_holders_after_every_operation(part, full):
    seeds, operations = (250, 500) if full else (8, 60)
    for seed in range(part * seeds, (part + 1) * seeds):
        life = Life(seed, states=part > 7)
        try:
            for _ in range(operations):
                life.play()
            life.end()
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault
