"""Holistic Trace Analysis' figures of small traces: what HTA 0.5.0 itself told of these files.

They were read with `TraceAnalysis(..., include_last_profiler_step=...)`; expected are its
`get_temporal_breakdown` in microseconds and `get_comm_comp_overlap` in percent.
"""

import pytest

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.chrome.hta import hta_breakdown
from engine.core.chrome.read import read_chrome
from tests.engine.core.chrome.traced import call, work, written


def on_stream(name, start, stop, stream, by, kind="kernel"):
    """Work as PyTorch's profiler writes it, with its stream among the arguments."""
    entry = work(name, start, stop, stream, by, kind)
    return {**entry, "args": {**entry["args"], "stream": stream}}


def step(number, start, stop):
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 9,
            "tid": 9, "ts": start, "dur": stop - start}  # fmt: skip


def traced():
    """Names that one tool counts otherwise than the other, and a copy under a kernel's name."""
    return [
        call(1, 0), call(2, 3), call(3, 6), call(4, 9), call(5, 12), call(6, 15), call(7, 18),
        on_stream("gemm", 10, 30, 7, 1), on_stream("gemm", 28, 40, 8, 2),
        on_stream("ncclDevKernel_AllReduce_Sum", 35, 60, 20, 3),
        on_stream("void deep_ep::dispatch", 58, 70, 20, 4),
        on_stream("Stream Wait Event", 70, 90, 7, 5, "cuda_sync"),
        on_stream("Stream Sync", 95, 100, 7, 6, "cuda_sync"),
        on_stream("Context Sync", 300, 400, -1, 6, "cuda_sync"),
        on_stream("Memcpy HtoD (Pinned -> Device)", 110, 120, 9, 7, "gpu_memcpy"),
    ]  # fmt: skip


def fractions():
    """Short kernels at fractions of a microsecond."""
    return [
        call(1, 0.5), call(2, 2.5), call(3, 4.5),
        on_stream("gemm", 10.25, 12.75, 7, 1), on_stream("add", 12.75, 14.5, 7, 2),
        on_stream("ncclKernel_AllGather", 11.1, 14.9, 20, 3), on_stream("mul", 20.2, 20.9, 7, 99),
        on_stream("relu", 20.5, 24.5, 8, 3),
    ]  # fmt: skip


def steps():
    """Two steps of a profiler; a kernel launched in the last, one launched by nobody."""
    return [
        step(1, 0, 50), step(2, 50, 90), call(1, 5), call(2, 20), call(3, 60), call(4, 95),
        on_stream("gemm", 10, 30, 7, 1), on_stream("ncclKernel_AllReduce", 25, 45, 20, 2),
        on_stream("add", 70, 80, 7, 3), on_stream("mul", 100, 120, 7, 4),
        on_stream("alone", 130, 135, 7, 77),
    ]  # fmt: skip


TOLD = [  # idle, compute, the rest, window; percent of communication that compute ran beside
    (traced, True, [15, 62, 33, 110, 28.0]), (traced, False, [15, 62, 33, 110, 28.0]),
    (fractions, True, [8, 4, 1, 13, 50.0]),
    (steps, True, [25, 30, 15, 70, 25.0]), (steps, False, [0, 20, 15, 35, 25.0]),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "last", "wanted"), TOLD)
def test_figures_are_those_that_hta_told_of_the_same_file(tmp_path, entries, last, wanted):
    read = read_chrome(written(tmp_path, entries()))
    trace = DeviceTrace(
        read.spans, read.categories, read.device_of, read.launched_by, read.zero
    )  # fmt: skip
    found = hta_breakdown(trace, last_step=last)
    assert found is not None
    told = (found.idle, found.compute, found.other, found.window)
    hidden = 100 * found.overlapped / found.communication
    assert [round(each * 1e6, 6) for each in told] + [round(hidden, 2)] == wanted
