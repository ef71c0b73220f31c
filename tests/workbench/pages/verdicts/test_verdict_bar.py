"""The bar of a verdict: places on one scale."""

import math

from workbench.finding import Figure, Reported
from workbench.pages.verdicts.verdict_bar import verdict_bar


def places(bar):
    return {mark["kind"]: mark["at"] for mark in bar["marks"]}


def test_marks_stand_in_the_order_of_their_values():
    bar = verdict_bar(Figure(1.5, 1.2, 1.8, "×", 5), 1.1, Reported(2.0, none=1.0))
    at = places(bar)
    assert at["none"] < at["needed"] < bar["low"] < at["here"] < bar["high"] < at["paper"]
    assert at["none"] > 0 and at["paper"] < 1
    assert {mark["text"] for mark in bar["marks"]} >= {"here 1.5 ×", "the paper 2 ×"}


def test_values_far_apart_are_set_by_their_logarithms():
    at = places(verdict_bar(Figure.exact(10.0), 1.0, Reported(100.0, none=None)))
    assert math.isclose(at["here"], (at["needed"] + at["paper"]) / 2, abs_tol=1e-3)


def test_an_interval_without_ends_fills_the_bar():
    bar = verdict_bar(Figure.mean([2.0]), 1.0, None)
    assert (bar["low"], bar["high"]) == (0.0, 1.0)


def test_a_figure_with_nothing_beside_it_has_no_bar():
    assert verdict_bar(None, 1.0, Reported(2.0)) == {}
    assert verdict_bar(Figure.exact(1.0), None, None) == {}
    assert verdict_bar(Figure(math.nan, 0, 0), 1.0, None) == {}


def test_equal_values_share_their_text_and_nothing_apart_has_no_bar():
    assert verdict_bar(Figure.exact(0.0), 0.0, Reported(0.0, "equal")) == {}
    bar = verdict_bar(Figure.exact(3.0, "letters"), 0.0, Reported(0.0, "equal"))
    assert [mark["text"] for mark in bar["marks"]] == ["here 3", "the paper, needed 0", ""]


def test_an_end_far_away_does_not_stretch_the_scale():
    bar = verdict_bar(Figure(3.0, 0.02, 517.0, "×", 2), 1.0, Reported(11.0, none=1.0))
    assert places(bar)["paper"] > 0.9
    assert bar["high"] == 1.0
