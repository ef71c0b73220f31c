"""A GPU: attention's Triton kernels against torch's own and against the memory, kept as a run; and
decode steps of the engine.

Median times, of kernels on the device, ours and torch's in turns, each held against torch's numbers
first.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

from engine.core.events import Level, Span
from engine.core.file import save
from engine.core.log import Log
from engine.core.run import Run
from engine.core.tags import facts

NAME = "gpu"
ABOUT = "attention on a GPU beside torch's own, and the engine's steps; --save keeps the run"
SAVES = True  # takes a file to keep what was measured in
MOST = 2e-2  # error of bfloat16 numbers, as the operators' tolerances have it
HELD = {"attention": "≥ 0.9×", "paged attention": "≥ 70%"}


def run(full: bool, say: Callable[[str], None], kept: str = "") -> list[dict[str, Any]]:
    """A row for each shape and kernel. Raises BadInput where there is no GPU."""
    from engine.kernels.experiments.on_gpu import GpuAttention
    from engine.kernels.experiments.on_gpu import run as driver

    say("attention on the GPU")
    log = Run.execute(driver, GpuAttention(others=full), study="kernels-on-gpu").log
    if kept:
        say(f"saved {save(log, kept)}")
    from workbench.benches import _gpu_decode

    return rows(log) + _gpu_decode.rows(_roofs(log)["bandwidth"], say)


def rows(log: Log) -> list[dict[str, Any]]:
    """Rows with the keys of the kernels' bench; a kernel that errs too much has no figure."""
    from engine.kernels.experiments.on_gpu import ERROR, PEER

    roofs = _roofs(log)
    errors = {level.lane: level.value for level in log.of(Level) if level.name == ERROR}
    taken: dict[tuple[str, str], dict[str, list[float]]] = {}
    work: dict[tuple[str, str], Span] = {}
    for span in log.of(Span):
        key = span.lane, facts(span.tag)["shape"]
        taken.setdefault(key, {}).setdefault(span.name, []).append(span.stop - span.start)
        work[key] = span
    found = []
    for (lane, shape), times in taken.items():
        span = work[lane, shape]
        limit = max(span.flops / roofs["compute"], span.bytes / roofs["bandwidth"])
        for name in times:
            error = errors[f"{lane} {name} {shape}"]
            if name != PEER:
                peer = median(times[PEER])
                found.append(_row(lane, shape, name, median(times[name]), peer, limit, error))
    return found


def _roofs(log: Log) -> dict[str, float]:
    assert log.opened is not None
    return {roof["kind"]: roof["value"] for roof in log.opened.facts["roofs"]}


def _row(
    lane: str, shape: str, name: str, seconds: float, peer: float, limit: float, error: float
) -> dict[str, Any]:
    row = {"name": f"{lane} {shape.replace('_', ' ')}", "what": f"{name}, error {error:.1e}"}
    figures = ("seconds", "limit_seconds", "fraction_of_limit", "ratio")
    if not error <= MOST:
        row["what"] += ": WRONG, so not timed"
        return row | dict.fromkeys(figures) | {"ratio_to": "", "holds_to": ""}
    values = (seconds, limit, limit / seconds, peer / seconds)
    told = {"ratio_to": "torch", "holds_to": HELD[lane]}
    return row | dict(zip(figures, values, strict=True)) | told


def table(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows for a person."""
    from workbench.benches import kernels

    return kernels.table([{"section": NAME, **row} for row in found])
