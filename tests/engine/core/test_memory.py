"""Memory is asked for before it is taken: too much is one line, and unknown is let through."""

import pytest

from engine.core import memory
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.run import Run
from engine.kernels.attention import run as attention
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.experiments.sweep import Sweep
from engine.kernels.experiments.sweep import run as sweep
from engine.kernels.paged_attention import run as decode


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A machine with 64 MiB left."""
    told = tmp_path / "meminfo"
    told.write_text("MemTotal: 999999 kB\nMemAvailable: 65536 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", told)
    return told


def test_what_fits_passes_and_what_does_not_says_how_much_there_is(small):
    memory.require(2**26, "a page", "take less")
    with pytest.raises(BadInput, match=r"a page: takes 2.0 GiB and .* has 0.1 GiB left; take less"):
        memory.require(2**31, "a page", "take less")


def test_a_system_that_does_not_say_lets_everything_pass(small):
    small.unlink()
    memory.require(1e30, "anything", "")


def test_a_library_that_finds_no_room_is_memory_refused_however_it_is_told():
    told = f"libtorch_cpu.so: {memory.NO_ROOM}"
    assert memory.refused(ImportError(told)) and memory.refused(OSError(told))
    other = OSError("could not find/load shared object file")  # as llvmlite says it
    assert not memory.refused(other)
    other.__context__ = OSError(told)
    assert memory.refused(other) and "ulimit -v" in memory.line(other)
    assert memory.line(MemoryError()).startswith("out of memory: ")
    assert memory.line(BadInput("so")) == "so" and memory.line(ValueError("a")) == "ValueError: a"


@pytest.mark.parametrize(
    ("driver", "config", "changes"),
    [
        (sweep, Sweep(), {"operator": "swiglu", "operator.rows": 65536}),
        (decode.run, decode.DecodeConfig(), {"context": 1 << 20}),
        (attention.run, AttentionConfig(), {"tokens": 65536, "share": 8}),
        (attention.run, AttentionConfig(), {"tokens": 8192, "scores": "materialised"}),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_before_anything_is_made(
    small, driver, config, changes
):
    with pytest.raises(BadInput, match="GiB left"):
        Run.execute(driver, update(config, changes))


def test_more_work_items_than_can_be_followed_are_refused():
    huge = {"tokens": 65536, "sequences": 64, "kv_heads": 64, "share": 16, "workers": "modelled"}
    with pytest.raises(BadInput, match="blocks of .* rows over all heads: at most"):
        Run.execute(attention.run, update(AttentionConfig(), huge))
