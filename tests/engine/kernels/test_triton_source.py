"""Interpreted and compiled kernels live side by side in one process."""

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed here")

from engine.kernels import cross_compile
from engine.kernels.norm import OPERATOR
from engine.kernels.triton_source import kernels

MODULE = "engine.kernels.norm.rows_triton"


def test_a_kernel_compiles_after_one_was_interpreted():
    x, weight = torch.randn(2, 40), torch.randn(40)
    OPERATOR(variant="rows", x_TC=x, weight_C=weight, eps=1e-5)  # calls triton's own tl.sum
    name, types, values = cross_compile.listed(MODULE)[0]
    width = {**values, "BLOCK": 64}  # a shape that no cache holds from another test
    assert cross_compile.compile_for(MODULE, name, types, width, 90).size > 0


def test_the_two_ways_are_two_modules():
    assert kernels(MODULE, True) is not kernels(MODULE, False)
    assert kernels(MODULE, True) is kernels(MODULE, True)
