"""What a figure says of the figure that a paper reports."""

import math

import numpy as np
import pytest

from workbench.finding import Figure, Reported, finding, reach, told

MORE = Reported(2.0, "more", none=1.0, tolerance=0.1)
LESS = Reported(0.5, "less", none=1.0)
SAME = Reported(0.0, "equal", tolerance=0.01)
BOUND = Reported(0.071, "less")


@pytest.mark.parametrize(
    ("low", "high", "reported", "expected"),
    [
        (1.8, 1.95, MORE, "reproduced"),  # reaches the tolerance
        (2.2, 2.4, MORE, "reproduced"),
        (1.2, 1.8, MORE, "weaker"),
        (1.5, 1.95, MORE, "reproduced"),  # a little less than all, and no less than half, of it
        (1.45, 1.95, MORE, "undecided"),  # holds the paper's effect and less than half of it
        (1.45, 2.9, MORE, "undecided"),  # wide upward too: its value reaches, its low end does not
        (1.95, 9.0, MORE, "reproduced"),  # all of it is the paper's or better: width is no matter
        (0.9, 1.3, MORE, "undecided"),
        (0.9, 2.5, MORE, "undecided"),  # too wide to say either
        (1.0, 1.0, MORE, "undecided"),  # exactly no effect
        (0.5, 0.9, MORE, "contrary"),
        (0.4, 0.6, LESS, "reproduced"),
        (0.4, 0.8, LESS, "undecided"),
        (0.6, 0.8, LESS, "weaker"),
        (0.8, 1.1, LESS, "undecided"),
        (1.1, 1.4, LESS, "contrary"),
        (-0.2, 0.3, Reported(0.05, "more", none=0.0), "undecided"),
        (-0.3, -0.1, Reported(0.05, "more", none=0.0), "contrary"),
        (0.001, 9.0, Reported(0.0, "more", none=0.0), "reproduced"),  # a direction has no half
        (-0.005, 0.01, SAME, "reproduced"),
        (-0.2, 0.23, SAME, "undecided"),  # +1.5% ± 21.6% is not equal, and not unequal
        (0.02, 0.04, SAME, "contrary"),
        (-0.04, -0.02, SAME, "contrary"),
        (0.0, 0.0, Reported(0.0, "equal"), "reproduced"),
        (0.05, 0.07, BOUND, "reproduced"),
        (0.05, 0.09, BOUND, "undecided"),
        (0.4, 0.6, BOUND, "contrary"),
        (-math.inf, math.inf, MORE, "undecided"),
        (-math.inf, math.inf, SAME, "undecided"),
    ],
)
def test_the_finding_follows_from_the_interval(low, high, reported, expected):
    middle = (low + high) / 2 if math.isfinite(low + high) else 1.0
    assert finding(Figure(middle, low, high), reported) == expected


def test_without_a_figure_of_both_nothing_was_tried():
    assert finding(None, MORE) == "not tried"
    assert finding(Figure.exact(2.0), None) == "not tried"
    assert finding(Figure(math.nan, math.nan, math.nan), MORE) == "not tried"


@pytest.mark.parametrize(
    ("value", "low", "high", "reported", "expected"),
    [
        (2.1, 1.7, 2.5, MORE, "figure"),
        (1.9, 1.7, 2.1, MORE, "figure"),  # within the tolerance
        (1.8, 1.7, 1.95, MORE, "interval"),
        (0.55, 0.45, 0.65, LESS, "interval"),
        (0.45, 0.4, 0.6, LESS, "figure"),
        (0.06, 0.05, 0.07, BOUND, "figure"),
        (0.0, -0.005, 0.005, SAME, "figure"),
        (1.3, 1.1, 1.5, Reported(1.0, none=1.0), "direction"),
        (1.3, 1.2, 1.4, MORE, None),
        (1.0, 0.5, 2.5, MORE, None),
    ],
)
def test_a_reproduced_figure_says_how_it_reaches_the_papers(value, low, high, reported, expected):
    figure = Figure(value, low, high)
    assert reach(figure, reported) == expected
    said = {
        "figure": "reproduced",
        "interval": "reproduced by its interval's end, its value falls short",
        "direction": "reproduced in direction only",
    }
    seen = finding(figure, reported)
    assert told(seen, expected) == said.get(expected, seen)


def test_a_mean_of_few_has_students_interval_and_of_one_none():
    figure = Figure.mean([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776 * math.sqrt(2.5 / 5)
    assert (figure.value, figure.n) == (3.0, 5)
    assert figure.low == pytest.approx(3.0 - half)
    assert figure.high == pytest.approx(3.0 + half)
    one = Figure.mean([1.0])
    assert (one.low, one.high) == (-math.inf, math.inf)


def test_a_mean_of_many_is_resampled_and_of_answers_is_a_share():
    values = np.random.default_rng(0).normal(1.0, 1.0, 400)
    figure = Figure.mean(values)
    assert figure.high - figure.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    right = Figure.mean(np.array([True] * 8 + [False] * 2))
    assert (right.value, right.n) == (0.8, 10)
    assert 0.4 < right.low < 0.8 < right.high < 1.0


def test_a_ratio_of_pairs_treats_twice_and_half_alike():
    figure = Figure.ratio([2.0, 1.0], [1.0, 2.0])
    assert figure.value == pytest.approx(1.0)
    assert figure.low < 1.0 < figure.high
    assert Figure.ratio([3.0], [1.5]).value == pytest.approx(2.0)


def test_a_figure_reads_back_from_json():
    for figure in (Figure.exact(3.0, "s"), Figure.mean([1.0]), Figure.share(3, 4)):
        assert Figure.of_row(figure.row()) == figure
