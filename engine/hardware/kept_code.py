"""A cache of machine code on disk: what one process compiled, others load.

It is a convenience: where it cannot be written or read, kernels are compiled anew.
"""

import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import numba  # noqa: F401  (before its parts)
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from engine.core.clock import own

try:
    import fcntl
except ImportError:  # Windows: each process compiles for itself
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60.0  # seconds to wait for another process's compilation: several times the longest
DIGEST = 16  # bytes, behind each file's own
_PLACE = re.compile("0x[0-9a-f]+")  # where a function of a type lies in this process alone


def keep(dispatcher: Any, stamp: str = "") -> Any:
    """Let a function of numba's be kept."""
    dispatcher._cache = kept_for(dispatcher.py_func, stamp) or NotKept()
    return dispatcher


def kept_for(function: Any, stamp: str) -> "Kept | None":
    """The cache of a function, dropped when `stamp` is another; None where there is no place."""
    try:
        kept = Kept(function)
        times = kept._impl.locator.get_source_stamp()
    except (OSError, RuntimeError) as fault:  # numba's word for no folder that can be written to
        go_without("~", str(fault)[:80])
        return None
    kept._cache_file._source_stamp = (times, stamp)
    return kept


@cache  # once is enough
def go_without(folder: str, why: str) -> None:
    """Say that compiled kernels are not kept."""
    line = "%s: cannot keep compiled kernels (%s); each process compiles them anew"
    logging.getLogger(__name__).warning(line, folder, why)


class Files(IndexDataCacheFile):
    """Code by its kinds. A digest of both stands behind it: damaged code, or code that two
    processes without a lock wrote under one name, would be run. So does one behind the index, whose
    names are read and written: a damaged one names any file."""

    def _load_index(self) -> Any:
        try:
            found = Path(self._index_path).read_bytes()
        except FileNotFoundError:
            return {}
        if found[-DIGEST:] != _digest((), found[:-DIGEST]):
            return {}  # compiled anew
        return super()._load_index()  # which reads no further than its own end

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[Any]:
        with super()._open_for_write(path) as file:
            whole = BytesIO()
            yield whole
            file.write(whole.getvalue())
            if path == self._index_path:
                file.write(_digest((), whole.getvalue()))

    def save(self, key: Any, data: Any) -> None:
        self._key = key
        super().save(key, data)

    def load(self, key: Any) -> Any:
        name = self._load_index().get(key)
        if name is None:
            return None
        try:
            found = Path(self._data_path(name)).read_bytes()
        except OSError:  # gone, while the index still names it
            return None
        if found[-DIGEST:] != self._own(key, found[:-DIGEST]):
            raise ValueError(f"{name}: damaged")
        return self._load_data(name)  # which reads no further than its own end

    def _save_data(self, name: str, data: Any) -> None:
        whole = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(whole + self._own(self._key, whole))

    def _own(self, key: Any, whole: bytes) -> bytes:
        """The digest of code and of what it is of. Its sources' stamp is, too: the index is written
        first, and a disk that is full then leaves it naming what older sources made."""
        return _digest((key, self._source_stamp), whole)


def _digest(key: Any, whole: bytes) -> bytes:
    return blake2b(_PLACE.sub("", str(key)).encode() + whole, digest_size=DIGEST).digest()


class NotKept(NullCache):
    """Of a function without a place to be kept at."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        own().compiles = True


class Kept(FunctionCache):
    """The code of one function, compiled by one process while others that want it wait for it.

    What an older version kept may name types that are gone, and a file may be damaged: dropped.
    """

    _held: int | None = None  # the lock's file, while this process compiles

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        files = self._cache_file
        self._cache_file = Files(files._cache_path, self._impl.filename_base, files._source_stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept; None where the caller is to compile, and then to call `save_overload`."""
        found = self.kept(sig, target_context)
        own().compiles |= found is None
        if found is None and self._wait():
            found = self.kept(sig, target_context)
            if found is not None:
                self._leave()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; whoever waits for it goes on."""
        try:
            super().save_overload(sig, data)
        except Exception as fault:  # a full disk, or an index that is damaged and cannot be mended
            why = getattr(fault, "strerror", None) or type(fault).__name__
            go_without(str(self._cache_path), why)
        finally:
            self._leave()

    def kept(self, sig: Any, target_context: Any) -> Any:
        """What is kept, or None; waits for nobody."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:  # not to be read now; others may
            return None
        except Exception:  # what a damaged file reads as: anything
            with suppress(OSError):
                self.flush()
            return None

    def _wait(self) -> bool:
        """Until no other process compiles this function. False: nobody did, or for too long."""
        if fcntl is None or self._held is not None:
            return False
        try:
            self._impl.locator.ensure_cache_path()
            path = Path(self._cache_path) / f"{self._impl.filename_base}.lock"
            self._held = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        except OSError:
            return False
        until = time.monotonic() + PATIENCE
        for turn in count():
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return turn > 0
            except OSError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.02)
        return False

    def _leave(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None
