"""Demand-zero arrays are zeros of their shape, writable, and hold memory only where written."""

import sys
from pathlib import Path

import numpy as np
import pytest

from engine.core.memory import LARGE, demand_zeros


@pytest.mark.parametrize("shape", [3, (2, 5), LARGE, (LARGE, 7)])
@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.bool_])
def test_they_are_zeros_to_write_into(shape, dtype):
    found, plain = demand_zeros(shape, dtype), np.zeros(shape, dtype)
    assert found.dtype == plain.dtype and found.shape == plain.shape and not found.any()
    found[-1] = 1
    plain[-1] = 1
    assert (found == plain).all() and found.flags.c_contiguous


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is held")
def test_what_nobody_writes_is_not_held():
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    np.ones(1 << 25, np.uint8)  # freed: what numpy's zeros would take again, and clear
    before = held()
    kept = [demand_zeros(1 << 25, np.uint8) for _ in range(8)]
    for each in kept:
        each[0] = 1
    assert held() - before < 1 << 22
