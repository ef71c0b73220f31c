"""A real training step on ranks of this machine beside the modelled one.

The model counts a rank's products (flops), its parameters (summed among replicas and updated) and
its layers; what one of each takes is fitted to real steps of other sizes, before and after. Beside
it stand the measured roofs alone. The real steps are taken twice, since no model can be nearer to a
machine than the machine is to itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.distributed.launch import launch
from engine.distributed.record import Record
from engine.hardware.device import Device
from engine.hardware.measure import measure
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.rank_main import STEP, work

Say = Callable[[str], None]
STEPS = {False: 8, True: 25}  # of each size, quick and full; the first is not counted
ASKED = {
    "mesh": {"data": 2},
    "batch": 8,
    "tokens": 128,
    "model": {"hidden": 256, "width": 768, "layers": 4, "vocabulary": 512},
    "limit": 600.0,
}
# Sizes that a rank is calibrated on: neither the asked one nor all smaller or larger.
SCALED = (("tokens", 0.5), ("tokens", 2.0), ("model.layers", 0.5), ("model.layers", 1.5),
          ("model.width", 2.0), ("batch", 0.5))  # fmt: skip
PASSES = 3  # forward, and of the backward what inputs and what weights need
ADAM = 7 * 4  # bytes of a 32-bit parameter's update: weight and two states both ways, gradient


@dataclass(frozen=True)
class Fit:
    """Seconds of a flop, of a parameter and of a layer's pass, none below 0, and the median of
    |modelled ÷ real - 1| that they leave on the steps they were fitted to."""

    each: np.ndarray
    left: float


def usual(full: bool = False) -> MeshTrainingConfig:
    """What is compared where nothing else is asked: two replicas of a small Llama."""
    return from_dict(MeshTrainingConfig, {**ASKED, "steps": STEPS[full]})


def compare(config: MeshTrainingConfig, say: Say, fresh: bool = True) -> list[dict[str, Any]]:
    """Rows of figures; errors are ÷ the real step - 1. `fresh` measures this machine again.

    Raises BadInput for a single step, and where a size that it is calibrated on does not divide.
    """
    if config.steps < 2:
        raise BadInput(f"compare: steps {config.steps}; take 2 or more, as a first is not counted")
    others = [scaled(config, knob, by) for knob, by in SCALED]
    if fresh:
        say("measuring this machine")
    device = measure(refresh=fresh)
    order = [*others, config, *others, config]
    say(f"{len(order)} times {config.steps} steps on {config.mesh.ranks} ranks of this machine")
    # One more of each: where a step ends is told by the next one's beginning.
    asked = [update(each, {"steps": each.steps + 1}) for each in order]
    record, *_ = launch(work, config.mesh.ranks, asked, limit=config.limit)
    steps = steps_of(record)
    count = len(others)
    seconds = [float(np.median(each)) for each in steps]
    before, real, after, again = (
        seconds[:count], seconds[count], seconds[count + 1 : -1], seconds[-1]
    )  # fmt: skip
    found = fit([counted(each) for each in others] * 2, [*before, *after])
    modelled = float(counted(config) @ found.each)
    return rows(device, config, found, (real, again, modelled))


def scaled(config: MeshTrainingConfig, knob: str, by: float) -> MeshTrainingConfig:
    """The same training with another size. Raises BadInput where that does not divide."""
    told: Any = config
    for name in knob.split("."):
        told = getattr(told, name)
    return update(config, {knob: max(1, int(told * by))})


def steps_of(record: Record) -> list[list[float]]:
    """Seconds of each step of each config that a rank trained in turn, but for its first."""
    found: list[list[float]] = []
    times: list[float] = []
    for mark in (e for e in record.events if isinstance(e, Mark) and e.name == STEP):
        if mark.text == "step 0":
            times = []
            found.append(times)
        times.append(mark.time)
    return [np.diff(each)[1:].tolist() for each in found]


def counted(config: MeshTrainingConfig) -> np.ndarray:
    """[flops, parameters, passes of a layer] of one rank's step."""
    model, mesh = config.model.model(), config.mesh
    sequences = config.batch / mesh.data
    tokens = sequences * config.tokens / mesh.context
    layers = model.layers / mesh.pipeline
    wide = model.head_dim * (model.heads + model.kv_heads)
    layer = model.hidden * (2 * wide + 3 * config.model.width)
    parameters = (layers * layer + model.vocab * model.hidden) / mesh.tensor
    scores = 2 * layers * tokens * config.tokens * model.heads * model.head_dim / mesh.tensor
    flops = PASSES * 2 * (tokens * parameters + scores)
    passes = layers * config.microbatches
    return np.array([flops, parameters, passes])


def fit(sizes: Sequence[np.ndarray], seconds: Sequence[float]) -> Fit:
    """Least squares of the relative error, what would be below 0 left out."""
    real = np.array(seconds)
    columns = np.array(sizes) / real[:, None]
    kept = np.ones(columns.shape[1], bool)
    each = np.zeros(len(kept))
    while kept.any():
        each[:] = 0.0
        scale = np.abs(columns[:, kept]).max(0)
        each[kept] = np.linalg.lstsq(columns[:, kept] / scale, np.ones(len(real)))[0] / scale
        if each.min() >= 0:
            break
        kept &= each > 0
    return Fit(each, float(np.median(np.abs(columns @ each - 1))))


def rows(
    device: Device, config: MeshTrainingConfig, found: Fit, took: tuple[float, float, float]
) -> list[dict[str, Any]]:
    """A row for the step; one each for what was calibrated."""
    real, again, modelled = took
    flops, parameters, _ = counted(config)
    # Ranks share the machine's roofs.
    peak, wide = device.peak("float32"), device.bandwidth
    roofs = config.mesh.ranks * (flops / peak + ADAM * parameters / wide)
    told: list[dict[str, Any]] = [
        {
            "measure": "training step", "unit": "s", "real": real, "repeat": again / real - 1,
            "modelled": modelled, "error": modelled / ((real + again) / 2) - 1,
            "roofs": roofs, "roofs_error": roofs / ((real + again) / 2) - 1,
        }
    ]  # fmt: skip
    nothing = dict.fromkeys(("modelled", "roofs", "repeat", "error", "roofs_error"))
    names = (("rate of products", "FLOP/s"), ("parameters updated", "/s"), ("a layer's pass", "s"))
    for (name, unit), value in zip(names, found.each, strict=True):
        shown = value if unit == "s" else (1 / value if value else None)
        told.append({"measure": f"calibrated {name}", "unit": unit, "real": shown, **nothing})
    left = {"measure": "error left on what was calibrated on, median", "unit": "", "real": None}
    return [*told, {**left, **nothing, "error": found.left}]
