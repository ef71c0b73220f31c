"""The cache of machine code: nothing an older version left there stops a newer one."""

import pickle

from numba import njit, types

from engine.kernels.compiled import Kept


def double(x):
    return x + x


class Gone:
    """A type that the cache names and the code no longer has."""


def test_an_index_that_names_a_type_that_is_gone_is_dropped(tmp_path, monkeypatch):
    kept = Kept(double)
    monkeypatch.setattr(kept._cache_file, "_cache_path", str(tmp_path))
    monkeypatch.setattr(kept, "_cache_path", str(tmp_path))
    index = tmp_path / kept._cache_file._index_name
    data = pickle.dumps((None, {"of": Gone}))
    index.write_bytes(pickle.dumps(kept._cache_file._version) + data)
    monkeypatch.delattr("tests.engine.kernels.test_compiled.Gone")
    context = njit(double).targetctx
    assert kept.load_overload((types.int64,), context) is None
    assert kept.load_overload((types.int64,), context) is None
