"""What a trace's accelerators did with their time, told by the union of spans of each category."""

import json
from typing import Any

import pytest

from engine.core.chrome.breakdown import breakdowns, kernels
from engine.core.chrome.category import ON_DEVICE, category
from engine.core.chrome.read import read_chrome


def work(name: str, start: float, stop: float, stream: int, kind: str = "kernel") -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "pid": 3, "tid": stream, "ts": start,
            "dur": stop - start}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "wanted"),
    [
        ("kernel", "void gemm_kernel<float>", "compute"),
        ("Kernel", "void gemm_kernel<float>", "compute"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "communication"),
        ("kernel", "void vllm::cross_device_reduce_2stage<half, 8>", "communication"),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "memory"),
        ("gpu_user_annotation", "nccl:all_reduce", "host"),
        ("cpu_op", "aten::mm", "host"),
    ],
)
def test_a_span_is_of_the_category_its_kind_and_name_tell(kind, name, wanted):
    assert category(kind, name) == wanted


def test_time_is_counted_once_and_only_where_the_device_works(tmp_path):
    entries = [
        work("gemm", 10, 30, 7), work("gemm", 50, 60, 7), work("add", 55, 70, 8),
        work("ncclKernel_AllReduce", 25, 52, 20), work("Memcpy HtoD", 90, 100, 9, "gpu_memcpy"),
        work("step", 0, 200, 7, "gpu_user_annotation"), work("aten::mm", 0, 300, 1, "cpu_op"),
        work("Stream Wait Event", 70, 90, 7, "cuda_sync"),
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": entries}))
    trace = read_chrome(path)
    [one] = breakdowns(trace.spans, trace.categories, trace.device_of)
    micro = {
        name: round(getattr(one, name) * 1e6, 6)
        for name in (*ON_DEVICE, "window", "overlapped", "idle", "exposed")
    }
    assert micro == {
        "window": 90, "compute": 40, "communication": 27, "memory": 10, "overlapped": 7,
        "idle": 20, "exposed": 20,
    }  # fmt: skip
    assert one.device == "GPU 3"
    told = {k.name: (k.category, k.count, round(k.seconds * 1e6)) for k in
            kernels(trace.spans, trace.categories, trace.device_of)}  # fmt: skip
    assert told == {
        "gemm": ("compute", 2, 30), "add": ("compute", 1, 15), "Memcpy HtoD": ("memory", 1, 10),
        "ncclKernel_AllReduce": ("communication", 1, 27),
    }  # fmt: skip


def test_a_trace_without_an_accelerator_has_none(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [work("aten::mm", 0, 5, 1, "cpu_op")]}))
    trace = read_chrome(path)
    assert breakdowns(trace.spans, trace.categories, trace.device_of) == []
    assert kernels(trace.spans, trace.categories, trace.device_of) == []
