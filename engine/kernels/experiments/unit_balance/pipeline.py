"""Attention's inner loop on unequal units, as a plan on a virtual clock: one multiprocessor's work.

Units: matrix (products), exponential (special function unit), multiply-add (everything else of
softmax, and rescaling), shared (memory that feeds the matrix unit). A tile of 128 queries goes
product with K, softmax, product with V, block after block; with ping-pong a second tile's products
fill the time that the first one's softmax takes (after arXiv 2603.05451). Rates come from the
device's sheet, all lowered by the part of the peak that the best product known reaches there: power
holds the clock below the sheet's. Work is counted in numbers of a tile.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from engine.core.errors import BadInput
from engine.hardware.device import Device
from engine.kernels.experiments.unit_balance.config import BalanceConfig
from engine.kernels.experiments.unit_balance.exp2 import steps

TILE = 128  # queries of a tile, keys of a block
HALF = 2  # bytes of a bfloat16 number
CHUNKS = 4  # that a block's softmax goes through the units in
UNITS = ("matrix", "shared", "exponential", "multiply-add")
SIMPLE = 2.5  # operations a score: maximum (three at once: half), scale, sum, half a conversion
MULTIPLY_ADD = 2  # flops of one


@dataclass(frozen=True, slots=True)
class Rates:
    """What one multiprocessor does a second: flops, exponentials, multiply-adds, bytes."""

    matrix: float
    exponential: float
    multiply_add: float
    shared: float


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of one unit's time, for one tile's block."""

    unit: str
    name: str
    tile: int
    block: int
    start: float
    stop: float
    flops: float = 0.0


def rates(device: Device) -> Rates:
    """Of one multiprocessor. Raises BadInput naming the fact that a sheet lacks."""
    shared = device.cache_bandwidth.get("shared")
    if not device.units or device.exponentials is None or shared is None:
        raise BadInput(
            f"device {device.name}: the model of its units needs `units`, `exponentials` and "
            "`cache_bandwidth.shared` in its sheet; b200-sxm and h100-sxm have them"
        )
    each = device.units / device.efficiency.get("bfloat16", 1.0)
    return Rates(
        device.peak("bfloat16") / each,
        device.exponentials / each,
        device.peak("float32") / MULTIPLY_ADD / each,
        shared / each,
    )


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds of each step of one tile's block, alone on its unit."""

    scores: float
    values: float
    scores_shared: float
    values_shared: float
    maximum: float
    exponential: float
    multiply_add: float
    correction: float


def durations(config: BalanceConfig, by: Rates) -> Durations:
    """Of a config's tiles and softmax."""
    dim, how = config.dim, config.softmax
    scores = TILE * TILE
    product = 2 * scores * dim / by.matrix
    operand = TILE * dim * HALF / by.shared
    polynomial = how.share * steps(how.degree)
    return Durations(
        scores=max(product, 2 * operand),
        values=max(product, operand),  # the weights come from the matrix unit's own memory
        scores_shared=2 * operand,
        values_shared=operand,
        maximum=scores / 2 / by.multiply_add,
        exponential=scores * (1 - how.share) / by.exponential,
        multiply_add=scores * (SIMPLE - 0.5 + polynomial) / by.multiply_add,
        correction=TILE * (dim + 1) / by.multiply_add,
    )


class Pipeline:
    """A list schedule: a step takes its unit as soon as what it waits for is done.

    Steps are begun in the order in which they become ready; a unit serves one at a time.
    `rescales`: part of the blocks in which a tile's accumulator is scaled.
    """

    def __init__(self, config: BalanceConfig, device: Device, rescales: float) -> None:
        self.config = config
        self.took = durations(config, rates(device))
        self.rescales = rescales
        self.free = dict.fromkeys(UNITS, 0.0)
        self.flops = 2.0 * TILE * TILE * config.dim

    def steps(self, blocks: int) -> Iterator[Step]:
        """Every step of one or two tiles over `blocks` blocks of keys, in order of their end."""
        tiles = 2 if self.config.ping_pong else 1
        ready = [(0.0, tile, 0, "scores") for tile in range(tiles)]
        ended: list[tuple[float, int, Step]] = []
        number = 0
        while ready:
            at, tile, block, phase = heapq.heappop(ready)
            found, done = getattr(self, f"_{phase}")(at, tile, block)
            for step in found:
                number += 1
                heapq.heappush(ended, (step.stop, number, step))
            following = {"scores": "softmax", "softmax": "values", "values": "scores"}[phase]
            block += following == "scores"
            if block < blocks:
                heapq.heappush(ready, (done + self.config.handoff, tile, block, following))
        while ended:
            yield heapq.heappop(ended)[2]

    def _take(
        self, unit: str, name: str, at: float, seconds: float, tile: int, block: int,
        flops: float = 0.0,
    ) -> Step:  # fmt: skip
        start = max(at, self.free[unit])
        self.free[unit] = start + seconds
        return Step(unit, name, tile, block, start, start + seconds, flops)

    def _scores(self, at: float, tile: int, block: int) -> tuple[list[Step], float]:
        step = self._take("matrix", "QKᵀ", at, self.took.scores, tile, block, self.flops)
        fed = self._take("shared", "QKᵀ", step.start, self.took.scores_shared, tile, block)
        return [step, fed], step.stop

    def _softmax(self, at: float, tile: int, block: int) -> tuple[list[Step], float]:
        """The maximum first; then chunks, whose exponentials overlap other chunks' arithmetic."""
        took = self.took
        found = [self._take("multiply-add", "maximum", at, took.maximum, tile, block)]
        begun = found[0].stop
        if block and int((block + 1) * self.rescales) > int(block * self.rescales):
            found.append(self._take("multiply-add", "rescale", begun, took.correction, tile, block))
        done = max(step.stop for step in found)
        for _ in range(CHUNKS):
            special = took.exponential / CHUNKS
            simple = took.multiply_add / CHUNKS
            both = [self._take("multiply-add", "softmax", begun, simple, tile, block)]
            if special:
                both.append(self._take("exponential", "exp", begun, special, tile, block))
            found += both
            done = max(done, *(step.stop for step in both))
        return found, done

    def _values(self, at: float, tile: int, block: int) -> tuple[list[Step], float]:
        step = self._take("matrix", "PV", at, self.took.values, tile, block, self.flops)
        fed = self._take("shared", "PV", step.start, self.took.values_shared, tile, block)
        return [step, fed], step.stop


def utilisation(steps: list[Step], device: Device) -> float:
    """Part of the sheet's peak that the steps' products reached on one multiprocessor."""
    flops = sum(step.flops for step in steps)
    return flops / max(step.stop for step in steps) / (device.peak("bfloat16") / device.units)


def waves(config: BalanceConfig, device: Device) -> float:
    """Part of the multiprocessors that work, over all waves of the modelled problem's tiles."""
    rows = TILE * (2 if config.ping_pong else 1)
    tiles = -(-config.modelled_tokens // rows) * config.modelled_heads
    return tiles / (device.units * -(-tiles // device.units))
