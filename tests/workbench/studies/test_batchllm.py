"""BatchLLM's maps: what they take for granted so that they can be drawn in minutes."""

import pytest

from engine.core.config import update
from engine.core.measure import serving
from workbench.catalogue import study
from workbench.studies.serving._batchllm.jobs import (
    JOBS,
    SORTED,
    STREAMING,
    described,
    faster,
    pair,
)
from workbench.studies.serving._batchllm.page_lives import page_life

SMALL = {"workload.groups": 5, "workload.per_group": 4, "pages": 60}


@pytest.fixture(scope="module")
def batchllm():
    return study("batchllm")


@pytest.mark.parametrize("rival", [{}, STREAMING], ids=["ours", "streaming"])
def test_a_modelled_job_computes_and_keeps_what_a_real_one_does(batchllm, rival):
    """All of the job is there at once, so that no clock decides what a step has."""
    real = update(batchllm.config, {**SMALL, **rival})
    logs = [batchllm.run_config()(update(real, how)) for how in ({}, {"executor": "modelled"})]
    tokens, lives = (
        {of(log) for log in logs} for of in (lambda log: serving(log).prefilled, page_life)
    )
    assert len(tokens) == len(lives) == 1
    assert tokens != {0} and lives != {0.0}


def test_a_sorted_job_is_the_same_under_every_seed(batchllm):
    assert len(described(batchllm.config, {}, fast=False)) == JOBS
    (one,) = described(update(batchllm.config, SORTED), {"workload.groups": 6}, fast=False)
    run = batchllm.run_config()
    speeds = [
        [serving(log).tokens_per_second for log in pair(update(one, {"seed": seed}), run)]
        for seed in (0, 1)
    ]
    assert speeds[0] == speeds[1]
    assert faster([pair(one, run)], "sorted").figure.n == 1
