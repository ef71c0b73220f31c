"""Maps of where claims hold: of a study's own claims, as recorded, and drawn here by turns."""

import math
from dataclasses import replace

import pytest

from engine.core.config import knobs, update
from tests.contracts.dear import DEAR, DEAR_MAPS
from tests.contracts.test_studies import RECORDED, SLUGS, THIRD, file_of
from tests.turn import TURNS, changed, turn_of_this_commit
from workbench.catalogue import study
from workbench.finding import Figure
from workbench.kept_maps import shipped
from workbench.regime import Regime, draw
from workbench.study import Outcome, Study, here

MAPS = TURNS * THIRD  # commits in which each study has a point of its maps drawn
TURN = turn_of_this_commit()


@pytest.fixture(scope="module", params=SLUGS)
def chosen(request) -> Study:
    return study(request.param)


def test_maps_say_at_the_default_what_the_record_says(chosen):
    """A map that is of the claim's whole load; one that is of less says so on its axis."""
    own = chosen.configured({})
    plain = {knob.path: knob.value for knob in knobs(own)}
    for regime in chosen.regimes:
        kept, row = shipped(chosen.slug).get(regime.name), RECORDED[chosen.slug, regime.claim]
        timed = chosen.claim(regime.claim).timed
        if kept is None or regime.less or timed or kept.fast or row["fast"]:
            continue
        seen = Figure.of_row(row["figure"])
        ends = pytest.approx((seen.value, seen.low, seen.high), rel=0.005)
        at = plain.get(regime.knob) if regime.default is None else regime.default
        for point in kept.points:
            changes = {**regime.changes, **regime.series[point.line]}
            if point.value == at and update(own, changes) == own:
                assert point.figure is not None
                same = (point.figure.value, point.figure.low, point.figure.high) == ends
                same = same and (point.holds, point.finding) == (row["holds"], row["finding"])
                assert same, f"{regime.name}: {point}, the record {seen}"


def test_regimes_and_their_maps_are_of_its_claims(chosen):
    assert len({each.name for each in chosen.regimes}) == len(chosen.regimes)
    for each in chosen.regimes:
        assert chosen.claim(each.claim)
        assert list(each.values) == sorted(each.values)
        assert set(each.at(fast=True)) <= set(each.values)
    named = {each.name: each for each in chosen.regimes}
    for name, kept in shipped(chosen.slug).items():
        regime = named[name]
        for point in kept.points:
            assert point.value in regime.values and point.line in regime.series, f"{name}: {point}"
            seen = Outcome("", "", point.holds, figure=point.figure, needed=point.needed)
            assert chosen.claim(regime.claim).bears(seen), f"{name}: {point}"


def points(chosen: Study, full: bool) -> list[tuple[Regime, str, float]]:
    """What its coarse maps draw, but for speeds and, without --full, those of dear claims: a map, a
    line of it, and a value."""
    dear = {id for slug, id in (*DEAR, *DEAR_MAPS) if slug == chosen.slug and not full}
    return [
        (regime, line, value)
        for regime in chosen.regimes
        if not chosen.claim(regime.claim).timed and regime.claim not in dear
        for line in regime.series
        for value in regime.at(fast=True)
    ]


def test_a_coarse_map_is_drawn(chosen, runs, full):
    """A point of a map, another one each time, of one study in so many, and of those that have
    changed; --full: all."""
    drawn, place = points(chosen, full), file_of(chosen.slug)
    turn = SLUGS.index(chosen.slug) % MAPS == TURN % MAPS or place in changed()
    if not drawn or not (full or turn):
        pytest.skip(f"no maps, or another turn of {MAPS}; --full draws all")
    for regime, line, value in drawn if full else [drawn[TURN // MAPS % len(drawn)]]:
        one = replace(regime, coarse=(value,), series={line: regime.series[line]})
        claim = chosen.claim(regime.claim)
        (point,) = draw(one, claim, chosen.configured({}), runs.of(chosen), here(), True).points
        where = f"{regime.name} at {value:g} {line}"
        assert point.told or (point.figure and math.isfinite(point.figure.value)), where
        seen = Outcome("", "", point.holds, figure=point.figure, needed=point.needed)
        assert claim.bears(seen), where
