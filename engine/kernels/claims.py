"""Phases of tasks shared by threads without a barrier: claim a task, do it, count it done.

A phase is over when its tasks are done, not when every thread has arrived, so a thread the
operating system has taken away delays nobody unless it holds a task; and one thread alone can run
all phases. Counters are int64, two cache lines a phase, zero before the first.
"""

import platform
import sys

from llvmlite import ir
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.compiled import emitted, inner

LINE = 8  # int64 in a cache line
STRIDE = 2 * LINE  # counters of one phase: claimed, and a line further, done
PATIENCE = 2000  # pauses before the processor is offered to others


@emitted
def _add(context, counters, at, amount):
    signature = types.int64(counters, types.int64, types.int64)

    def emit(target, builder, signature, args):
        place = lanes.address(target, builder, signature.args[0], args[0], args[1], lanes.INT64)
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return signature, emit


@emitted
def _read(context, counters, at):
    signature = types.int64(counters, types.int64)

    def emit(target, builder, signature, args):
        place = lanes.address(target, builder, signature.args[0], args[0], args[1], lanes.INT64)
        return builder.load_atomic(place, "acquire", 8)

    return signature, emit


@emitted
def _pause(context):
    def emit(target, builder, signature, args):
        machine = platform.machine()
        if machine in ("x86_64", "AMD64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            pause = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(pause, [])
        return target.get_dummy_value()

    return types.void(), emit


@emitted
def _yield(context):
    def emit(target, builder, signature, args):
        if sys.platform != "win32":
            kind = ir.FunctionType(lanes.INT32, [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return target.get_dummy_value()

    return types.void(), emit


@inner
def claim(counters, phase):
    """The number of the next unclaimed task of a phase; past its end when none is left."""
    return _add(counters, phase * STRIDE, 1)


@inner
def finish(counters, phase, tasks):
    """Count `tasks` of a phase as done; what they wrote can be seen by who waits for them."""
    _add(counters, phase * STRIDE + LINE, tasks)


@inner
def wait(counters, phase, tasks):
    """Return once `tasks` tasks of a phase are done."""
    tries = 0
    while _read(counters, phase * STRIDE + LINE) < tasks:
        _pause()
        tries += 1
        if tries > PATIENCE:
            _yield()
