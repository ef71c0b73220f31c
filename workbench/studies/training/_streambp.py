"""Curves of StreamBP: memory over length, and the longest sequence over what may be kept.

Lengths other than the run's own are counted on shapes, by the program that runs.
"""

import numpy as np

from engine.core.config import from_dict
from engine.core.events import Level
from engine.core.log import Log
from engine.core.plot import Plot
from engine.training.streamed import memory_fit
from engine.training.streamed.config import StreamedConfig
from engine.training.streamed.method import Method
from engine.training.streamed.run import PEAK
from workbench.study import Changes, Sweep

LENGTHS = (1024, 8192)  # tokens
WAYS: dict[str, Changes] = {
    kind: {"method": kind} for kind in ("plain", "checkpointing", "streamed")
}
ALONE: Changes = {"beside": False, "exact": False, "rounds": 0}


def values(log: Log, name: str) -> dict[str, float]:
    """The levels of that name, by way."""
    return {level.lane: level.value for level in log.of(Level) if level.name == name}


def fitting(config: StreamedConfig, method: Method, room: float) -> int:
    """The longest sequence of which that way keeps at most `room` bytes; 0 where none is."""
    given = (config.objective, config.batch, config.tile, room)
    return memory_fit.longest(config.model(), method, *given)


def over_room(log: Log) -> np.ndarray:
    """[2, K] bytes there may be, and the longest sequence that fits them, by a run's own way."""
    config = from_dict(StreamedConfig, log.opened.config)
    rooms = (config.room / 4, config.room)
    return np.array([rooms, [fitting(config, config.method, room) for room in rooms]])


def over_length(log: Log) -> np.ndarray:
    """[2, K] tokens and bytes at most: of the run as measured, of other lengths as counted."""
    config = from_dict(StreamedConfig, log.opened.config)
    given = (config.model(), config.method, config.objective, config.batch)
    sizes = {n: float(memory_fit.peak(*given, n, config.tile)) for n in LENGTHS}
    sizes[config.tokens] = values(log, PEAK)[config.method.kind]
    return np.array(sorted(sizes.items())).T


OVER_LENGTH = Sweep(
    Plot("memory over length", "tokens", "bytes of activations at most", log_x=True, log_y=True),
    None,
    over_length,
    WAYS,
    ALONE,
)
OVER_ROOM = Sweep(
    Plot("longest that fits", "bytes there may be", "tokens", log_x=True, log_y=True),
    None,
    over_room,
    WAYS,
    {**ALONE, "tokens": 16},
)
