"""Kernels compiled beside the first answers."""

import pytest

from engine.kernels.experiments.ready import WEIGHTS, prepare, ready


@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_step_of_nothing_compiles_what_a_model_s_step_runs(kind):
    prepare(kind, kind)
    assert ready(kind, kind)
