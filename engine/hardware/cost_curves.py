"""The time of one operator on a described device, in closed form: roofs, waves, launch.

Numbers or numpy arrays of shapes in, seconds of each roof out. The constants (`Curves`) say how
much of a roof real kernels reach; they hold no device, whose facts come from its sheet.

Tiles are dealt to the device's processors in waves: the last wave runs as long as a full one.
Shape letters: m rows, n outputs, k inputs; B sequences, H query heads, G key/value heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.device import Device, Freeze, Plain
from engine.hardware.sheet import read

FILE = "cost/operators.toml"
BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "float8": 1.0, "int8": 1.0, "float4": 0.5}
Number: TypeAlias = Any  # a float, or a numpy array of them

# What a library chooses from for a product: outputs of a tile (m, n) and parts that k is cut into.
TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))
CUTS = (1, 2, 3, 4, 6, 8, 16)
_CHOICES = np.array([(m, n, cut) for m, n in TILES for cut in CUTS], np.float64)
QUERIES = 128  # rows of an attention tile, and keys of a block
ROWS_EACH = 2  # rows that a processor works on at once in a row operator


class Matmul(Config):
    """A product on matrix units."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    rate: float = knob(doc="reached rate of an endless tile, over the sheet's best", low=0.01)
    edge: float = knob(doc="a tile's loads, as rows of flops along its edges", low=0)
    wave: float = knob(doc="begin and end of a wave", low=0, unit="s")
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)
    overlap: float = knob(doc="part of the shorter roof that is not hidden", low=0, high=1)


class Prefill(Config):
    """Causal attention of whole prompts."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    rate: float = knob(doc="reached rate, over the sheet's best", low=0.01)
    tile: float = knob(doc="begin and end of a tile of queries", low=0, unit="s")
    tail: float = knob(doc="part of the longest tile that runs alone", low=0)
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)


class Decode(Config):
    """Attention of one new token a sequence over its cache."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    merge: float = knob(doc="merging of a context cut into parts", low=0, unit="s")
    block: float = knob(doc="a block of keys in one program", low=0, unit="s")
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)
    overlap: float = knob(doc="part of the shorter roof that is not hidden", low=0, high=1)


class Rows(Config):
    """An operator that goes along rows: norm, rotation, gate, sum, embedding."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    number: float = knob(doc="one number of a row in its program", low=0, unit="s")
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)


class Collective(Config):
    """A collective among devices of one node: the better of two protocols, as libraries choose.

    The first sends at once and uses little of the link, the second begins late and uses most.
    """

    launch: float = knob(doc="before the first message", low=0, unit="s")
    step: float = knob(doc="one message of the ring", low=0, unit="s")
    at_once: float = knob(doc="part of the link that sending at once reaches", low=0.01)
    begin: float = knob(doc="before the second protocol's first message", low=0, unit="s")
    bandwidth: float = knob(doc="part of the link that it then reaches", low=0.01)


class Interval(Config):
    """Quantiles of ln(predicted / measured) over held-out rows of an operator."""

    low: float = knob(doc="5% of rows are below", low=-20, high=20)
    median: float = knob(doc="half of the rows are below", low=-20, high=20)
    high: float = knob(doc="95% of rows are below", low=-20, high=20)
    rows: int = knob(doc="held-out rows", low=1)


class Curves(Config):
    """Every constant of the cost model, with where it comes from."""

    slug: str = knob("", "file name")
    source: str = knob(doc="tables fitted on, with their licences")
    split: str = knob(doc="which rows were fitted and which were held out")
    best: float = knob(doc="assumed best rate over the peak, for sheets that give none", low=0.1)
    matmul: Matmul = knob(doc="products")
    prefill: Prefill = knob(doc="attention of prompts")
    decode: Decode = knob(doc="attention of new tokens")
    collective: Collective = knob(doc="collectives")
    rows: Annotated[Mapping[str, Rows], Freeze, Plain] = knob(doc="row operators by name")
    intervals: Annotated[Mapping[str, Interval], Freeze, Plain] = knob(
        make=dict, doc="held-out errors by operator"
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of an operator: in all, and of each roof alone."""

    seconds: Number
    roofs: dict[str, Number]


def curves() -> Curves:
    """The constants that the project ships."""
    return read(Curves, dataset(FILE))


def best_rate(device: Device, dtype: str, found: Curves) -> float:
    """Flops per second of the best product known: the sheet's, else an assumed part of peak."""
    known = device.efficiency.get(dtype, device.efficiency.get("bfloat16", found.best))
    return device.peak(dtype) * known


def processors(device: Device) -> int:
    """How many tiles the device works on at once. Raises BadInput where the sheet does not say."""
    if not device.units:
        raise BadInput(f"device {device.name}: its sheet gives no `units`; the cost model needs it")
    return device.units


def matmul(device: Device, found: Curves, m: Number, n: Number, k: Number, dtype: str) -> Parts:
    """The best of a library's tiles and cuts for x[m, k] · W[k, n]."""
    c, units, size = found.matmul, processors(device), BYTES[dtype]
    tile_m, tile_n, cut = (column[:, None] for column in _CHOICES.T)
    m, n, k = (np.atleast_1d(np.asarray(x, np.float64)) for x in (m, n, k))
    waves = np.ceil(np.ceil(m / tile_m) * np.ceil(n / tile_n) * cut / units)
    rate = best_rate(device, dtype, found) * c.rate / units
    flops = 2 * tile_m * tile_n * np.ceil(k / cut) * (1 + c.edge * (1 / tile_m + 1 / tile_n))
    compute = waves * (flops / rate + c.wave)
    parts = np.where(cut > 1, 8 * cut * m * n, 0.0)  # float32 sums written and read again
    moved = size * (m * k + n * k) + 2 * m * n + parts
    memory = moved / (device.bandwidth * c.bandwidth)
    seconds = c.launch + np.maximum(compute, memory) + c.overlap * np.minimum(compute, memory)
    at = seconds.argmin(0), np.arange(len(m))
    return Parts(seconds[at], {dtype: compute[at], "bandwidth": memory[at], "launch": c.launch})


def prefill(
    device: Device, found: Curves, B: Number, tokens: Number, H: Number, G: Number, dim: Number,
    dtype: str,
) -> Parts:  # fmt: skip
    """Causal attention of B prompts of `tokens` tokens; exponentials are a roof where known."""
    c, units = found.prefill, processors(device)
    blocks = np.ceil(tokens / QUERIES)
    rate = best_rate(device, dtype, found) * c.rate / units
    block = 4 * QUERIES * QUERIES * dim / rate
    if device.exponentials:
        block = np.maximum(block, QUERIES * QUERIES / (device.exponentials / units))
    work = H * B * blocks * ((blocks + 1) / 2 * block + c.tile) / units
    compute = work + c.tail * (blocks * block + c.tile)
    memory = BYTES[dtype] * 2 * (H + G) * dim * B * tokens / (device.bandwidth * c.bandwidth)
    seconds = c.launch + np.maximum(compute, memory)
    return Parts(seconds, {dtype: compute, "bandwidth": memory, "launch": c.launch})


def decode(
    device: Device, found: Curves, B: Number, context: Number, G: Number, dim: Number, dtype: str
) -> Parts:
    """One new token for each of B sequences that see `context` tokens, contexts cut to fill."""
    c, units = found.decode, processors(device)
    blocks = np.ceil(context / QUERIES)
    cut = np.minimum(blocks, np.maximum(1, np.floor(units / (B * G))))
    latency = np.ceil(blocks / cut) * c.block * np.ceil(B * G * cut / units)
    memory = BYTES[dtype] * 2 * G * dim * B * context / (device.bandwidth * c.bandwidth)
    begin = c.launch + c.merge * (cut > 1)
    seconds = begin + np.maximum(latency, memory) + c.overlap * np.minimum(latency, memory)
    return Parts(seconds, {"blocks": latency, "bandwidth": memory, "launch": begin})


def rows(
    device: Device, found: Curves, name: str, count: Number, width: Number, numbers: Number,
    dtype: str,
) -> Parts:  # fmt: skip
    """`count` rows of `width` numbers each, of which `numbers` are read or written in all."""
    if name not in found.rows:
        raise BadInput(f"row operator {name!r}: not known; one of: {', '.join(found.rows)}")
    c = found.rows[name]
    latency = np.ceil(count / (ROWS_EACH * processors(device))) * width * c.number
    memory = count * numbers * BYTES[dtype] / (device.bandwidth * c.bandwidth)
    seconds = c.launch + np.maximum(latency, memory)
    return Parts(seconds, {"rows": latency, "bandwidth": memory, "launch": c.launch})
