"""Judging a study's claims."""

import dataclasses

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from tests.workbench.toy import TOY
from workbench.claim import breaks_that_pass, judge
from workbench.study import Break, Claim, Figure, Outcome, Reported, check

OTHER = dataclasses.replace(TOY.claims[0], id="quick", grade="measured")
BOTH = dataclasses.replace(TOY, claims=(*TOY.claims, OTHER))


def test_claims_of_one_grade_are_judged_or_all():
    assert [verdict.claim.id for verdict in check(BOTH)] == ["rises", "quick"]
    assert [verdict.claim.id for verdict in check(BOTH, grade="measured")] == ["quick"]
    assert list(check(TOY, grade="modelled")) == []


def test_a_grade_that_there_is_none_of_is_refused():
    with pytest.raises(BadInput, match="grade 'exactly': one of exact, measured"):
        list(check(TOY, grade="exactly"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"order": "down"}, ""),  # a run of the check has it, another not
        ({"count": 9}, "no run had count as set"),
        ({"count": 9, "order": "down", "wait": 0.001}, "no run had count, wait as set"),
        ({"count": 7}, ""),  # as the claim's own setting has it
    ],
)
def test_what_is_set_and_no_run_of_a_check_has_is_told(changes, told):
    def in_its_own_setting(config, run, fast):
        run(update(config, {"count": 7, "wait": 0.0}))
        run(update(config, {"count": 7, "wait": 0.0, "order": "up"}))
        return Outcome("any", "any", True)

    described = dataclasses.replace(OTHER, check=in_its_own_setting)
    [verdict] = check(dataclasses.replace(TOY, claims=(described,)), changes)
    assert verdict.row()["caution"] == verdict.outcome.caution
    assert verdict.outcome.caution.endswith(told) and bool(verdict.outcome.caution) == bool(told)


def test_of_a_policy_it_is_the_kind_that_counts():
    def of_two_rows(config, run, fast):
        run(update(config, {"batching.size": 2}))
        return Outcome("any", "any", True)

    own = InferenceConfig()
    static = update(own, {"batching": "static_batch", "batching.size": 3})
    claim = dataclasses.replace(OTHER, check=of_two_rows)
    assert judge(claim, static, lambda config: None, True, own).unheeded == ("batching.size",)


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


@pytest.mark.parametrize(
    ("figure", "needed", "reported", "holds"),
    [
        (Figure(1.3, 1.2, 1.4), 1.0, Reported(1.2, none=1.0), True),
        (Figure(1.3, 1.2, 1.4), 1.25, Reported(1.2, none=1.0), False),  # not all of it reaches
        (Figure(1.3, 0.9, 1.7), 0.5, Reported(1.2, none=1.0), False),  # includes no effect
        (Figure(1.3, 1.1, 1.5), 1.0, Reported(1.4, none=1.0), True),  # its way; how far, undecided
        (Figure(0.8, 0.7, 0.9), 0.5, Reported(1.2, none=1.0), False),  # the other way
        (Figure(1.1, 1.05, 1.15), 1.0, Reported(1.4, none=1.0), True),  # weaker, beyond needed
        (Figure(0.8, 0.7, 0.9), 0.9, Reported(0.8, "less", none=1.0), True),
        (Figure(0.8, 0.7, 0.95), 0.9, Reported(0.8, "less", none=1.0), False),
        (Figure(0.1, 0.0, 0.3), 0.1, Reported(0.1, "equal", tolerance=0.1), False),
        (Figure(0.1, 0.0, 0.2), 0.1, Reported(0.1, "equal", tolerance=0.1), True),
        (Figure(0.1, 0.0, 0.3), 0.1, None, True),  # nothing of the paper's to hold it against
    ],
)
def test_a_yes_that_says_more_than_its_figure_is_taken_back(figure, needed, reported, holds):
    """Whatever rule a check has, it cannot be looser than the finding."""
    claim = Claim("any", "Any.", "any", "exact", lambda *_: outcome, {}, reported=reported)
    outcome = Outcome("", "", True, figure=figure, needed=needed)
    assert claim.bears(outcome) == holds
    assert judge(claim, TOY.config, TOY.run_config(), fast=True).holds == holds
    assert claim.bears(dataclasses.replace(outcome, holds=False))
