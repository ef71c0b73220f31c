"""A search over splits as a run: step time against memory as curves, the best ones as moments."""

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
from engine.core.plot import Plot
from engine.core.run import Live

PLOT = Plot(
    "step time against memory",
    "memory of the fullest device (GiB)",
    "time of a step (s)",
    log_y=True,
)
GIB = 2.0**30


def run(config: ParallelismConfig, live: Live) -> None:
    """Search, then tell the fronts. Raises BadInput where nothing fits."""
    found = search(config, live.report)
    refuse_nothing(config, found)
    tell(config, found, live)


def tell(config: ParallelismConfig, found: Found, live: Live) -> None:
    """Open the log and put what was found into it: fronts of each way to recompute, by closed form,
    and the front of those on the clock."""
    live.open(
        config,
        VirtualClock(),
        plots=[PLOT],
        question="Which split is fastest in the memory there is?",
    )
    for how in ("none", "selective", "full"):
        same = [split for split in found.splits if split.passes.recompute == how]
        _curve(live, f"recompute {how}, estimated", front(same))
    _curve(live, "on the clock", found.front())
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
    points = [(split.memory / GIB, split.seconds) for split in ordered]
    live.curve(0.0, PLOT, name, points, modelled=True)
