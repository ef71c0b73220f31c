"""Probe kernels that measure this machine's processor: reading, copying, multiplying, launching.

Only `engine.hardware.measure` imports this, when it measures: numba and torch load here.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.hardware.kept_code import keep

# float32 numbers in a vector register. Twice as many would be two registers, and twelve chains of
# two do not fit in the sixteen there are without AVX-512: what is spilled costs half of the rate.
LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8
STREAMS = 8  # read by one thread at the same time
AGAIN = 2**27  # bytes a thread reads from a cache level at each measurement
LINE = 64  # bytes of a cache line
EXPONENTIALS = 2**18
# A product takes 0.1 s at most where a processor multiplies its dtype, and seconds where torch
# must widen each number first: its rate then needs no more repeats than show their scatter.
LIMIT, FEWEST = 1.0, 3
CHAINS = 12  # independent multiply-adds in flight: more than two units × four cycles of latency


@keep
@numba.njit(fastmath=True)
def _sum(x_SN: np.ndarray) -> np.float32:
    """Eight streams at once, as products read their weights: one alone leaves bandwidth unused.

    The compiler makes this wide only as a function of its own with a contiguous argument.
    """
    total = np.float32(0.0)
    for i in range(x_SN.shape[1]):
        total += x_SN[0, i] + x_SN[1, i] + x_SN[2, i] + x_SN[3, i]
        total += x_SN[4, i] + x_SN[5, i] + x_SN[6, i] + x_SN[7, i]
    return total


@keep
@numba.njit(parallel=True, fastmath=True)
def _read(x_PSN: np.ndarray) -> float:
    """Sum of x, each part by one thread: every byte is read once."""
    total = 0.0
    for part in numba.prange(x_PSN.shape[0]):
        total += float(_sum(x_PSN[part]))
    return total


@intrinsic
def _loads(typing_context: Any, address: Any, vectors: Any, rounds: Any) -> Any:
    """Read `vectors` registers from `address`, `rounds` times, and join their bits.

    Nothing but loads that each feed one cheap instruction: what is left is the level they hit.
    `vectors`: a multiple of STREAMS.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, word = ir.VectorType(ir.IntType(32), LANES), ir.IntType(64)
        start, vectors, rounds = arguments
        base = builder.inttoptr(start, vector.as_pointer())
        places = [cgutils.alloca_once(builder, vector) for _ in range(STREAMS)]
        for place in places:
            builder.store(ir.Constant(vector, [0] * LANES), place)
        groups = builder.udiv(vectors, ir.Constant(word, STREAMS))
        with cgutils.for_range(builder, rounds), cgutils.for_range(builder, groups) as loop:
            at = builder.mul(loop.index, ir.Constant(word, STREAMS))
            for number, place in enumerate(places):
                here = builder.gep(base, [builder.add(at, ir.Constant(word, number))])
                read = builder.load(here)
                read.align = 4
                builder.store(builder.or_(builder.load(place), read), place)
        total = builder.load(places[0])
        for place in places[1:]:
            total = builder.or_(total, builder.load(place))
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.int32(types.int64, types.int64, types.int64), emit


@keep
@numba.njit(parallel=True)
def _read_again(x_PN: np.ndarray, rounds: int, y_P: np.ndarray) -> None:
    """Each thread reads its own part `rounds` times."""
    for part in numba.prange(x_PN.shape[0]):
        vectors = x_PN.shape[1] // LANES
        y_P[part] = _loads(x_PN[part].ctypes.data, vectors, rounds)  # type: ignore[call-arg]


@keep
@numba.njit(parallel=True)
def _copy(x_PN: np.ndarray, y_PN: np.ndarray) -> None:
    """x into y, each row by one thread: every byte is read once and written once."""
    for part in numba.prange(x_PN.shape[0]):
        y_PN[part] = x_PN[part]


@intrinsic
def _chains(typing_context: Any, rounds: Any) -> Any:
    """`rounds` × CHAINS fused multiply-adds of LANES numbers that stay in registers; their sum."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), LANES)
        kind = ir.FunctionType(vector, [vector] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
        shrink = ir.Constant(vector, [0.999] * LANES)
        places = [cgutils.alloca_once(builder, vector) for _ in range(CHAINS)]
        for number, place in enumerate(places):
            builder.store(ir.Constant(vector, [1.0 + number] * LANES), place)
        with cgutils.for_range(builder, arguments[0]):
            for place in places:
                builder.store(builder.call(fma, [builder.load(place), shrink, shrink]), place)
        total = builder.load(places[0])
        for place in places[1:]:
            total = builder.fadd(total, builder.load(place))
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.float32(types.int64), emit


@keep
@numba.njit(parallel=True)
def _multiply_add(rounds: int, y_P: np.ndarray) -> None:
    """A set of chains for each thread."""
    for part in numba.prange(y_P.shape[0]):
        y_P[part] = _chains(rounds)  # type: ignore[call-arg]


@keep
@numba.njit
def _nothing(x_N: np.ndarray) -> float:
    return x_N[0]


@keep
@numba.njit(parallel=True)
def _fork(x_N: np.ndarray) -> None:
    for i in numba.prange(x_N.shape[0]):
        x_N[i] = 1.0


def timed(
    call: Callable[[], object], repeats: int, inner: int = 1, limit: float = math.inf
) -> list[float]:
    """Seconds of `call`, `repeats` times after one warm-up, each the mean of `inner` calls.

    After `limit` seconds FEWEST times are enough.
    """
    call()
    taken: list[float] = []
    begun = time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        if len(taken) >= FEWEST and start - begun > limit:
            break
        for _ in range(inner):
            call()
        taken.append((time.perf_counter() - start) / inner)
    return taken


def threads() -> int:
    """Threads that measuring with all of them uses."""
    return numba.get_num_threads()


def read_rates(size: int, parts: int, repeats: int) -> list[float]:
    """Bytes per second of reading `size` bytes with `parts` threads."""
    x_PSN = np.ones((parts, STREAMS, size // 4 // parts // STREAMS), np.float32)
    return [x_PSN.nbytes / t for t in timed(lambda: _read(x_PSN), repeats)]


def level_rates(size: int, parts: int, repeats: int) -> list[float]:
    """Bytes per second of reading `size` bytes a thread again and again, with `parts` threads."""
    group = LANES * STREAMS
    x_PN = _aligned(parts, max(1, size // 4 // group) * group)
    y_P = np.zeros(parts, np.int32)
    rounds = max(1, AGAIN // (x_PN.nbytes // parts))
    read = float(x_PN.nbytes) * rounds
    return [read / t for t in timed(lambda: _read_again(x_PN, rounds, y_P), repeats)]


def _aligned(parts: int, count: int) -> np.ndarray:
    """float32 ones [parts, count] that begin at a cache line: a read across two costs twice."""
    room = np.ones(parts * count + LINE // 4, np.float32)
    skip = -room.ctypes.data % LINE // 4
    return room[skip : skip + parts * count].reshape(parts, count)


def exponential_rates(repeats: int) -> list[float]:
    """Exponentials per second of torch's, float32 numbers that stay in cache, all threads."""
    x_N = torch.linspace(-8.0, 0.0, EXPONENTIALS)
    y_N = torch.empty_like(x_N)
    return [EXPONENTIALS / t for t in timed(lambda: torch.exp(x_N, out=y_N), repeats, 8)]


def copy_rates(size: int, parts: int, repeats: int) -> list[float]:
    """Bytes per second, read and written counted, of copying `size` bytes with `parts` threads."""
    x_PN = np.ones((parts, size // 4 // parts), np.float32)
    y_PN = np.zeros_like(x_PN)
    return [2 * x_PN.nbytes / t for t in timed(lambda: _copy(x_PN, y_PN), repeats)]


def multiply_add_rates(parts: int, repeats: int) -> list[float]:
    """Flops per second of float32 multiply-adds in registers with `parts` threads."""
    y_P = np.ones(parts, np.float32)
    rounds = 1_000_000
    flops = 2.0 * rounds * CHAINS * LANES * parts
    return [flops / t for t in timed(lambda: _multiply_add(rounds, y_P), repeats)]


def matmul_rates(dtype: str, size: int, repeats: int) -> list[float]:
    """Flops per second of torch's square matrix product in `dtype`, all threads."""
    a_MK = torch.ones(size, size, dtype=getattr(torch, dtype))
    out_MN = torch.empty_like(a_MK)
    flops = 2.0 * size**3
    product = partial(torch.mm, a_MK, a_MK, out=out_MN)
    return [flops / t for t in timed(product, repeats, limit=LIMIT)]


def call_times(repeats: int) -> dict[str, list[float]]:
    """Seconds to call a compiled kernel that does nothing, a parallel one, and one of torch's."""
    x_N = np.ones(64, np.float32)
    x = torch.ones(1)
    return {
        "call": timed(lambda: _nothing(x_N), repeats, 1000),
        "parallel_call": timed(lambda: _fork(x_N), repeats, 200),
        "torch_call": timed(lambda: torch.add(x, x), repeats, 1000),
    }
