"""Figures in words: three digits at most, a unit that fits, and nothing small becomes nothing; and
colours that all eyes tell apart."""

from itertools import combinations

import numpy as np
import pytest

from engine.reasoning.threads.run import NAMES
from tests.widgets.eyes import EYES, apart, seen
from widgets.theme import figure, hue, hues, scheme, texture, tones, wrong

# Where two colours are no shades of one at a glance; set before the hues were chosen.
TOLD_APART = 10.0


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


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [  # of the pairs that Sharma, Wu and Dalal publish to try an implementation by
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_of_colours_is_the_published_one(one, other, distance):
    assert apart(np.array(one), np.array(other)) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_all_eyes_tell_every_two_colours_of_a_theme_apart(dark, eyes):
    """Owners' hues, the second tones of work that follows its like, a fault's red and the grey of
    what is idle, each two of which may be neighbours."""
    every = (*hues(dark), *tones(dark), wrong(dark), scheme(dark).idle)
    colours = {colour: seen(colour, eyes) for colour in every}
    assert len(colours) == 18
    near = {
        two: apart(colours[two[0]], colours[two[1]])
        for two in combinations(colours, 2)
        if apart(colours[two[0]], colours[two[1]]) < TOLD_APART
    }
    assert near == {}


def test_threads_have_a_plain_hue_each_and_a_ninth_request_a_second_mark():
    assert len({hue(name) for name in NAMES}) == len(NAMES) == len(hues())
    assert [texture(name) for name in (*NAMES, "r7", "r8")] == [0] * 9 + [1]


def test_a_named_thread_s_fork_has_its_hue_with_a_mark_and_no_other_thread_s():
    for name in NAMES:
        assert (hue(f"{name}.1"), texture(f"{name}.1")) == (hue(name), 1)
    assert [hue(f"p0.{n}") for n in range(1, 4)] == list(hues()[1:4])


def test_a_request_that_goes_on_under_a_number_of_its_own_keeps_its_hue():
    assert [hue(f"p{n}-1") for n in range(4)] == [hue(f"p{n}") for n in range(4)]
    assert hue("req-3") == hue("r3")  # a number alone is its own
