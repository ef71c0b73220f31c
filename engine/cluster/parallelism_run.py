"""A search over splits as a run: step time against memory as curves, the best ones as moments."""

import numpy as np

from engine.cluster.parallelism import (
    Found,
    ParallelismConfig,
    Split,
    front,
    refuse_nothing,
    search,
)
from engine.core.clock import VirtualClock
from engine.core.events import Mark
from engine.core.run import Live

PANEL = "step time against memory"
GIB = 2.0**30


def run(config: ParallelismConfig, live: Live) -> None:
    """Search, then tell the fronts. Raises BadInput where nothing fits."""
    found = search(config, live.report)
    refuse_nothing(config, found)
    tell(config, found, live)


def tell(config: ParallelismConfig, found: Found, live: Live) -> None:
    """Open the log and put what was found into it: fronts of each way to recompute, by closed form,
    and the front of those on the clock."""
    axes = {"x": "memory of the fullest device (GiB)", "y": "time of a step (s)"}
    live.open(config, VirtualClock(), {}, curves={PANEL: {**axes, "log_y": True}})
    for how in ("none", "selective", "full"):
        same = [split for split in found.splits if split.passes.recompute == how]
        _curve(live, f"recompute {how}, estimated (modelled)", front(same))
    _curve(live, "on the clock (modelled)", found.front())
    for place, split in enumerate(found.front(), 1):
        live.emit(Mark(0.0, "splits", f"number {place}", sentence(split)))


def sentence(split: Split) -> str:
    """Such as "tensor 8, pipeline 64, …: 76.4 s, 52.8 GiB"."""
    words = ", ".join(f"{name} {value}" for name, value in split.words().items())
    return f"{words}: {split.seconds:.4g} s, {split.memory / GIB:.1f} GiB"


def _curve(live: Live, name: str, splits: list[Split]) -> None:
    if not splits:
        return
    ordered = sorted(splits, key=lambda split: split.memory)
    table = np.array([[s.memory / GIB for s in ordered], [s.seconds for s in ordered]])
    live.keep(0.0, f"curve/{PANEL}/{name}", table)
