"""Claims about taught models: each names them, and says over what its interval is."""

import json
from dataclasses import replace

import pytest

from engine.models.loading.find import series, shipped
from engine.recipes.language_models import RECIPES
from workbench.catalogue import study
from workbench.claim_text import over_line, several_line
from workbench.finding import Figure
from workbench.pages.verdicts.claims import claim_card
from workbench.pages.verdicts.verdicts import Standing
from workbench.study import Outcome, Verdict
from workbench.trainings.trained_again import recipe_of

SYSTEMS = (
    "adaptive-parallel-reasoning", "batch-speculative", "cosine", "deepprune", "execution-guided",
    "fp8-vs-int8", "hogwild", "large-language-monkeys", "mirror-sd", "multi-stream",
    "next-frame-diffusion", "parallelbench", "parathinker", "shiftaddllm", "streaming-thinker",
    "threadweaver",
)  # fmt: skip
STEPS = {  # seconds of a step or passes of a frame, whatever the weights are
    ("hogwild", "beside-cost"), ("hogwild", "sharing-cost"), ("hogwild", "step-cost"),
    ("parathinker", "overhead"), ("next-frame-diffusion", "fewer-passes"),
    ("next-frame-diffusion", "frame-rate"),
}  # fmt: skip
# Of systems that work on models of text: all other claims are of described shapes, of drawn
# numbers, or of a layer by itself.
OF_TEXT = {
    ("batch-speculative", "faster-here"), ("cosine", "above-one"), ("fp8-vs-int8", "no-worse"),
    ("fp8-vs-int8", "by-layer"), ("fp8-vs-int8", "when-trained"), ("mirror-sd", "foreseen"),
    ("shiftaddllm", "lower-at-two"), ("shiftaddllm", "lower-at-three"), ("shiftaddllm", "both"),
    ("shiftaddllm", "bits-by-layer"),
}  # fmt: skip
ELSEWHERE = {"lists-diffusion-150k", "catch-frames-150k"}  # shipped, but no serving engine's
CLAIMS = [
    pytest.param(slug, claim, id=f"{slug}-{claim.id}")
    for slug in SYSTEMS
    for claim in study(slug).claims
]


@pytest.mark.parametrize(("slug", "claim"), CLAIMS)
def test_what_a_taught_model_reaches_names_the_model(slug, claim):
    rests = claim.grade != "exact" and (slug, claim.id) not in STEPS
    if slug in dict(OF_TEXT):
        rests = (slug, claim.id) in OF_TEXT
    assert (claim.taught is not None) == rests
    if claim.taught is None:
        return
    assert set(claim.taught.names) <= {*shipped(), *series(), *ELSEWHERE}
    assert all(recipe_of(name, 1) or name in RECIPES for name in claim.taught.names)
    assert study(slug).configured(dict(claim.taught.knobs))


def test_an_interval_over_problems_is_told_where_the_claim_is_read():
    claim = study("streaming-thinker").claim("accuracy")
    facts = dict(claim_card(Standing(claim), False)["facts"])
    alone = facts["Interval"]
    assert "Trainings" not in facts
    assert alone == over_line(claim, None)
    assert "of another training it says nothing" in alone
    outcome = Outcome("a", "b", True, figure=Figure.exact(0.0, "%"))
    row = Verdict("streaming-thinker", claim, outcome).row()
    assert json.loads(json.dumps(row))["taught"] == [
        "ledger-700k", "ledger-streaming-700k", "ledger-batch-700k"
    ]  # fmt: skip
    exact = study("streaming-thinker").claim("mask")
    assert "Interval" not in dict(claim_card(Standing(exact), False)["facts"])
    assert over_line(exact, None) == ""


def test_what_five_trainings_came_to_has_a_row_of_its_own():
    claim = study("hogwild").claim("fewer-steps")
    figure = Figure(-16.0, -17.0, -15.0, "steps", 5)
    each = {"figure": figure.row(), "holds": True}
    over = {"figure": figure.row(), "holds": True, "trainings": [each] * 5, "fast": False,
            "needed": 0.0, "once": [], "models": {"square-queue-170k": ""}}  # fmt: skip
    facts = dict(claim_card(Standing(claim), False, over=over)["facts"])
    assert facts["Interval"] == "over problems, of one training of each model"
    told = facts["Trainings"]
    assert told.startswith("of 5: reproduced in direction only, -16 steps")
    assert "; the check says yes of each training; each -16 · -16 · -16" in told
    assert told.endswith(" -16 · -16 · -16 steps; at full size")
    few = {**over, "figure": None, "trainings": [each, {**each, "holds": False}]}
    told = dict(claim_card(Standing(claim), False, over=few)["facts"])["Trainings"]
    assert (
        told == "2, too few to judge; the check says yes of 1 of 2 trainings; each -16 · -16 steps"
    )
    assert over_line(replace(claim, taught=None), over) == ""
    assert several_line(claim, {**over, "trainings": []}) == several_line(claim, None) == ""
