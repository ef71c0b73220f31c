"""One figure for how far numbers are off: right where they are numbers, huge where one is not."""

import numpy as np
import pytest
import torch

from engine.core.difference import FAR, largest, relative

RIGHT = np.array([1.0, -4.0, 2.0])


def test_the_farthest_number_counts():
    found = RIGHT + np.array([0.1, -0.2, 0.0])
    assert largest(found, RIGHT) == pytest.approx(0.2)
    assert relative(found, RIGHT) == pytest.approx(0.05)
    assert largest(torch.from_numpy(found).float(), RIGHT) == pytest.approx(0.2, rel=1e-6)
    assert largest([], []) == relative([], []) == 0.0
    assert relative([0.0], [0.0]) == 0.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 2])
def test_what_is_no_number_is_never_close(wrong, place):
    found = RIGHT.copy()
    found[place] = wrong
    for measure in (largest, relative):
        assert measure(found, RIGHT) > 1e29
        assert measure(RIGHT, found) > 1e29
        assert max(0.0, measure(found, RIGHT)) > 1e29  # as claims take the worst of many
    assert relative(found, found) == relative(found, 1e-9 * RIGHT) == FAR
