"""The cache of machine code: nothing an older version left there stops a newer one."""

import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba import njit, types

from engine.core.clock import WallClock, own
from engine.hardware.kept_code import Kept, _digest
from engine.kernels.compiled import checked, entry, inner, settled


def double(x):
    return x + x


class Gone:
    """A type that the cache names and the code no longer has."""


def kept_in(folder, monkeypatch) -> Kept:
    """What another process would have: nothing in memory, the same folder."""
    kept = Kept(double)
    monkeypatch.setattr(kept._cache_file, "_cache_path", str(folder))
    monkeypatch.setattr(kept._cache_file, "_index_path", str(folder / "double.nbi"))
    monkeypatch.setattr(kept, "_cache_path", str(folder))
    return kept


def test_one_compiles_and_another_waits_for_it(tmp_path, monkeypatch):
    first, second = (kept_in(tmp_path, monkeypatch) for _ in range(2))
    compiled = njit(double)
    compiled(1)
    (result,), context, kinds = compiled.overloads.values(), compiled.targetctx, (types.int64,)
    assert first.load_overload(kinds, context) is None
    assert second.kept(kinds, context) is None, "asking alone does not wait"
    found = []
    other = threading.Thread(target=lambda: found.append(second.load_overload(kinds, context)))
    other.start()
    other.join(0.2)
    assert other.is_alive() and not found
    first.save_overload(kinds, result)
    other.join(30)
    assert found[0].signature == result.signature
    assert first.load_overload(kinds, context).signature == result.signature


def test_a_process_that_never_ends_compiling_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.hardware.kept_code.PATIENCE", 0.1)
    first, second = (kept_in(tmp_path, monkeypatch) for _ in range(2))
    context = njit(double).targetctx
    for kept in (first, second, first):
        assert kept.load_overload((types.int64,), context) is None


def test_an_index_that_names_a_type_that_is_gone_is_dropped(tmp_path, monkeypatch):
    kept = Kept(double)
    monkeypatch.setattr(kept._cache_file, "_cache_path", str(tmp_path))
    monkeypatch.setattr(kept, "_cache_path", str(tmp_path))
    index = tmp_path / kept._cache_file._index_name
    data = pickle.dumps((None, {"of": Gone}))
    whole = pickle.dumps(kept._cache_file._version) + data
    index.write_bytes(whole + _digest((), whole))
    monkeypatch.delattr("tests.engine.kernels.test_compiled.Gone")
    context = njit(double).targetctx
    assert kept.load_overload((types.int64,), context) is None
    assert kept.load_overload((types.int64,), context) is None


MEANWHILE = """
import importlib, sys, threading

class Meanwhile:
    "While numba is half there, another thread imports a module of ours."

    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types" and not threads:
            threads.append(threading.Thread(target=other))
            threads[0].start()
            threads[0].join(0.5)
        return None

def other():
    importlib.import_module("engine.kernels.lanes")
    said.append("whole")

threads, said = [], []
sys.meta_path.insert(0, Meanwhile())
import numba
threads[0].join()
print(*said)
"""


def test_kernels_are_imported_while_another_thread_imports_numba():
    ran = subprocess.run([sys.executable, "-c", MEANWHILE], capture_output=True, text=True)
    assert ran.stdout == "whole\n", ran.stderr


def test_compiling_and_loading_are_in_no_time_of_a_run():
    twice, before, began = checked(double), own().state[0], time.perf_counter()
    clock = WallClock()
    assert twice(3) == 6
    spent = own().state[0] - before
    assert spent > 0 and clock.now() <= time.perf_counter() - began - spent
    before = own().state[0]
    assert twice(4) == 8 and own().state[0] == before, "once"


def test_callers_alike_share_what_is_settled_and_others_do_not():
    asked = []

    def whole(numbers):
        return numbers.sum()

    def entered(function, *arguments):
        asked.append(arguments[0].dtype)
        return function

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.kernels.compiled.entry", entered)
        first, second, other = (settled(whole) for _ in range(3))
        assert first(np.ones(3)) == 3 and second(np.ones(4)) == 4
        assert other(np.ones(2, np.int32)) == 2
    assert asked == [np.float64, np.int32]


@inner
def doubled(numbers, at):
    return numbers[at] + numbers[at]


@njit  # kept nowhere: what is kept asks for no parts
def both(numbers):
    return doubled(numbers, 0) + doubled(numbers, 1) + doubled(numbers, len(numbers) - 1)


def test_a_part_is_compiled_once_whatever_numbers_its_callers_write_out():
    assert both(np.array([1.0, 2.0, 4.0])) == 14
    assert [kinds[1] for kinds in doubled.overloads] == [types.int64]


def test_a_part_is_not_entered_from_python():
    both(np.ones(2))
    for given in ((np.ones(2), 0), (np.ones(2, np.int32), 0)):
        with pytest.raises(TypeError, match="doubled: a part of kernels"):
            doubled(*given)
    with pytest.raises(ValueError, match="doubled"):
        entry(doubled, np.ones(2), 0)
