"""How CPU kernels are compiled: numba to machine code, cached on disk, OpenMP threads.

The cache of a kernel is dropped when any file of `engine/kernels` changes,
since a kernel inlines what other files say and numba alone looks at its own file only.
Processes that ran a kernel must not fork: OpenMP aborts in the child.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

numba.config.THREADING_LAYER = "omp"

# Sums may be reordered and fused where the loop says so, but infinities and NaN keep their meaning:
# masks are minus infinity.
FAST = {"reassoc", "contract", "nsz", "arcp"}


def _stamp() -> str:
    """A digest of every source file that kernels are made of."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()


def _cached(dispatcher: Any) -> Any:
    cache = FunctionCache(dispatcher.py_func)
    stamp = cache._impl.locator.get_source_stamp()
    cache._cache_file._source_stamp = (stamp, _STAMP)
    dispatcher._cache = cache
    return dispatcher


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: called from Python, releases the lock, may use `prange`."""
    compiled = numba.njit(parallel=True, nogil=True, fastmath=FAST, error_model="numpy")(function)
    return _cached(compiled)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a part that kernels call; it is compiled into them, not by itself."""
    return numba.njit(nogil=True, fastmath=FAST, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Like `inner`, pasted into the caller before types are known, so constants stay constants."""
    return numba.njit(nogil=True, fastmath=FAST, error_model="numpy", inline="always")(function)
