"""Claims about taught models: each says over what its interval is, problems or trainings."""

from dataclasses import replace

import pytest

from workbench.catalogue import study
from workbench.claim_text import over_line
from workbench.finding import Figure
from workbench.pages.verdicts.claims import claim_card
from workbench.pages.verdicts.verdicts import Standing
from workbench.study import Outcome, Verdict

SYSTEMS = (
    "adaptive-parallel-reasoning", "deepprune", "hogwild", "large-language-monkeys",
    "multi-stream", "parathinker", "streaming-thinker", "threadweaver",
)  # fmt: skip
STEPS = {  # seconds of a step, whatever the weights are; intervals over rounds
    ("hogwild", "beside-cost"), ("hogwild", "sharing-cost"), ("hogwild", "step-cost"),
    ("parathinker", "overhead"),
}  # fmt: skip
CLAIMS = [
    pytest.param(slug, claim, id=f"{slug}-{claim.id}")
    for slug in SYSTEMS
    for claim in study(slug).claims
]


@pytest.mark.parametrize(("slug", "claim"), CLAIMS)
def test_what_a_taught_model_reaches_says_of_how_many_trainings_it_is(slug, claim):
    rests = claim.grade != "exact" and (slug, claim.id) not in STEPS
    assert (claim.trainings > 0) == rests


def test_an_interval_over_problems_is_told_where_the_claim_is_read():
    claim = study("streaming-thinker").claim("accuracy")
    assert dict(claim_card(Standing(claim), False)["facts"])["Interval"] == over_line(1)
    outcome = Outcome("a", "b", True, figure=Figure.exact(0.0, "%"))
    assert Verdict("streaming-thinker", claim, outcome).row()["trainings"] == 1
    many = replace(claim, trainings=5)
    told = dict(claim_card(Standing(many), False)["facts"])["Interval"]
    assert told == "over 5 trainings of each model"
    exact = study("streaming-thinker").claim("mask")
    assert "Interval" not in dict(claim_card(Standing(exact), False)["facts"])
