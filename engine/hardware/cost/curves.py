"""The time of one operator on a described device, in closed form: roofs, waves, launch.

Numbers or numpy arrays of shapes in, seconds of each roof out. The constants (`Constants`) say how
much of a roof real kernels reach; the device's facts come from its sheet.

Tiles are dealt to the device's processors in waves: the last wave runs as long as a full one.
Shape letters: m rows, n outputs, k inputs; B sequences, H query heads, G key/value heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.cost.constants import Cached, Constants, Heated
from engine.hardware.cost.numbers import Number, least, most, up
from engine.hardware.device import Device
from engine.hardware.link import Link

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "float8": 1.0, "int8": 1.0, "float4": 0.5}

# What a library chooses from for a product: outputs of a tile (m, n) and parts that k is cut into.
TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))
CUTS = (1, 2, 3, 4, 6, 8, 16)
_CHOICES = np.array([(m, n, cut) for m, n in TILES for cut in CUTS], np.float64)
QUERIES = 128  # rows of an attention tile, and keys of a block
ROWS_EACH = 2  # rows that a processor works on at once in a row operator
SUMMED = 4  # ranks up to which a library does not ask the switch
LIMITED = 0.05  # heat above which a measured device has reached its power limit
FITS, SPILLS = 0.7, 1.3  # of a cache: what it holds from call to call wholly, and not at all
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}  # of a ring


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of an operator: in all, and of each roof alone."""

    seconds: Number
    roofs: dict[str, Number]


def best_rate(device: Device, dtype: str, found: Constants) -> float:
    """Flops per second of the best product known: the sheet's, else an assumed part of peak."""
    known = device.efficiency.get(dtype, device.efficiency.get("bfloat16", found.best))
    return device.peak(dtype) * known


def processors(device: Device) -> int:
    """How many tiles the device works on at once. Raises BadInput where the sheet does not say."""
    if not device.units:
        raise BadInput(f"device {device.name}: its sheet gives no `units`; the cost model needs it")
    return device.units


def traffic(device: Device, found: Constants, c: Cached, moved: Number) -> Number:
    """Seconds of reading `moved` bytes that a call before has read too.

    What the last cache then still holds comes from there; more than it holds, read in turn, drives
    all of it out.
    """
    share = c.bandwidth
    if found.elsewhere_than(device):
        share = device.efficiency.get("bandwidth", share)
    memory = moved / (device.bandwidth * share)
    holds = device.caches.get("L2", 0.0) * c.holds
    if not holds:
        return memory
    kept = least(most((SPILLS - moved / holds) / (SPILLS - FITS), 0.0), 1.0)
    return memory * (1 - kept + kept * share / c.cache)


def heated(device: Device, found: Constants, c: Heated, compute: Number) -> Number:
    """How much longer work takes for the clocks that fall while the power limit is reached.

    A flop's energy goes with the square of the clock that voltage allows, so another device falls
    by what that asks over the watts it has for a flop; one whose sheet gives the rate it reaches
    falls no further than the one that was measured.
    """
    heat = c.heat
    if found.power and device.tdp and found.device != device.slug:
        watts = device.tdp / max(device.peaks.get(name, 0.0) for name in ("bfloat16", "float16"))
        joules = (1 + heat) * found.power / found.slower(device) ** 2
        told = max(0.0, joules / watts - 1)
        known = "bfloat16" in device.efficiency or heat < LIMITED
        heat = min(heat, told) if found.device and known else told
    return 1 + heat * compute**2 / (compute**2 + c.warm**2)


def matmul(device: Device, found: Constants, m: Number, n: Number, k: Number, dtype: str) -> Parts:
    """The best of a library's tiles and cuts for x[m, k] · W[k, n].

    Products of 8-bit numbers: x comes in 16 bits and is narrowed first (`Matmul.narrow`).
    """
    c, units, size = found.product(BYTES[dtype]), processors(device), BYTES[dtype]
    choices = _CHOICES[_CHOICES[:, 2] <= c.cuts]
    tile_m, tile_n, cut = (column[:, None] for column in choices.T)
    m, n, k = (np.atleast_1d(np.asarray(x, np.float64)) for x in (m, n, k))
    waves = np.ceil(np.ceil(m / tile_m) * np.ceil(n / tile_n) * cut / units)
    rate = best_rate(device, dtype, found) * c.rate / units
    flops = 2 * tile_m * tile_n * np.ceil(k / cut) * (1 + c.edge * (1 / tile_m + 1 / tile_n))
    slower = found.slower(device)
    compute = waves * (flops / rate + slower * (c.wave + c.store * tile_m * tile_n))
    if c.heat:
        compute = compute * heated(device, found, c, compute)
    parts = np.where(cut > 1, 8 * cut * m * n, 0.0)  # float32 sums written and read again
    memory = traffic(device, found, c, size * (m * k + n * k) + 2 * m * n + parts)
    begin = c.launch * slower + np.zeros_like(m)
    if size < 2 and c.narrow:
        begin = begin + c.narrow * (2 + size) * m * k / device.bandwidth
    seconds = begin + np.maximum(compute, memory) + c.overlap * np.minimum(compute, memory)
    at = seconds.argmin(0), np.arange(len(m))
    return Parts(seconds[at], {dtype: compute[at], "bandwidth": memory[at], "launch": begin})


def prefill(
    device: Device, found: Constants, B: Number, tokens: Number, H: Number, G: Number, dim: Number,
    dtype: str, cached: Number = 0.0,
) -> Parts:  # fmt: skip
    """Causal attention of B prompts of `tokens` tokens after `cached` ones each; exponentials are a
    roof where known."""
    tiles = _tiles(device, found, B, tokens, cached, H, dim, dtype)
    moved = B * _moved(tokens, cached, H, G, dim, dtype)
    return _prompts(device, found, tiles, moved, dtype)


def _moved(tokens: Number, cached: Number, H: Number, G: Number, dim: Number, dtype: str) -> Number:
    """Bytes of a prompt's queries, keys, values and results."""
    return BYTES[dtype] * 2 * ((H + G) * dim * tokens + G * dim * cached)


class Tiles(NamedTuple):
    """Seconds of all tiles of queries over the processors, of the longest, and what that takes more
    than they do in the mean."""

    work: Number
    longest: Number
    uneven: Number


def _tiles(
    device: Device, found: Constants, B: Number, tokens: Number, cached: Number, H: Number,
    dim: Number, dtype: str,
) -> Tiles:  # fmt: skip
    """Tiles of B prompts, of `Decode.row` of a block's queries where that is known."""
    c, units = found.prefill, processors(device)
    part = found.decode.row or 1.0
    blocks, before = up(tokens / QUERIES), cached / QUERIES
    block, tile = part * _block(device, found, dim, dtype), c.tile * found.slower(device)
    mean, longest = before + (blocks + 1) / 2, before + blocks
    work = H * B * up(tokens / (part * QUERIES)) * (mean * block + tile) / units
    return Tiles(work, longest * block + tile, (longest - mean) * block)


def _block(device: Device, found: Constants, dim: Number, dtype: str) -> Number:
    """Seconds of a tile of queries over a block of keys on one processor."""
    c, units = found.prefill, processors(device)
    best = device.peak(dtype) if c.softmax else best_rate(device, dtype, found)
    products = 4 * QUERIES * QUERIES * dim / (best * c.rate / units)
    softmax = c.softmax * found.slower(device)
    if device.exponentials:
        softmax = max(softmax, QUERIES * QUERIES / (device.exponentials / units))
    if not c.softmax or device.asynchronous:
        return most(products, softmax)
    return products + softmax


def _prompts(device: Device, found: Constants, tiles: Tiles, moved: Number, dtype: str) -> Parts:
    """A call of prompts by their tiles and the bytes moved."""
    c = found.prefill
    compute = most(tiles.work, tiles.longest) + c.tail * tiles.uneven
    if c.heat:
        compute = compute * heated(device, found, c, compute)
    memory = moved / (device.bandwidth * c.bandwidth)
    launch = c.launch * found.slower(device)
    seconds = launch + most(compute, memory)
    return Parts(seconds, {dtype: compute, "bandwidth": memory, "launch": launch})


def mixed(
    device: Device, found: Constants, B: Number, tokens: Number, cached: Number, ones: Number,
    context: Number, H: Number, G: Number, dim: Number, dtype: str,
) -> Parts:  # fmt: skip
    """B prompts as in `prefill` and `ones` new tokens over `context` tokens each, in one call.

    Such a call cuts no context: each new token is a tile of queries of its own, of one row. Where
    kernels do otherwise (`Decode.row` 0), the two calls' times are added.
    """
    tiles = _tiles(device, found, B, tokens, cached, H, dim, dtype)
    moved = B * _moved(tokens, cached, H, G, dim, dtype)
    return _joined(device, found, tiles, moved, ones, context, H, G, dim, dtype)


def call(
    device: Device, found: Constants, chunks: Sequence[tuple[int, int]], ones: int, seen: int,
    H: int, G: int, dim: int, dtype: str,
) -> Parts:  # fmt: skip
    """One call over chunks of prompts (new tokens, cached ones), each as long as it is, and `ones`
    new tokens that see `seen` tokens in all."""
    if not chunks:
        return decode(device, found, ones, seen / ones, G, dim, dtype)
    told = [_tiles(device, found, 1, *chunk, H, dim, dtype) for chunk in chunks]
    tokens, cached = (sum(chunk[at] for chunk in chunks) for at in (0, 1))
    longest = max(told, key=lambda each: float(each.longest))
    tiles = longest._replace(work=sum(each.work for each in told))
    given = (device, found, tiles, _moved(tokens, cached, H, G, dim, dtype))
    if not ones:
        return _prompts(*given, dtype)
    return _joined(*given, ones, seen / ones, H, G, dim, dtype)


def _joined(
    device: Device, found: Constants, tiles: Tiles, moved: Number, ones: Number, context: Number,
    H: Number, G: Number, dim: Number, dtype: str,
) -> Parts:  # fmt: skip
    """A call of prompts as in `_prompts` with new tokens in it."""
    c, answers = found.prefill, found.decode
    if not answers.row:
        prompts = _prompts(device, found, tiles, moved, dtype)
        alone = decode(device, found, ones, context, G, dim, dtype)
        roofs = {k: v + alone.roofs.get(k, 0.0) for k, v in prompts.roofs.items()}
        return Parts(prompts.seconds + alone.seconds, roofs)
    block, tile = _block(device, found, dim, dtype), c.tile * found.slower(device)
    single = up(context / QUERIES) * answers.row * block + tile
    work = tiles.work + H * ones * single / processors(device)
    compute = most(most(work, tiles.longest), single) + c.tail * tiles.uneven
    cache = BYTES[dtype] * 2 * G * dim * ones * context
    memory = moved / (device.bandwidth * c.bandwidth) + traffic(device, found, found.decode, cache)
    launch = c.launch * found.slower(device)
    seconds = launch + most(compute, memory)
    return Parts(seconds, {dtype: compute, "bandwidth": memory, "launch": launch})


def decode(
    device: Device, found: Constants, B: Number, context: Number, G: Number, dim: Number, dtype: str
) -> Parts:
    """One new token for each of B sequences that see `context` tokens, contexts cut to fill."""
    c, units = found.decode, processors(device)
    blocks = up(context / QUERIES)
    cut = least(blocks, most(1, units // (B * G)))
    slower = found.slower(device)
    latency = up(blocks / cut) * c.block * slower * up(B * G * cut / units)
    memory = traffic(device, found, c, BYTES[dtype] * 2 * G * dim * B * context)
    begin = slower * (c.launch + c.merge * (cut > 1))
    seconds = begin + most(latency, memory) + c.overlap * least(latency, memory)
    return Parts(seconds, {"blocks": latency, "bandwidth": memory, "launch": begin})


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
        else moved / (device.bandwidth * c.bandwidth)
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
