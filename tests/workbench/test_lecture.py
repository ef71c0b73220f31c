"""A study told step by step: its words, what is asked, and what the answers rest on."""

import pytest

from engine.core.run import Run
from workbench.catalogue import study
from workbench.lecture import (
    CLAIM,
    STORY,
    TRY,
    Step,
    answered,
    asked,
    known,
    question,
    revealed,
    steps,
)

KNOBS = {"executor": "modelled", "model": "llama-2-7b", "dtype": "float16", "pages": 600,
         "workload.count": 8}  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    """Flover fused, and in static batches: the logs."""
    chosen = study("flover")
    return [
        Run.execute(chosen.driver, chosen.configured({**KNOBS, **more})).log
        for more in ({}, {"batching": "one_instance"})
    ]


def test_a_lecture_tells_the_study_in_its_own_words():
    chosen = study("hogwild")
    told = steps(chosen)
    story = [step for step in told if not step.choices]
    assert 2 <= len(story) <= STORY and " ".join(s.caption for s in story) in chosen.about
    assert [s.changes for s in told if s.choices == TRY] == [c for _, c in chosen.tries]
    assert [s.claim.id for s in told if s.choices == CLAIM] == [c.id for c in chosen.claims[:4]]


def test_an_answer_is_what_the_two_runs_came_to(runs):
    before, after = runs
    assert asked(before) == "tokens per second"
    right, sentence = revealed(before, after)
    assert right == "less" and "tokens per second:" in sentence and "before" in sentence
    assert revealed(before, before)[0] == TRY[1]
    assert revealed(after, before)[0] == "more"
    assert question(Step("x", {}), before) == "What becomes of its tokens per second?"
    assert question(Step("x", {}), None) == question(Step("x"), before) == ""


def test_a_claim_is_answered_by_the_recorded_finding():
    for claim in study("flover").claims:
        right, sentence = known(claim)
        assert claim.paper in sentence and claim.finding in sentence
        assert right in (*CLAIM, "")
    assert answered("more", "more") == "As you said." and answered("more", "less") == (
        "You said: less."
    )
    assert answered("", "less") == ""
