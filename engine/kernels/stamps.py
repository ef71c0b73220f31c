"""When each phase of a shared step ended, written by the first thread that sees it over.

The stamps lie in cells of the phases' counters that claiming leaves free, so that a step that is
not timed pays for one comparison a phase. Nanoseconds of the system's steady clock.
"""

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.claims import LINE, STRIDE
from engine.kernels.compiled import emitted, inner

TIMED = LINE + 2  # cell that is 1 where phases are to be stamped
BEGUN = LINE + 3  # cell of the moment the first phase began
ENDED = LINE + 1  # of each phase, the cell of the moment it ended
STEADY = 6 if sys.platform == "darwin" else 1  # CLOCK_MONOTONIC


@emitted
def _nanoseconds(context):
    """The steady clock; 0 where the system has none of this name."""

    def emit(target, builder, signature, args):
        if sys.platform == "win32":
            return ir.Constant(lanes.INT64, 0)
        pair = ir.ArrayType(lanes.INT64, 2)
        kind = ir.FunctionType(lanes.INT32, [lanes.INT32, pair.as_pointer()])
        clock = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        place = cgutils.alloca_once(builder, pair)
        builder.call(clock, [ir.Constant(lanes.INT32, STEADY), place])
        moment = builder.load(place)
        seconds, rest = (builder.extract_value(moment, i) for i in range(2))
        return builder.add(builder.mul(seconds, ir.Constant(lanes.INT64, 10**9)), rest)

    return types.int64(), emit


@inner
def is_timed(counters):
    """Whether this step's phases are to be stamped."""
    return counters[TIMED] == 1


@inner
def begin(counters):
    """Stamp the moment before the first phase, unless another thread has."""
    if counters[BEGUN] == 0:
        counters[BEGUN] = _nanoseconds()


@inner
def end(counters, phase):
    """Stamp the moment `phase` was over, unless another thread has.

    Threads that see it over at the same time write the same moment; a late one changes nothing.
    """
    if counters[phase * STRIDE + ENDED] == 0:
        counters[phase * STRIDE + ENDED] = _nanoseconds()


def ask(counters: np.ndarray, timed: bool) -> None:
    """Say whether the steps from now on are to be stamped."""
    counters[TIMED] = timed


def clear(counters: np.ndarray) -> None:
    """Every counter back to zero; what was asked stays asked."""
    timed = counters[TIMED]
    counters.fill(0)
    counters[TIMED] = timed


def seconds(counters: np.ndarray, phases: int) -> np.ndarray:
    """How long each phase of the last timed step took, [phases]."""
    ends = counters[ENDED::STRIDE][:phases]
    return np.diff(np.concatenate([counters[BEGUN : BEGUN + 1], ends])) * 1e-9
