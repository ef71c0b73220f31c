"""Native loops to stand beside: C with OpenMP, built by the system's compiler if any.

One stores through the caches, one past them. Neither is a backend: nothing here is picked. Without
a compiler the numba loops take their places.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from engine.kernels.experiments.stream.backend import Backend, pick

FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
SECONDS = 60  # a compiler that takes longer is taken for absent
SOURCE = """
#define LOOP _Pragma("omp parallel for schedule(static) num_threads(threads)") \\
    for (long i = 0; i < n; i++)
void copy(double *restrict o, const double *restrict x, long n, int threads) { LOOP o[i] = x[i]; }
void scaled(double *restrict o, const double *restrict x, double f, long n, int threads)
    { LOOP o[i] = f * x[i]; }
void add(double *restrict o, const double *restrict x, const double *restrict y, long n,
         int threads) { LOOP o[i] = x[i] + y[i]; }
void summed(double *restrict o, const double *restrict x, const double *restrict y, double f,
            long n, int threads) { LOOP o[i] = x[i] + f * y[i]; }
#if defined(__AVX__)
#include <immintrin.h>
#define STREAMS 1
#define WIDE 4
#define PAST(o, v) _mm256_stream_pd(o, v)
#define READ(x) _mm256_loadu_pd(x)
#define ALL(f) _mm256_set1_pd(f)
#elif defined(__SSE2__)
#include <emmintrin.h>
#define STREAMS 1
#define WIDE 2
#define PAST(o, v) _mm_stream_pd(o, v)
#define READ(x) _mm_loadu_pd(x)
#define ALL(f) _mm_set1_pd(f)
#else
#define STREAMS 0
#endif
int streams(void) { return STREAMS; }
#if STREAMS
#define PARTS(wide, one) _Pragma("omp parallel num_threads(threads)") { \
    _Pragma("omp for schedule(static)") \
    for (long i = 0; i <= n - WIDE; i += WIDE) PAST(o + i, wide); \
    _mm_sfence(); } \
    for (long i = n / WIDE * WIDE; i < n; i++) o[i] = one;
void past_copy(double *restrict o, const double *restrict x, long n, int threads)
    { PARTS(READ(x + i), x[i]) }
void past_scaled(double *restrict o, const double *restrict x, double f, long n, int threads)
    { PARTS(ALL(f) * READ(x + i), f * x[i]) }
void past_add(double *restrict o, const double *restrict x, const double *restrict y, long n,
              int threads) { PARTS(READ(x + i) + READ(y + i), x[i] + y[i]) }
void past_summed(double *restrict o, const double *restrict x, const double *restrict y, double f,
                 long n, int threads)
    { PARTS(READ(x + i) + ALL(f) * READ(y + i), x[i] + f * y[i]) }
#endif
"""


@cache
def _library() -> Any:
    """The compiled loops, or why there are none."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "no C compiler (cc, gcc, clang) on this machine"
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "loops.c", Path(folder) / "loops.so"
        source.write_text(SOURCE)
        command = [compiler, *FLAGS, str(source), "-o", str(built)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as fault:
            return f"{compiler}: {fault}"
        if ran.returncode:
            return f"{compiler}: {ran.stderr.strip().splitlines()[-1:] or 'failed'}"
        return ctypes.CDLL(str(built))


def _call(name: str, arrays: tuple[np.ndarray, ...], *factor: float) -> None:
    kinds: list[Any] = [ctypes.c_void_p] * len(arrays) + [ctypes.c_double] * len(factor)
    function = getattr(_library(), name)
    function.argtypes = [*kinds, ctypes.c_long, ctypes.c_int]
    function.restype = None
    places = [array.ctypes.data for array in arrays]
    function(*places, *factor, len(arrays[0]), numba.get_num_threads())


def _loops(prefix: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """`scaled` and `summed` of a backend, by the C functions whose names begin so."""

    def scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float) -> None:
        if factor == 1.0:
            _call(f"{prefix}copy", (out_N, x_N))
        else:
            _call(f"{prefix}scaled", (out_N, x_N), factor)

    def summed(out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float) -> None:
        if factor == 1.0:
            _call(f"{prefix}add", (out_N, x_N, y_N))
        else:
            _call(f"{prefix}summed", (out_N, x_N, y_N), factor)

    return scaled, summed


def _missing() -> str:
    found = _library()
    return found if isinstance(found, str) else ""


def _no_streaming() -> str:
    why = _missing()
    if why:
        return why
    return "" if _library().streams() else "no streaming store of this processor is known here"


ABOUT = "C, OpenMP, built by the system's compiler with " + " ".join(FLAGS[:3])
C_LOOP = Backend("native C", ABOUT, *_loops(""), rank=0, missing=_missing)
C_PAST = Backend(
    "native C past caches", f"{ABOUT}; stores past the caches", *_loops("past_"), rank=0,
    missing=_no_streaming, streams=True,
)  # fmt: skip


def native(compiled: Callable[[], str] = _missing) -> Backend:
    """The native loop of this machine: C where it can be built, else the plain numba loop."""
    return pick("plain-loop") if compiled() else C_LOOP


def native_past(compiled: Callable[[], str] = _no_streaming) -> Backend:
    """The same with stores past the caches: C where it can be built, else the numba loop's."""
    return pick("streaming-stores") if compiled() else C_PAST
