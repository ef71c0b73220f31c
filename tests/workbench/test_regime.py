"""Regime maps: where a claim holds."""

import json
import math
from dataclasses import replace

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level
from tests.workbench.toy import TOY
from workbench.regime import Point, Regime, RegimeMap, draw, in_runs, named, sentence
from workbench.study import Claim, Figure, Outcome, Reported


def enough(config, run, fast):
    highest = max(level.value for level in run(config).of(Level))
    return Outcome("under 5", f"{highest}", highest < 5, figure=Figure.exact(highest), needed=5.0)


CLAIM = Claim("low", "It stays low.", "under 3", "exact", enough, broken={"count": 9},
              reported=Reported(3.0, "less", none=8.0))  # fmt: skip
OVER = Regime("low", "count", (1, 3, 5, 7, 9), x="ticks", y="highest", paper=4, default=5)


def made(holds, values=(1, 2, 3, 4)):
    points = tuple(
        Point("", value, None, None, each == "y", "not tried")
        for value, each in zip(values, holds, strict=True)
    )
    return RegimeMap("low over count", points, "here", True)


def test_a_knob_that_a_check_sets_itself_is_turned_in_its_runs():
    def sized(config, run, fast):
        return enough(update(config, {"count": 9}), run, fast)

    regime = replace(OVER, judged=in_runs(sized, "count"))
    seen = draw(regime, replace(CLAIM, check=sized), TOY.config, TOY.run_config(), "here", True)
    assert [(p.value, p.figure.value) for p in seen.points] == [(1, 0), (5, 4), (9, 8)]


def test_the_claim_is_judged_at_each_value():
    seen = draw(OVER, CLAIM, TOY.config, TOY.run_config(), "here", fast=False)
    assert [(p.value, p.figure.value, p.holds) for p in seen.points] == [
        (1, 0, True), (3, 2, True), (5, 4, True), (7, 6, False), (9, 8, False)
    ]  # fmt: skip
    assert [p.finding for p in seen.points] == [
        "reproduced", "reproduced", "weaker", "weaker", "undecided"
    ]  # fmt: skip
    assert RegimeMap.of_row(seen.row()) == seen


def test_a_figure_that_is_no_number_is_told_in_words():
    def over_nothing(config, run, fast):
        return Outcome("less", "the rival waits for nothing", False, figure=Figure.exact(math.inf))

    claim = replace(CLAIM, check=over_nothing)
    seen = draw(OVER, claim, TOY.config, TOY.run_config(), "here", fast=True)
    assert {(p.figure, p.finding, p.told) for p in seen.points} == {
        (None, "contrary", "the rival waits for nothing")
    }
    assert RegimeMap.of_row(json.loads(json.dumps(seen.row()))) == seen


def test_a_small_map_has_the_ends_and_the_middle_or_what_it_names():
    assert OVER.at(fast=True) == (1, 5, 9)
    assert OVER.at(fast=False) == OVER.values


def test_each_line_has_its_own_knobs():
    lines = Regime("low", "count", (3, 9), x="", y="", series={"up": {}, "down": {"order": "down"}})
    seen = draw(lines, CLAIM, TOY.config, TOY.run_config(), "here", fast=False)
    assert [(p.line, p.holds) for p in seen.points] == [
        ("up", True), ("up", False), ("down", True), ("down", False)
    ]  # fmt: skip
    assert sentence(lines, seen, lambda v: f"{v:g}") == (
        "Both: holds and reaches the paper's figure up to 3"
    )
    assert sentence(lines, seen, lambda v: f"{v:g}", direction=True) == (
        "Both: holds and goes the paper's way up to 3"
    )


def test_lines_of_which_the_same_is_said_are_named_together():
    def lines(**holds):
        return RegimeMap("low over count", tuple(
            Point(line, value, None, None, held, "not tried")
            for line, own in holds.items() for value, held in zip((1, 2), own, strict=True)
        ), "here", True)  # fmt: skip

    drawn = lines(up=(True, False), down=(False, False), over=(True, False))
    assert sentence(replace(OVER, paper=None), drawn, "{:g}".format) == (
        "Up and over: holds up to 1; down: holds nowhere from 1 to 2"
    )
    every = lines(up=(True, False), down=(True, False), over=(True, False))
    assert sentence(replace(OVER, paper=None), every, "{:g}".format) == "All 3: holds up to 1"


def test_what_is_true_of_every_line_is_said_once():
    def lines(*findings):
        return RegimeMap("low over count", tuple(
            Point(line, value, None, None, value > 1, each)
            for line in ("up", "down") for value, each in zip((1, 2), findings, strict=True)
        ), "here", True)  # fmt: skip

    over = replace(OVER, paper=None)
    assert sentence(over, lines("reproduced", "reproduced"), "{:g}".format) == (
        "Both: holds from 2 on; each reaches the paper's figure everywhere from 1 to 2"
    )
    assert sentence(over, lines("weaker", "weaker"), "{:g}".format) == (
        "Both: holds from 2 on; none reaches the paper's figure from 1 to 2"
    )


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        ("yynn", "Holds up to 2 ticks"),
        ("nnyy", "Holds from 3 ticks on"),
        ("yyyy", "Holds everywhere from 1 to 4 ticks"),
        ("nnnn", "Holds nowhere from 1 to 4 ticks"),
        ("nyyn", "Holds from 2 to 3 ticks"),
        ("nynn", "Holds at 2 ticks"),
        ("ynny", "Holds up to 1 tick and from 4 ticks on"),
    ],
)
def test_its_title_is_computed_from_its_points(holds, said):
    over = replace(OVER, noun="ticks")
    assert sentence(over, made(holds), "{:g}".format) == f"{said}; the paper has 4"


def test_what_the_figure_denies_is_not_called_true_on_a_map():
    first, *others = made("yyyy").points
    drawn = replace(made("yyyy"), points=(replace(first, finding="contrary"), *others))
    assert [point.stands for point in drawn.points] == [False, True, True, True]
    assert sentence(OVER, drawn, "{:g}".format).startswith("Holds from 2 on")


def test_a_name_that_is_none_is_refused():
    assert named((OVER,), "low") is OVER
    with pytest.raises(BadInput, match="regime 'high': no such map"):
        named((OVER,), "high")


def test_its_axis_says_how_much_less_it_is_of():
    over = replace(OVER, y="time over ours (×)")
    assert over.upright == "time over ours (×)"
    assert replace(over, less="one draw").upright == "time over ours, one draw (×)"
    assert replace(OVER, y="tokens (of all) lost", less="one draw").upright == (
        "tokens (of all) lost, one draw"
    )
