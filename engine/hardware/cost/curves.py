"""The time of one operator on a described device, in closed form: roofs, waves, launch.

Numbers or numpy arrays of shapes in, seconds of each roof out. The constants (`Constants`) say how
much of a roof real kernels reach; the device's facts come from its sheet.

Tiles are dealt to the device's processors in waves: the last wave runs as long as a full one.
Shape letters: m rows, n outputs, k inputs; B sequences, H query heads, G key/value heads.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.cost.constants import Cached, Constants, Heated
from engine.hardware.cost.numbers import Number, least, most
from engine.hardware.device import Device
from engine.hardware.link import Link

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "float8": 1.0, "int8": 1.0, "float4": 0.5}

# What a library chooses from for a product: outputs of a tile (m, n) and parts that k is cut into.
TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))
# Of its peak an 8-bit product reaches so much of what one of 16 bits does: mean of GH200, B200,
# B300, GB200 and H100 in stas00/ml-engineering's achievable-FLOPS table at 744d01e1.
NARROW = 0.946
SQUARE = 128  # outputs along a side of the tile that a rate is told of
CUTS = (1, 2, 3, 4, 6, 8, 16)
_CHOICES = np.array([(m, n, cut) for m, n in TILES for cut in CUTS], np.float64)
CHECKED = (
    15 / 16
)  # of a GDDR6 device's memory: the rest holds check bits (an L40S shows 46,068 MiB)
ROWS_EACH = 2  # rows that a processor works on at once in a row operator
SUMMED = 4  # ranks up to which a library does not ask the switch
LIMITED = 0.05  # heat above which a measured device has reached its power limit
POWER = 3  # of the clock: one for cycles, two for the voltage they need
FITS, SPILLS = 0.7, 1.3  # of a cache: what it holds from call to call wholly, and not at all
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}  # of a ring


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of an operator: in all, and of each roof alone."""

    seconds: Number
    roofs: dict[str, Number]


def best_rate(device: Device, dtype: str, found: Constants) -> float:
    """Flops per second of the best product known: the sheet's, else an assumed part of peak."""
    known = device.efficiency.get(dtype)
    if known is None:
        apart = found.narrow is not None and BYTES[dtype] < 2
        known = device.efficiency.get("bfloat16", found.best) * (NARROW if apart else 1.0)
    return device.peak(dtype) * known


def processors(device: Device) -> int:
    """How many tiles the device works on at once. Raises BadInput where the sheet does not say."""
    if not device.units:
        raise BadInput(f"device {device.name}: its sheet gives no `units`; the cost model needs it")
    return device.units


class Traffic(NamedTuple):
    """Reading what a call before has read too: bytes a second of memory and of the last cache, and
    bytes that the cache holds of it."""

    rate: float
    holds: float
    cache: float

    def seconds(self, moved: Number, beside: Number = 0.0) -> Number:
        """Of `moved` bytes. What the last cache then still holds comes from there; more than it
        holds, those moved `beside` with it, drives all of it out."""
        memory = moved / self.rate
        if not self.holds:
            return memory
        full = (moved + beside) / self.holds
        kept = least(most((SPILLS - full) / (SPILLS - FITS), 0.0), 1.0)
        return memory * (1 - kept + kept * self.rate / self.cache)


def memory_rate(device: Device) -> float:
    """Bytes a second of memory: where check bits lie among the data (GDDR6), those are read too."""
    return device.bandwidth * (CHECKED if device.memory == "GDDR6" else 1.0)


def traffic_of(device: Device, found: Constants, c: Cached) -> Traffic:
    """How an operator reads from memory on a device."""
    rate = memory_rate(device) * c.bandwidth
    if found.elsewhere_than(device):
        share = device.efficiency.get("bandwidth")
        rate = rate if share is None else device.bandwidth * share
    cycles = device.clock or found.clock or 1e9
    holds = device.caches.get("L2", 0.0) * c.holds
    cache = max(rate, c.cache * processors(device) * cycles)  # memory is read through it
    return Traffic(rate, holds, cache)


def traffic(device: Device, found: Constants, c: Cached, moved: Number) -> Number:
    """Seconds of reading `moved` bytes that a call before has read too."""
    return traffic_of(device, found, c).seconds(moved)


def heat_of(device: Device, found: Constants, c: Heated) -> float:
    """By how much longer work takes at last, for the clocks that fall while the power limit is
    reached.

    A flop's energy goes with the square of the clock that voltage allows, power with its cube: a
    device falls by the cube root of what its own clock would ask over what it has; one whose sheet
    gives the rate it reaches falls no further than the one that was measured.
    """
    heat = c.heat
    if found.power and device.tdp and found.device != device.slug:
        watts = device.tdp / max(device.peaks.get(name, 0.0) for name in ("bfloat16", "float16"))
        joules = (1 + heat) ** POWER * found.power / found.slower(device) ** (POWER - 1)
        told = max(1.0, joules / watts) ** (1 / POWER) - 1
        known = "bfloat16" in device.efficiency or heat < LIMITED
        heat = min(heat, told) if found.device and known else told
    return heat


def heated(
    device: Device, found: Constants, c: Heated, compute: Number, most: float = np.inf
) -> Number:
    """How much longer work of `compute` seconds takes for that, `most` at most."""
    heat = min(most, heat_of(device, found, c))
    return 1 + heat * compute**2 / (compute**2 + c.warm**2)


def _narrow_tile(device: Device, m: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of a tile (m, n) of vLLM's 8-bit products, which go by shape alone: its kernels of
    capability 9.0 where products are asynchronous, else those of 8.9."""
    few = m <= 64
    tile_n = np.where(few, 64.0, 128.0)
    if device.asynchronous:
        tile_m = np.where(m <= 128, 64.0, 128.0)
    else:
        tile_m = np.where(m <= 32, 32.0, np.where(m <= np.where(n <= 4096, 256, 128), 64.0, 128.0))
        tile_m = np.where((m > 256) & (n > 4096) & (n <= 8192), 256.0, tile_m)
    return tile_m[None], tile_n[None]


def matmul(device: Device, found: Constants, m: Number, n: Number, k: Number, dtype: str) -> Parts:
    """The best of a library's tiles and cuts for x[m, k] · W[k, n].

    Products of 8-bit numbers: x comes in 16 bits and is narrowed first (`Matmul.narrow`), and the
    tile goes by shape, as in vLLM's kernels (csrc/quantization/cutlass_w8a8).
    """
    c, units, size = found.product(BYTES[dtype]), processors(device), BYTES[dtype]
    m, n, k = (np.atleast_1d(np.asarray(x, np.float64)) for x in (m, n, k))
    if c.narrow:
        (tile_m, tile_n), cut = _narrow_tile(device, m, n), np.ones((1, 1))
    else:
        choices = _CHOICES[_CHOICES[:, 2] <= c.cuts]
        tile_m, tile_n, cut = (column[:, None] for column in choices.T)
    waves = np.ceil(np.ceil(m / tile_m) * np.ceil(n / tile_n) * cut / units)
    rate = min(best_rate(device, dtype, found) * c.rate, device.peak(dtype)) / units
    edges = 1 + c.edge * (1 / tile_m + 1 / tile_n - 2 / SQUARE)
    flops = 2 * tile_m * tile_n * np.ceil(k / cut) * edges
    slower, wide = found.slower(device), memory_rate(device)
    spilt = c.spill * (tile_m > SQUARE) if c.narrow else 0.0
    compute = waves * (flops / rate + slower * (c.wave + spilt))
    if c.heat:
        # The best rate of a sheet was measured in that heat.
        known = dtype in device.efficiency and found.device != device.slug
        best = max(0.0, c.rate / (1 - c.edge / 2 / SQUARE) - 1) if known else np.inf
        compute = compute * heated(device, found, c, compute, best)
    if not device.asynchronous:
        compute = compute + c.store * 2 * m * n / wide
    parts = np.where(cut > 1, 8 * cut * m * n, 0.0)  # float32 sums written and read again
    read = traffic_of(device, found, c)
    memory = read.seconds(size * n * k) + (size * m * k + 2 * m * n + parts) / read.rate
    begin = slower * (c.launch + c.merge * (cut > 1)) + np.zeros_like(m)
    if size < 2 and c.narrow:
        cycles = c.narrow / (units * (device.clock or found.clock or 1e9))
        begin = begin + m * k * np.maximum((2 + size) / read.rate, cycles)
    seconds = begin + np.maximum(compute, memory) + c.overlap * np.minimum(compute, memory)
    at = seconds.argmin(0), np.arange(len(m))
    compute, begin = (np.broadcast_to(x, seconds.shape) for x in (compute, begin))
    return Parts(seconds[at], {dtype: compute[at], "bandwidth": memory[at], "launch": begin[at]})


def rows(
    device: Device, found: Constants, name: str, count: Number, width: Number, numbers: Number,
    dtype: str,
) -> Parts:  # fmt: skip
    """`count` rows of `width` numbers each, of which `numbers` are read or written in all."""
    if name not in found.rows:
        raise BadInput(f"row operator {name!r}: not known; one of: {', '.join(found.rows)}")
    c, slower = found.rows[name], found.slower(device)
    latency = np.ceil(count / (ROWS_EACH * processors(device))) * width * c.number * slower
    # What the operator before has written is in the last cache, as what decoding reads again is.
    warm = found.decode.model_copy(
        update={
            "bandwidth": c.bandwidth,
            "cache": found.decode.cache * c.bandwidth / found.decode.bandwidth,
        }
    )
    moved = count * numbers * BYTES[dtype]
    memory = (
        traffic(device, found, warm, moved)
        if warm.holds
        else moved / (memory_rate(device) * c.bandwidth)
    )
    seconds = c.launch * slower + np.maximum(latency, memory)
    return Parts(seconds, {"rows": latency, "bandwidth": memory, "launch": c.launch * slower})


def collective(
    device: Device, by: Link, found: Constants, name: str, ranks: Number, size: Number
) -> Parts:
    """A ring over `size` bytes by the better of two protocols, or the switch's own sum."""
    if name not in ROUNDS:
        raise BadInput(f"collective {name!r}: not known; one of: {', '.join(ROUNDS)}")
    c, slower = found.collective, found.slower(device)
    messages = ROUNDS[name] * (ranks - 1)
    crowd = (ranks / 2) ** c.crowd if by.shared else 1.0  # all through one host
    if name == "all_to_all" and c.pairs:
        latency = slower * (c.launch + c.pairs)
    else:
        latency = slower * (c.launch + messages * c.step)
    sent, begin = messages * size / ranks * crowd / by.bandwidth, slower * c.begin
    wire = np.minimum(sent / c.at_once, begin + sent / c.bandwidth)
    if name == "all_reduce" and c.in_switch and by.sums:
        summed = begin + sent / c.in_switch
        wire = np.where(ranks > SUMMED, np.minimum(wire, summed), wire)
    copied = c.passes * size / device.bandwidth
    return Parts(latency + wire + copied, {"link": wire, "launch": latency, "bandwidth": copied})
