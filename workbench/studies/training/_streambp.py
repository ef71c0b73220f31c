"""Curves of StreamBP: memory over length, the longest sequence over what may be kept; the paper's
table of longest sequences, foretold.

Lengths other than the run's own are counted on shapes, by the program that runs.
"""

import tomllib
from dataclasses import replace

import numpy as np
import torch

from engine.core.config import from_dict
from engine.core.events import Level
from engine.core.log import Log
from engine.core.paths import dataset
from engine.core.plot import Plot
from engine.models.loading.find import find
from engine.training.streamed import memory_fit
from engine.training.streamed.config import StreamedConfig
from engine.training.streamed.method import Method
from engine.training.streamed.methods.autograd import Checkpointing, Plain
from engine.training.streamed.objectives import Sft
from engine.training.streamed.run import PEAK
from workbench.study import Changes, Figure, Outcome, RunConfig, Sweep

COUNTED = 1 << 17  # tokens at which a model's bytes are counted; a straight line from zero
TABLE = tomllib.loads(dataset("streambp.toml").read_text())  # the paper's longest sequences
THIRDS = TABLE["partitions"]  # pieces of a layer in the authors' scripts
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


def per_token(model: str, method: Method) -> float:
    """Activation bytes a token in bfloat16, losses in float32; layers are all alike."""
    config = find(model).config
    sizes = {}
    for layers in (1, 2):
        cut = replace(
            config,
            layers=layers,
            windows=config.windows[:layers],
            expert_layers=config.expert_layers[:layers],
        )
        sizes[layers] = (
            memory_fit.peak(cut, method, Sft(), 1, COUNTED, 512, torch.bfloat16) / COUNTED
        )
    return sizes[2] + (config.layers - 2) * (sizes[2] - sizes[1])


def table(config: StreamedConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The paper's longest sequences from its checkpointing column and our bytes a token."""
    return in_pieces(config, THIRDS, run_config, fast)


def in_pieces(config: StreamedConfig, count: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with a layer's sequence in so many pieces."""
    method = config.method.model_copy(update={"partitions": int(count)})
    errors, plain = list[float](), list[float]()
    rates: dict[str, tuple[float, float, float]] = {}
    for row in TABLE["sft"][: 2 if fast else None]:
        name = row["model"]
        if name not in rates:
            ways = (Plain(), Checkpointing(), method)
            rates[name] = tuple(per_token(name, way) for way in ways)  # type: ignore[assignment]
        none, kept, ours = rates[name]
        errors.append(row["checkpointing"] * kept / ours / row["streamed"] - 1)
        if row["trained"] == "full":
            plain.append(row["checkpointing"] * kept / none / row["none"] - 1)
    mean = sum(map(abs, errors)) / len(errors)
    ratios = [1 + error for error in errors]
    return Outcome(
        f"{len(errors)} longest sequences of StreamBP within 25%, mean 20%; without checkpointing "
        "(full fine-tuning) within 10%",
        f"mean {mean:.1%}, worst {max(map(abs, errors)):.1%}; {max(map(abs, plain)):.1%}",
        mean <= 0.2 and max(map(abs, errors)) <= 0.25 and max(map(abs, plain)) <= 0.1,
        figure=Figure(sum(ratios) / len(ratios), min(ratios), max(ratios), "×", len(ratios)),
        needed=1.0,
    )


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
