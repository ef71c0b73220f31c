"""The native loop to stand beside: plain C with OpenMP, built by the system's compiler if any.

Not a backend: nothing here is picked. Without a compiler the plain numba loop takes its place.
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


def _scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float) -> None:
    if factor == 1.0:
        _call("copy", (out_N, x_N))
    else:
        _call("scaled", (out_N, x_N), factor)


def _summed(out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float) -> None:
    if factor == 1.0:
        _call("add", (out_N, x_N, y_N))
    else:
        _call("summed", (out_N, x_N, y_N), factor)


def _missing() -> str:
    found = _library()
    return found if isinstance(found, str) else ""


C_LOOP = Backend(
    name="native C",
    about="C, OpenMP, built by the system's compiler with " + " ".join(FLAGS[:3]),
    scaled=_scaled,
    summed=_summed,
    rank=0,
    missing=_missing,
)


def native(compiled: Callable[[], str] = _missing) -> Backend:
    """The native loop of this machine: C where it can be built, else the plain numba loop."""
    return pick("plain-loop") if compiled() else C_LOOP
