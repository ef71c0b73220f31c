"""A small device trace for tests: two streams of one device, with the calls that launch on them."""

import json
from pathlib import Path
from typing import Any


def work(
    name: str, start: float, stop: float, stream: int, by: int, kind: str = "kernel"
) -> dict[str, Any]:
    """Work on a stream of device 0, started by call `by`."""
    return {"ph": "X", "cat": kind, "name": name, "pid": 0, "tid": stream, "ts": start,
            "dur": stop - start, "args": {"correlation": by}}  # fmt: skip


def call(by: int, start: float) -> dict[str, Any]:
    """The call on the host that starts work `by`, two microseconds long."""
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
            "ts": start, "dur": 2, "args": {"correlation": by}}  # fmt: skip


def waits() -> list[dict[str, Any]]:
    """Stream 7 waits for a launch, data, another stream and the device, in that order."""
    return [
        call(1, 0), call(2, 30), call(3, 31), call(4, 32), call(5, 33), call(6, 34), call(7, 35),
        work("gemm", 10, 20, 7, 1), work("add", 40, 50, 7, 2),  # launched at 30: 10, then 10
        work("Memcpy HtoD", 45, 70, 8, 3, "gpu_memcpy"), work("mul", 72, 80, 7, 4),  # data 20, 2
        work("norm", 75, 95, 12, 5), work("relu", 95, 100, 7, 6),  # another stream 15
        work("tanh", 107, 110, 7, 7),  # the device alone: 7
        work("alone", 130, 140, 7, 99),  # no call is recorded
    ]  # fmt: skip


def written(folder: Path, entries: list[dict[str, Any]], name: str = "t.json", **head: Any) -> Path:
    """A trace file of these entries."""
    path = folder / name
    path.write_text(json.dumps({**head, "traceEvents": entries}))
    return path


def of_rank(rank: int, late: float, clock: float) -> dict[str, Any]:
    """What `written` takes of a rank whose clock is `clock` µs ahead, and which comes `late` µs
    later than at once to each of six reductions that end together."""
    entries = []
    for n in range(6):
        start, end = 100.0 * n + 10 + late, 100.0 * n + 60
        entries += [call(2 * n, clock + 100 * n), call(2 * n + 1, clock + 100 * n + 3)]
        entries.append(work("gemm", clock + 100 * n + 5, clock + start, 7, 2 * n))
        entries.append(work("ncclDevKernel_AllReduce", clock + start, clock + end, 20, 2 * n + 1))
    return {"entries": entries, "name": f"r{rank}.json", "distributedInfo": {"rank": rank}}
