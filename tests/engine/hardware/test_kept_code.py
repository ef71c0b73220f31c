"""Machine code on disk: a full disk, no folder, damage and races cost a compilation, no run."""

import errno
import os
import random

import pytest
from numba import njit, types

from engine.core.clock import aside, own
from engine.hardware import kept_code
from engine.hardware.kept_code import Kept, NotKept, go_without, kept_for
from tests.engine.kernels.test_compiled import double, kept_in

INT, FLOAT = (types.int64,), (types.float64,)


@pytest.fixture(autouse=True)
def unsaid():
    go_without.cache_clear()


@pytest.fixture(scope="module")
def compiled():
    made = njit(double)
    made(1), made(0.5)
    return made


def result(compiled, kinds):
    return compiled.overloads[kinds]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_what_cannot_be_kept_is_said_once(tmp_path, monkeypatch, compiled, caplog, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    kept = kept_in(tmp_path, monkeypatch)
    monkeypatch.setattr(kept._cache_file, "_open_for_write", fail)
    for _ in range(3):
        assert kept.load_overload(INT, compiled.targetctx) is None
        kept.save_overload(INT, result(compiled, INT))
    assert kept._held is None
    (line,) = caplog.messages
    assert os.strerror(number) in line and str(tmp_path) in line and "\n" not in line


def test_without_a_folder_kernels_are_compiled_all_the_same(monkeypatch, caplog):
    def nowhere(self, function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(kept_code.FunctionCache, "_impl_class", nowhere)
    assert kept_for(double, "x") is None and len(caplog.messages) == 1
    with aside():
        assert NotKept().load_overload(INT, None) is None and own().compiles


def test_a_folder_that_vanishes_is_made_again(tmp_path, monkeypatch, compiled):
    kept = kept_in(tmp_path / "gone", monkeypatch)
    assert kept.load_overload(INT, compiled.targetctx) is None
    kept.save_overload(INT, result(compiled, INT))
    assert kept._held is None


def test_damage_is_compiled_over(tmp_path, monkeypatch, compiled, full):
    context, draw = compiled.targetctx, random.Random(3)
    kept_in(tmp_path, monkeypatch).save_overload(INT, result(compiled, INT))
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(whole) == 2
    for turn in range(2000 if full else 60):
        path, data = draw.choice(list(whole.items()))
        for other, bits in whole.items():
            other.write_bytes(bits)
        harmed = bytearray(data)
        for _ in range(draw.choice((1, 1, 8))):
            harmed[draw.randrange(len(harmed))] ^= 1 << draw.randrange(8)
        path.write_bytes(harmed if turn % 3 else data[: draw.randrange(len(data))])
        kept = kept_in(tmp_path, monkeypatch)
        found = kept.load_overload(INT, context)
        assert found is None or found.signature == result(compiled, INT).signature
        kept.save_overload(INT, result(compiled, INT))
        assert kept_in(tmp_path, monkeypatch).kept(INT, context) is not None
        assert kept_in(tmp_path, monkeypatch).kept(FLOAT, context) is None


def test_an_index_that_names_another_file_is_dropped(tmp_path, monkeypatch, compiled):
    folder = tmp_path / "kept"
    folder.mkdir()
    kept_in(folder, monkeypatch).save_overload(INT, result(compiled, INT))
    (index,) = folder.glob("*.nbi")
    (code,) = folder.glob("*.nbc")
    name = code.name.encode()
    assert name in index.read_bytes()
    index.write_bytes(index.read_bytes().replace(name, b"../" + name[3:]))
    kept = kept_in(folder, monkeypatch)
    assert kept.load_overload(INT, compiled.targetctx) is None
    kept.save_overload(INT, result(compiled, INT))
    assert list(tmp_path.iterdir()) == [folder], "nothing is written beside it"
    assert kept_in(folder, monkeypatch).kept(INT, compiled.targetctx) is not None


def test_code_of_older_sources_is_not_run_where_the_new_was_not_written(
    tmp_path, monkeypatch, compiled
):
    def of(stamp):
        kept = kept_in(tmp_path, monkeypatch)
        kept._cache_file._source_stamp = (kept._cache_file._source_stamp, stamp)
        return kept

    of("old").save_overload(INT, result(compiled, INT))
    assert of("old").kept(INT, compiled.targetctx) is not None
    changed = of("new")
    with monkeypatch.context() as full:
        full.setattr(changed._cache_file, "_save_data", lambda *_: None)
        changed.save_overload(INT, result(compiled, INT))
    assert of("new").kept(INT, compiled.targetctx) is None


def test_code_that_another_process_wrote_under_the_same_name_is_not_run(
    tmp_path, monkeypatch, compiled
):
    """Without a lock both take the first free name; the one that wrote its index last is named."""
    first, second = (kept_in(tmp_path, monkeypatch) for _ in range(2))
    later, write = [], first._cache_file._save_data
    monkeypatch.setattr(first._cache_file, "_save_data", lambda *a: later.append(a))
    first.save_overload(INT, result(compiled, INT))
    (tmp_path / "double.nbi").unlink()  # as the second read it before
    second.save_overload(FLOAT, result(compiled, FLOAT))
    write(*later[0])
    assert kept_in(tmp_path, monkeypatch).kept(FLOAT, compiled.targetctx) is None


def test_what_is_kept_runs(tmp_path, monkeypatch, compiled):
    kept_in(tmp_path, monkeypatch).save_overload(INT, result(compiled, INT))
    again = njit(double)
    again._cache = Kept(double)
    monkeypatch.setattr(again._cache, "_cache_file", kept_in(tmp_path, monkeypatch)._cache_file)
    assert again(21) == 42 and again._cache_hits[INT] == 1


def test_what_is_loaded_is_not_said_to_be_compiled(tmp_path, monkeypatch, compiled):
    kept = kept_in(tmp_path, monkeypatch)
    with aside():
        assert kept.load_overload(INT, compiled.targetctx) is None and own().compiles
        kept.save_overload(INT, result(compiled, INT))
    with aside():
        assert kept.load_overload(INT, compiled.targetctx) is not None and not own().compiles
