"""Parity says how far a variant is from the truth, and no where it is wrong."""

from dataclasses import replace

import torch

from engine.kernels.norm import OPERATOR
from engine.kernels.parity import distance, parity

CPU = OPERATOR.variants()["rows_cpu"]


def test_a_right_variant_holds_and_names_its_worst_shape():
    found = parity(OPERATOR, CPU, "float32")
    assert found.holds and found.cases == len(OPERATOR.cases)
    assert 0 < found.error < 2e-5
    assert found.worst in {case.name for case in OPERATOR.cases}


def test_a_wrong_variant_does_not_hold():
    wrong = replace(CPU, call=lambda **given: CPU.call(**given) * 1.01)
    found = parity(OPERATOR, wrong, "float32")
    assert not found.holds and 0.009 < found.error < 0.011


def test_nan_is_worse_than_anything():
    wrong = replace(CPU, call=lambda **given: CPU.call(**given) * torch.nan)
    assert not parity(OPERATOR, wrong, "float32").holds


def test_a_variant_that_takes_nothing_does_not_hold_and_says_why():
    found = parity(OPERATOR, replace(CPU, refuses=lambda given: "takes nothing"), "float32")
    assert not found.holds and found.cases == 0
    assert "takes nothing" in found.refused[0]


def test_whole_numbers_are_right_or_wrong():
    a = torch.tensor([1, 2])
    assert distance(a, a) == 0.0 and distance(a, a + 1) == 1.0
