"""The time of attention on a described device, in closed form: prompts, new tokens, or both in one
call.

Numbers or numpy arrays of shapes in, seconds of each roof out. Shape letters: B sequences, H query
heads, G key/value heads.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from engine.hardware.cost.constants import Constants
from engine.hardware.cost.curves import (
    BYTES,
    Parts,
    best_rate,
    heat_of,
    memory_rate,
    processors,
    traffic_of,
)
from engine.hardware.cost.numbers import EITHER, Number, Numbers
from engine.hardware.device import Device

QUERIES = 128  # rows of an attention tile, and keys of a block


class Tiles(NamedTuple):
    """Seconds of all tiles of queries over the processors, of the longest, and what that takes more
    than they do in the mean."""

    work: Number
    longest: Number
    uneven: Number


class Roofs(NamedTuple):
    """Seconds of a call: in all, of computing, of memory, and before it begins."""

    seconds: Number
    compute: Number
    memory: Number
    launch: Number


class Attention:
    """Attention of heads of one shape on one device. What no call changes is worked out once: a
    simulator asks for millions of calls."""

    def __init__(
        self, device: Device, found: Constants, H: Number, G: Number, dim: Number, dtype: str,
        numbers: Numbers = EITHER,
    ) -> None:  # fmt: skip
        """`numbers`: what calls are told in."""
        self.up, self.most, self.least = numbers
        self.device, self.found, self.dtype = device, found, dtype
        self.H, self.G, self.dim = H, G, dim
        self.units, self.slower = processors(device), found.slower(device)
        self.row, self.overlap = found.decode.row, found.decode.overlap
        self.part, self.tail = found.decode.row or 1.0, found.prefill.tail
        beside = found.decode.beside and device.asynchronous
        self.merge = 0.0 if beside else found.decode.merge  # of a context's parts
        self.tile, self.launch = (
            found.prefill.tile * self.slower,
            found.prefill.launch * self.slower,
        )
        self.traffic = traffic_of(device, found, found.decode)
        self.rate = memory_rate(device) * found.prefill.bandwidth
        self.size, self.queries, self.keys = BYTES[dtype] * 2, (H + G) * dim, G * dim
        self.cache = self.size * G * dim  # bytes of a token

    @cached_property
    def heat(self) -> float:
        """By how much longer prompts take at last."""
        return heat_of(self.device, self.found, self.found.prefill)

    @cached_property
    def block(self) -> Number:
        """Seconds of a tile of queries over a block of keys on one processor."""
        device, found, c, units = self.device, self.found, self.found.prefill, self.units
        best = device.peak(self.dtype) if c.softmax else best_rate(device, self.dtype, found)
        products = 4 * QUERIES * QUERIES * self.dim / (best * c.rate / units)
        softmax = c.softmax * self.slower
        if device.exponentials:
            softmax = max(softmax, QUERIES * QUERIES / (device.exponentials / units))
        if not c.softmax or device.asynchronous:
            return self.most(products, softmax)
        return products + softmax

    def tiles(self, B: Number, tokens: Number, cached: Number) -> Tiles:
        """Tiles of B prompts, of `Decode.row` of a block's queries where that is known."""
        blocks, before = self.up(tokens / QUERIES), cached / QUERIES
        block, tile = self.part * self.block, self.tile
        mean, longest = before + (blocks + 1) / 2, before + blocks
        rows = self.up(tokens / (self.part * QUERIES))
        work = self.H * B * rows * (mean * block + tile) / self.units
        return Tiles(work, longest * block + tile, (longest - mean) * block)

    def moved(self, tokens: Number, cached: Number) -> Number:
        """Bytes of a prompt's queries, keys, values and results."""
        return self.size * (self.queries * tokens + self.keys * cached)

    def read(self, moved: Number) -> Number:
        """Seconds of memory for the bytes that a call of prompts moves."""
        return moved / self.rate if self.rate else self.traffic.seconds(moved)

    def written(self, tokens: Number) -> Number:
        """Seconds in which keys and values of `tokens` are laid into the cache's pages, before."""
        if self.rate:
            return 0.0
        beside = self.size * self.queries * tokens
        return self.traffic.seconds(2 * self.cache * tokens, beside)

    def prompts(self, tiles: Tiles, moved: Number, before: Number = 0.0) -> Roofs:
        """A call of prompts by their tiles and the bytes moved, after `before` seconds."""
        c = self.found.prefill
        compute = self.most(tiles.work, tiles.longest) + self.tail * tiles.uneven
        if c.heat:
            compute = compute * (1 + self.heat * compute**2 / (compute**2 + c.warm**2))
        memory, launch = self.read(moved), self.launch + before
        return Roofs(launch + self.most(compute, memory), compute, memory, launch)

    def joined(
        self, tiles: Tiles, moved: Number, ones: Number, context: Number, before: Number = 0.0
    ) -> Roofs:
        """A call of prompts and of `ones` new tokens over `context` tokens each, which cuts no
        context: each new token is a tile of queries of its own, of `Decode.row` rows."""
        single = self.up(context / QUERIES) * self.row * self.block + self.tile
        work = tiles.work + self.H * ones * single / self.units
        compute = self.most(self.most(work, tiles.longest), single) + self.tail * tiles.uneven
        answers = self.cache * ones * context
        if self.rate:
            memory = moved / self.rate + self.traffic.seconds(answers)
        else:
            memory = self.traffic.seconds(moved + answers)
        launch = self.launch + before
        return Roofs(launch + self.most(compute, memory), compute, memory, launch)

    def decode(self, B: Number, context: Number) -> Roofs:
        """One new token for each of B sequences that see `context` tokens, contexts cut to fill."""
        c, units, slower = self.found.decode, self.units, self.slower
        blocks = self.up(context / QUERIES)
        cut = self.least(blocks, self.most(1, units // (B * self.G)))
        turns = self.up(B * self.G * cut / units)
        latency = self.up(blocks / cut) * c.block * slower * turns
        memory = self.traffic.seconds(self.cache * B * context)
        begin = slower * (c.launch + self.merge * (cut > 1) + c.tile * turns)
        seconds = begin + self.most(latency, memory) + self.overlap * self.least(latency, memory)
        return Roofs(seconds, latency, memory, begin)

    def call(self, chunks: Sequence[tuple[int, int]], ones: int, seen: int) -> float:
        """Seconds of one call over chunks of prompts (new tokens, cached ones), each as long as it
        is, and `ones` new tokens that see `seen` tokens in all."""
        if not chunks:
            return float(self.decode(ones, seen / ones).seconds)
        new, before = chunks[0]
        tiles = self.tiles(1, new, before)
        for more, behind in chunks[1:]:
            each = self.tiles(1, more, behind)
            longest = each if each.longest > tiles.longest else tiles
            tiles = Tiles(tiles.work + each.work, longest.longest, longest.uneven)
            new, before = new + more, before + behind
        moved, laid = self.moved(new, before), self.written(new)
        if not ones:
            return float(self.prompts(tiles, moved, laid).seconds)
        if self.row:
            return float(self.joined(tiles, moved, ones, seen / ones, laid).seconds)
        alone = self.decode(ones, seen / ones).seconds
        return float(self.prompts(tiles, moved, laid).seconds + alone)


def prefill(
    device: Device, found: Constants, B: Number, tokens: Number, H: Number, G: Number, dim: Number,
    dtype: str, cached: Number = 0.0, keep: bool = True,
) -> Parts:  # fmt: skip
    """Causal attention of B prompts of `tokens` tokens after `cached` ones each; exponentials are a
    roof where known. `keep`: their keys and values are laid into a cache."""
    one = Attention(device, found, H, G, dim, dtype)
    laid = one.written(B * tokens) if keep else 0.0
    told = one.prompts(one.tiles(B, tokens, cached), B * one.moved(tokens, cached), laid)
    return _parts(told, dtype)


def mixed(
    device: Device, found: Constants, B: Number, tokens: Number, cached: Number, ones: Number,
    context: Number, H: Number, G: Number, dim: Number, dtype: str,
) -> Parts:  # fmt: skip
    """B prompts as in `prefill` and `ones` new tokens over `context` tokens each, in one call.

    Where kernels make two of it (`Decode.row` 0), their times are added.
    """
    one = Attention(device, found, H, G, dim, dtype)
    tiles, moved = one.tiles(B, tokens, cached), B * one.moved(tokens, cached)
    laid = one.written(B * tokens)
    if one.row:
        return _parts(one.joined(tiles, moved, ones, context, laid), dtype)
    prompts = _parts(one.prompts(tiles, moved, laid), dtype)
    alone = _parts(one.decode(ones, context), "blocks")
    roofs = {k: v + alone.roofs.get(k, 0.0) for k, v in prompts.roofs.items()}
    return Parts(prompts.seconds + alone.seconds, roofs)


def decode(
    device: Device, found: Constants, B: Number, context: Number, G: Number, dim: Number, dtype: str
) -> Parts:
    """One new token for each of B sequences that see `context` tokens, contexts cut to fill."""
    return _parts(Attention(device, found, G, G, dim, dtype).decode(B, context), "blocks")


def _parts(roofs: Roofs, compute: str) -> Parts:
    """`compute`: what the roof of computing is called."""
    told = {compute: roofs.compute, "bandwidth": roofs.memory, "launch": roofs.launch}
    return Parts(roofs.seconds, told)
