"""The driver of products with weights of few bits: errors, then bytes, then times in turns."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.events import Level, Span
from engine.core.memory import require
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.experiments.low_bits.config import SPECTRUM, LowBitsConfig
from engine.kernels.matmul import matmul
from engine.kernels.matmul.pack import aligned
from engine.kernels.matmul.pack import pack as pack_float
from engine.kernels.quantised import OPERATOR, layout, reference
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.pack import Packed, block_dtype, pack
from engine.kernels.quantised.panels_cpu import quantised_matmul
from engine.kernels.quantised.weight import Quantised, round_to_nearest

WIDTH = "bits of a code"
ERROR = Plot("error of the product", WIDTH, "largest error (relative)", log_y=True, zero=False)
ROUNDING = Plot("error of the weight", WIDTH, "error (relative)", log_y=True, zero=False)
BYTES = Plot("bytes that hold a weight", WIDTH, "bytes of a weight (B)")
TIME = Plot("time of a product", WIDTH, "time (s)")
PACKED, FIRST = "packed", "dequantise first"
FLOAT32, BFLOAT16 = "float32 weights", "bfloat16 weights"
PLAIN = {"float32": 32.0, "bfloat16": 16.0}  # bits of a weight that is no code
CODES, CONTAINERS = "codes alone", "containers of 1, 2, 4, 8"
BITS, WRONG = "bits of a code in memory", "codes elsewhere"
KIND = {False: "integers", True: "floats"}


def run(config: LowBitsConfig, live: Live) -> None:
    """For every format: levels of error, bits and misplaced codes; curves and spans of time."""
    size = 4 * config.outputs * config.inputs
    require(6 * size, f"a layer of {config.outputs} × {config.inputs}", "take a smaller one")
    clock = WallClock()
    live.open(
        config,
        clock,
        plots=[ERROR, BYTES, TIME, ROUNDING],
        question="What does a width cost in error, bytes and time?",
        roofs=known_roofs(),
    )
    draw = torch.Generator().manual_seed(config.seed)
    x_MK = torch.randn(config.rows, config.inputs, generator=draw)
    weight_NK = torch.randn(config.outputs, config.inputs, generator=draw)
    held: dict[str, tuple[Quantised, Packed]] = {}
    for name in SPECTRUM[config.spectrum]:
        live.poll(clock.now())
        plain = round_to_nearest(weight_NK, name, min(config.group, config.inputs))
        held[name] = plain, spoilt(contained(plain) if config.containers else plain, config)
        _compare(live, clock, name, x_MK, weight_NK, *held[name])
    _curves(live, clock)
    _timed(config, live, clock, x_MK, weight_NK, held)


def contained(weight: Quantised) -> Quantised:
    """The same numbers with codes of the next power of two of bits; floats are widened to none."""
    bits = 1 << (weight.format.bits - 1).bit_length()
    if weight.format.is_float or bits == weight.format.bits:
        return weight
    signed = weight.format.values[weight.codes_NK].astype(np.int64)
    return replace(
        weight, format=format_of(f"int{bits}"), codes_NK=(signed % 2**bits).astype(np.uint8)
    )


def spoilt(weight: Quantised, config: LowBitsConfig) -> Packed:
    """The packed weight; with the last word of every block one lane on where the config says so."""
    packed = pack(weight)
    if not config.shifted:
        return packed
    words = packed.blocks_PB[packed.format.name].copy()
    words[:, :, -1] = np.roll(words[:, :, -1], 1, axis=-1)
    flat = np.ascontiguousarray(words).reshape(-1)
    held = aligned(flat.size, flat.dtype)
    held[:] = flat
    blocks = held.view(block_dtype(packed.format, packed.words))
    return replace(packed, blocks_PB=blocks.reshape(packed.blocks_PB.shape))


def _compare(
    live: Live, clock: WallClock, name: str, x_MK: Tensor, weight_NK: Tensor, plain: Quantised,
    packed: Packed,
) -> None:  # fmt: skip
    """Against dequantise-then-multiply in float64, and the layout's own reading of the codes."""
    truth = reference.quantised_matmul(x_MK.double(), plain)
    live.error(clock.now(), name, quantised_matmul(x_MK, packed), truth, "error of the product")
    rounding = float((plain.dequantised() - weight_NK).norm() / weight_NK.norm())
    read = packed.format.values[layout.codes(packed)]
    elsewhere = float((read != plain.format.values[plain.codes_NK]).mean())
    for what, value in (
        ("error of the weight", rounding),
        (BITS, 8 * packed.blocks_PB.nbytes / (packed.blocks_PB.size * packed.depth * 16)),
        ("bits of a weight in memory", 8 * packed.bytes / plain.codes_NK.size),
        (WRONG, elsewhere),
    ):
        live.emit(Level(clock.now(), name, what, value))


def _curves(live: Live, clock: WallClock) -> None:
    """Errors and bytes over the width of a code."""
    found: dict[str, dict[str, float]] = {}
    for level in live.log.of(Level):
        found.setdefault(level.lane, {})[level.name] = level.value
    points: dict[tuple[Plot, str], list[tuple[float, float]]] = {}
    for name, values in found.items():
        of = format_of(name)
        bits, kind = float(of.bits), KIND[of.is_float]
        said = {
            (ERROR, kind): max(values["error of the product"], 1e-9),
            (ROUNDING, kind): values["error of the weight"],
            (BYTES, "with scales"): values["bits of a weight in memory"] / 8,
            (BYTES, CODES): values[BITS] / 8,
            (BYTES, CONTAINERS): (1 << (of.bits - 1).bit_length()) / 8,
        }
        for key, value in said.items():
            points.setdefault(key, []).append((bits, value))
    for (plot, series), line in points.items():
        live.curve(clock.now(), plot, series, sorted(set(line)))


def _timed(
    config: LowBitsConfig, live: Live, clock: WallClock, x_MK: Tensor, weight_NK: Tensor,
    held: dict[str, tuple[Quantised, Packed]],
) -> None:  # fmt: skip
    """Every format by both ways, and float32 and bfloat16 weights, in turns; each product a
    span."""
    wide, narrow = pack_float(weight_NK), pack_float(weight_NK.bfloat16())
    numbers = config.outputs * config.inputs
    calls: dict[tuple[str, str], tuple[Callable[[], Tensor], float]] = {}
    for name, (plain, packed) in held.items():
        ours = _unpacked_first(x_MK, packed) if config.unpacked else _direct(x_MK, packed)
        calls[name, PACKED] = ours, float(packed.bytes)
        calls[name, FIRST] = _first(x_MK, plain), 9.0 * numbers  # a code, a number out and in
    calls["float32", FLOAT32] = lambda: matmul(x_MK, wide), 4.0 * numbers
    calls["bfloat16", BFLOAT16] = lambda: matmul(x_MK, narrow), 2.0 * numbers
    for call, _ in calls.values():
        call()
    taken: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    flops = 2.0 * config.rows * numbers
    rows_bytes = 4.0 * config.rows * (config.inputs + config.outputs)
    for round_ in range(config.repeats):
        live.report("timing", round_, config.repeats)
        first = round_ % len(calls)  # each begins in its turn, and none follows itself: caches
        for (name, way), (call, moved) in [*calls.items()][first:] + [*calls.items()][:first]:
            live.poll(clock.now())
            start, begun = clock.now(), time.perf_counter()
            call()
            seconds = time.perf_counter() - begun
            taken[name, way].append(seconds)
            said = tag(
                phase="decode" if config.rows <= 16 else "prefill", dtype="float32",
                shape=f"{config.rows}x{config.outputs}x{config.inputs}",
                variant=f"{name} {way}",
            )  # fmt: skip
            live.emit(Span(start + seconds, name, way, start, flops, moved + rows_bytes, said))
    lines: dict[str, list[tuple[float, float]]] = {}
    for (name, way), values in taken.items():
        bits = PLAIN[name] if name in PLAIN else float(format_of(name).bits)
        series = way if name in PLAIN or not format_of(name).is_float else f"{way}, floats"
        lines.setdefault(series, []).append((bits, float(np.median(values))))
    for series, line in lines.items():
        live.curve(clock.now(), TIME, series, sorted(line))


def _direct(x_MK: Tensor, packed: Packed) -> Callable[[], Tensor]:
    return lambda: OPERATOR(variant="panels_cpu", x_MK=x_MK, weight=packed)


def _unpacked_first(x_MK: Tensor, packed: Packed) -> Callable[[], Tensor]:
    return lambda: reference.quantised_matmul(x_MK, packed)


def _first(x_MK: Tensor, plain: Quantised) -> Callable[[], Tensor]:
    """The plain way, from codes that take a byte each: no bits to part, numbers to memory."""
    group, outputs = plain.group, plain.shape[0]
    values = torch.from_numpy(plain.format.values)
    codes = torch.from_numpy(plain.codes_NK)
    signed = torch.from_numpy(plain.format.values[plain.codes_NK].astype(np.int8))
    scales_NG1 = torch.from_numpy(plain.scales_NG).unsqueeze(2)
    whole = plain.shape[1] % group == 0 and plain.zeros_NG is None

    def call() -> Tensor:
        if not whole:
            return reference.quantised_matmul(x_MK, plain)
        wide = values[codes.int()] if plain.format.is_float else signed.float()
        scaled = wide.view(outputs, -1, group).mul_(scales_NG1)
        return torch.nn.functional.linear(x_MK, scaled.view(outputs, -1))

    return call
