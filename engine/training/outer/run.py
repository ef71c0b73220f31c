"""Driver: replicas learn the shipped text by one method, told as events while they do."""

from engine.core.clock import Clock, VirtualClock, WallClock
from engine.core.machine import describe
from engine.core.run import Live
from engine.distributed.merge import lane
from engine.training.outer.config import LowCommunicationConfig
from engine.training.outer.described_curves import AXES as DESCRIBED_AXES
from engine.training.outer.described_curves import described_curves
from engine.training.outer.progress import AXES, Progress


def run(config: LowCommunicationConfig, live: Live) -> None:
    """Train as `config` says. Raises BadInput where knobs do not fit together."""
    clock: Clock = VirtualClock() if config.executor.clock == "virtual" else WallClock()
    facts = {
        "lanes": [lane(rank) for rank in range(config.replicas)],
        "curves": {**AXES, **DESCRIBED_AXES},
    }
    live.open(config, clock, describe(), **facts)
    progress = Progress(live, config.method.kind)
    described_curves(config.method, live)
    config.executor.run(config.job(live.seed), live, progress)
