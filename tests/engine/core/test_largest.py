"""The largest size within a limit: it fits, a part more does not, whatever the slope."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.largest import largest_within


@given(
    power=st.floats(0.6, 3.0), scale=st.floats(0.1, 1e6), fixed=st.floats(0.0, 1e6),
    limit=st.floats(1e2, 1e12), part=st.sampled_from((64, 128)),
)  # fmt: skip
def test_what_is_found_fits_and_a_part_more_does_not(power, scale, fixed, limit, part):
    def cost(count):
        return fixed + scale * count**power

    most = 1 << 20
    found = largest_within(limit, cost, most, first=8, part=part)
    assert found == 0 or cost(found) <= limit
    more = found + max(1, found // part)
    assert more > most or cost(more) > limit


def test_few_evaluations_are_made_of_a_line_and_of_a_square():
    for power, each in ((1, 96.0), (2, 3.0)):
        tried = []

        def cost(count, power=power, each=each, tried=tried):
            tried.append(count)
            return 4096 + each * count**power

        found = largest_within(2.0**30, cost, 1 << 24, first=256, part=128)
        assert found in tried
        assert len(tried) <= 8


@pytest.mark.parametrize(("limit", "found"), [(0.5, 0), (1.0, 1), (1e9, 5)])
def test_ends(limit, found):
    assert largest_within(limit, float, 5, first=8, part=64) == found
