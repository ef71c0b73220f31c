"""The rival of Hogwild's workers whose shares of the queue were fixed beforehand."""

import pytest

from engine.tasks.square_queue import queues
from workbench.studies.reasoning._shared_queue import fixed_shares


@pytest.mark.parametrize(("crew", "rounds"), [(1, 6), (2, 3), (3, 2), (4, 2), (6, 1), (8, 1)])
def test_the_longest_fixed_share_is_as_many_steps_as_it_has_letters(crew: int, rounds: int) -> None:
    problem = next(each for each in queues("test", 40) if len(each.entries) == 6)
    letters = len(problem.said(0))
    assert fixed_shares(problem, crew) == rounds * letters
