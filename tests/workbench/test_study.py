"""Judging a study's claims."""

import dataclasses

import pytest

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.claim import breaks_that_pass
from workbench.study import Break, Claim, Figure, Outcome, check

OTHER = dataclasses.replace(TOY.claims[0], id="quick", grade="measured")
BOTH = dataclasses.replace(TOY, claims=(*TOY.claims, OTHER))


def test_claims_of_one_grade_are_judged_or_all():
    assert [verdict.claim.id for verdict in check(BOTH)] == ["rises", "quick"]
    assert [verdict.claim.id for verdict in check(BOTH, grade="measured")] == ["quick"]
    assert list(check(TOY, grade="modelled")) == []


def test_a_grade_that_there_is_none_of_is_refused():
    with pytest.raises(BadInput, match="grade 'exactly': one of exact, measured"):
        list(check(TOY, grade="exactly"))


def highest(config, run, fast):
    figure = Figure(config.count, config.count - 1, config.count + 1)
    return Outcome("under 3", str(config.count), config.count < 3, figure=figure)


def test_where_it_states_to_fail_a_break_has_to_move_its_figure():
    near, far = Break({"count": 6}, True), Break({"count": 9}, True)
    other, same = Break({"count": 6}), Break({"order": "down"})
    claim = Claim("low", "It stays low.", "under 3", "exact", highest, (near, far, other, same),
                  fails=("full",))  # fmt: skip
    assert claim.comes_out(fast=True) and not claim.comes_out(fast=False)
    run = TOY.run_config()
    assert breaks_that_pass(claim, TOY.configured, run, fast=False) == [near, same]
    assert breaks_that_pass(claim, TOY.configured, run, fast=True) == []
