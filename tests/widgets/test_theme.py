"""Figures in words: three digits at most, a unit that fits, and nothing small becomes nothing."""

import pytest

from widgets.theme import figure


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0, "", "0"),
        (2.22e-16, "", "2.22e-16"),
        (1e-16, "", "1e-16"),
        (-3.04e-9, "", "-3.04e-9"),
        (5e-5, "", "5e-5"),
        (2.5e-7, "", "2.5e-7"),
        (0.000123, "", "0.000123"),
        (0.05, "", "0.05"),
        (999.6, "", "1000"),
        (3.863e12, "", "3.86 T"),
        (2.5e-9, "s", "2.5 ns"),
        (1e-7, "%", "1e-5 %"),
        (float("nan"), "", "–"),
    ],
)
def test_a_figure_in_words(value, unit, words):
    assert figure(value, unit) == words
