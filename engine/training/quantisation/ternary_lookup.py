"""The driver of ternary products by table lookup: sums of integers, bits, times, a described board.

Shape letters: N outputs, K inputs, J groups of inputs.
"""

import time
import tomllib
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numba
import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.events import Level, Span
from engine.core.names import counted
from engine.core.paths import dataset
from engine.core.plot import BOUND, MODELLED, Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.quantised import OPERATOR, lookup
from engine.kernels.quantised.pack import pack
from engine.kernels.quantised.weight import round_to_nearest

LOOKUP, TWO_BITS, INT8 = "table lookup", "packed in 2 bits", "packed int8"
GROUP = "inputs of a table"
BITS = Plot("bits of a ternary weight", GROUP, "bits of a weight", zero=False)
TIME = Plot("time of a product", GROUP, "time (s)")
RATE = Plot("decoding on the described board", GROUP, "tokens a second")
ADDED = Plot("additions of a product", GROUP, "additions over weights (×)", log_y=True)
WRONG, HELD, TOKENS = "sums that are wrong", "bits of a weight in memory", "tokens a second"
WIDTHS = (1, 2, 3, 4, 5)


class TernaryConfig(Config):
    """One ternary layer, fed with integers of 8 bits, and a described board that decodes."""

    outputs: int = knob(768, "Outputs of the layer", low=16, high=1 << 14, log=True)
    inputs: int = knob(720, "Inputs of the layer", low=16, high=1 << 14, log=True)
    rows: int = knob(2, "Rows multiplied at once: tokens of a step", low=1, high=256, log=True)
    width: int = knob(5, "Inputs of a table: a byte of the weight looks them up", low=1, high=5)
    repeats: int = knob(3, "Timed rounds, variants in turns", low=1, high=100)
    ports: int = knob(
        4, "Ports that the board's logic reads memory through", low=1, high=4, group="Board"
    )
    fault: Literal["none", "stale", "unpacked"] = knob(
        "none", "A spoilt mechanism, which is wrong", group="more"
    )
    seed: int = knob(0, "Seed of rows and weight", low=0, high=2**31 - 1, group="more")


def run(config: TernaryConfig, live: Live) -> None:
    """Levels of wrong sums, bits and rates; curves over the width of a table; spans of time."""
    clock = WallClock()
    live.open(
        config,
        clock,
        plots=(BITS, ADDED, TIME, RATE),
        question="What does looking up several weights at once save?",
        roofs=known_roofs(),
    )
    draw = torch.Generator().manual_seed(config.seed)
    x_MK = torch.randint(-127, 128, (config.rows, config.inputs), generator=draw)
    weight_NK = torch.randint(-1, 2, (config.outputs, config.inputs), generator=draw)
    truth_MN = x_MK @ weight_NK.T
    numbers, lines = config.outputs * config.inputs, dict[tuple[Plot, str], list[Any]]()
    for width in WIDTHS:
        live.poll(clock.now())
        codes_JN = coded(weight_NK.numpy(), width)
        given = np.roll(codes_JN, 1, axis=0) if config.fault == "stale" else codes_JN
        found_MN = lookup.ternary_matmul(x_MK, given, width)
        held = 8 if config.fault == "unpacked" else code_bits(width) / width
        lane, added = counted(width, "input"), len(codes_JN) * (3**width + config.outputs) / numbers
        said = {
            WRONG: float((found_MN != truth_MN).double().mean()),
            HELD: 8.0 if config.fault == "unpacked" else 8 * codes_JN.nbytes / numbers,
            "bits of a weight in bits of logic": held,
            "additions over weights": added,
            TOKENS + MODELLED: rate(held, config.ports),
        }
        for name, value in said.items():
            live.emit(Level(clock.now(), lane, name, value))
        lines.setdefault((BITS, "in bytes"), []).append((width, said[HELD]))
        lines.setdefault((BITS, "in bits of logic"), []).append((width, held))
        lines.setdefault((BITS, f"information{BOUND}"), []).append((width, np.log2(3)))
        lines.setdefault((ADDED, "tables and sums"), []).append((width, added))
        lines.setdefault((RATE, "all ports"), []).append((width, said[TOKENS + MODELLED]))
    for (plot, series), line in lines.items():
        live.curve(clock.now(), plot, series, line, modelled=plot is RATE)
    timed(config, live, clock, x_MK, weight_NK)


def coded(weight_NK: np.ndarray, width: int) -> np.ndarray:
    """Ternary weights as patterns of `width` inputs, uint8 [J, N]: digits 0, 1 and 2 of base 3 for
    -1, 0 and 1; nought beyond the inputs."""
    outputs, inputs = weight_NK.shape
    wide = np.pad(weight_NK, ((0, 0), (0, -inputs % width))) + 1
    codes_NJ = wide.reshape(outputs, -1, width) @ 3 ** np.arange(width)
    return np.ascontiguousarray(codes_NJ.T.astype(np.uint8))


def code_bits(width: int) -> int:
    """The fewest bits that tell the patterns of so many ternary weights apart."""
    return (3**width - 1).bit_length()


def rate(bits: float, ports: int) -> float:
    """Tokens a second of the described model on the described board, if weights come at the rate of
    its memory or of its ports, whichever is less, and all else hides behind that."""
    facts = tomllib.loads(dataset("tellme.toml").read_text(encoding="utf-8"))
    board, model = facts["board"], facts["model"]
    layer = 4 * model["hidden"] ** 2 + 3 * model["hidden"] * model["width"]
    head = model["vocab"] * model["hidden"] * model["head_bytes"]
    through = min(board["memory"], ports * board["port_bytes"] * board["clock"])
    return through / (model["layers"] * layer * bits / 8 + head)


def timed(
    config: TernaryConfig, live: Live, clock: WallClock, x_MK: Tensor, weight_NK: Tensor
) -> None:
    """Table lookup beside packed products, one thread each, in turns; each product a span."""
    x, weight = x_MK.float(), weight_NK.float()
    codes_JN = coded(weight_NK.numpy(), config.width)
    two, eight = (pack(round_to_nearest(weight, name, 0)) for name in ("ternary", "int8"))
    ways: dict[str, tuple[Callable[[], Tensor], float]] = {
        LOOKUP: (partial(lookup.ternary_matmul, x_MK, codes_JN, config.width), codes_JN.nbytes),
        TWO_BITS: (partial(OPERATOR, x_MK=x, weight=two), two.bytes),
        INT8: (partial(OPERATOR, x_MK=x, weight=eight), eight.bytes),
    }
    had = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        for call, _ in ways.values():
            call()
        flops = 2.0 * x.shape[0] * weight.numel()
        for round_ in range(config.repeats):
            for way, (call, moved) in list(ways.items())[:: -1 if round_ % 2 else 1]:
                live.poll(clock.now())
                start, begun = clock.now(), time.perf_counter()
                call()
                seconds = time.perf_counter() - begun
                said = tag(phase="decode" if config.rows <= 16 else "prefill", dtype="float32",
                           shape=f"{config.rows}x{config.outputs}x{config.inputs}",
                           variant=way)  # fmt: skip
                live.emit(Span(start + seconds, way, "product", start, flops, moved, said))
    finally:
        numba.set_num_threads(had)
    for way in ways:
        spans = [span.stop - span.start for span in live.log.of(Span) if span.lane == way]
        live.curve(clock.now(), TIME, way, [(config.width, float(np.median(spans)))])
