"""What a classification of data movement is made from."""

from typing import Literal

from engine.core.config import Config, knob
from engine.kernels.experiments.data_movement.caches import Hierarchy


class MovementConfig(Config):
    """Caches, cores and the machine that modelled times are for."""

    caches: Hierarchy = knob(make=Hierarchy, doc="The simulated caches")
    most_cores: int = knob(64, "Most cores; fewer by factors of 4", low=4, high=64, unit="cores")
    scale: int = knob(
        16, "Shrink caches and data by this; at 1 a run needs 1.5 GB", low=1, high=32, log=True
    )
    latency: float = knob(
        150.0,
        "Memory's latency (assumed)",
        low=1.0,
        high=2000.0,
        unit="cycles",
        group="modelled time",
    )
    bandwidth: float = knob(
        1e11, "Memory's bandwidth (assumed)", low=1e9, high=1e13, unit="B/s", group="modelled time"
    )
    seed: int = knob(0, "Seed of the kernels' data", low=0, high=2**31 - 1, group="more")
    kernels: Literal["six", "held_out"] = knob(
        "six", "The six the classes are shown on, or others they were not made from"
    )
    swapped: bool = knob(False, "Misses of L1 stand for those of L3, which is wrong", group="more")
