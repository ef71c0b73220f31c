"""Judging a study's claims."""

import dataclasses

import pytest

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.study import check

OTHER = dataclasses.replace(TOY.claims[0], id="quick", grade="measured")
BOTH = dataclasses.replace(TOY, claims=(*TOY.claims, OTHER))


def test_claims_of_one_grade_are_judged_or_all():
    assert [verdict.claim.id for verdict in check(BOTH)] == ["rises", "quick"]
    assert [verdict.claim.id for verdict in check(BOTH, grade="measured")] == ["quick"]
    assert list(check(TOY, grade="modelled")) == []


def test_a_grade_that_there_is_none_of_is_refused():
    with pytest.raises(BadInput, match="grade 'exactly': one of exact, measured"):
        list(check(TOY, grade="exactly"))
