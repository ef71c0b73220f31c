"""The driver of shift-and-add weights: binary codes beside GPTQ and others at equal memory."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.events import Level, Span
from engine.core.plot import BOUND, Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.quantised import OPERATOR, lookup
from engine.kernels.quantised.pack import pack
from engine.kernels.quantised.weight import round_to_nearest
from engine.training.quantisation import binary_codes as codes
from engine.training.quantisation.rounded_model import (
    RoundedModel,
    compensated,
    even_fit,
    factor,
    moments,
)

WIDTHS = (2, 3, 4)
OURS, WEIGHTS, OUTPUTS = "ShiftAddLLM", "weights alone", "outputs alone"
GPTQ, NEAREST, BINARY = "GPTQ, searched ranges", "round to nearest", "binary codes by row"
RIVALS = (GPTQ, NEAREST, BINARY)
MIXED, LOOKUP, PACKED = "bits allocated by layer", "table lookup", "packed integers"
MEMORY, MULTIPLIED = "bits of a weight in memory", "multiplications in its code"
ENERGY, ENERGY_INTEGERS = "energy (modelled, J)", "of integers (modelled, J)"
ENERGY_FLOATS = "of float16 (modelled, J)"
LOSS = Plot("loss of the model", "window", "loss (nats a token)", zero=False)
BITS = Plot("perplexity over bits", "bits of a weight, with scales", "perplexity", zero=False)
LAYERS = Plot("outputs of the model's layers", "linear layer", "signal over error (dB)", zero=False)
GIVEN = Plot("bits that layers are given", "linear layer", "bits of a weight")
PLOTS = (BITS, LOSS, LAYERS, GIVEN)


class ShiftAddConfig(Config):
    """A model whose layers are held in binary codes, and one product of theirs."""

    model: str = knob("stdlib-draft-1m", "A shipped model or a folder")
    text: str = knob("stdlib-5m", "A shipped model or a folder, whose validation.txt judges")
    blocks: int = knob(2, "Blocks of the model in codes, the first ones", low=0, high=64)
    mean: float = knob(3.0, "Bits of a weight on average, allocated by layer", low=2.0, high=4.0)
    parts: int = knob(8, "Parts of the rows, each with its scales", low=1, high=1024, log=True)
    columns: int = knob(8, "Columns that share scales", low=1, high=1024, log=True)
    terms: int = knob(2, "Powers of two that a scale is the sum of", low=1, high=4)
    objective: Literal["both", "weights alone", "outputs alone"] = knob(
        "both", "What codes are fitted to"
    )
    seen: int = knob(1024, "Tokens that calibrate", low=64, high=1 << 14, log=True)
    windows: int = knob(12, "Windows that judge", low=2, high=256)
    length: int = knob(32, "Tokens of a window", low=8, high=512)
    size: int = knob(256, "Outputs and inputs of the timed layer", low=64, high=1 << 13, log=True)
    repeats: int = knob(2, "Timed rounds of that layer", low=1, high=100)
    fault: Literal["none", "backwards", "one place on", "multiplied", "bytes", "least first"] = (
        knob("none", "A spoilt mechanism, which is wrong", group="more")
    )
    seed: int = knob(0, "Seed of the timed layer", low=0, high=2**31 - 1, group="more")


def run(config: ShiftAddConfig, live: Live) -> None:
    """Losses by window and layers' errors as curves; bits, energy and times as levels, spans."""
    clock = WallClock()
    live.open(config, clock, plots=PLOTS, roofs=known_roofs(), question="What do fewer bits cost?")
    product(config, live, clock)
    if config.blocks:
        _Study(config, live, clock).model()


class _Study:
    def __init__(self, config: ShiftAddConfig, live: Live, clock: WallClock) -> None:
        self.config, self.live, self.clock = config, live, clock
        c = config
        self.text = RoundedModel(c.model, c.windows, c.length, c.seen, c.text)
        inside = [f".layers.{i}." for i in range(config.blocks)]
        names = [n for n in self.text.weights if "proj" in n and any(i in n for i in inside)]
        self.weights = {name: self.text.weights[name] for name in names}
        self.sizes = {name: weight.numel() for name, weight in self.weights.items()}
        found = moments(self.text.config, self.text.weights, self.text.seen, config.length)
        self.moments = {name: found[name] for name in names}
        self.upper = {name: factor(found[name]) for name in names}

    def model(self) -> None:
        """Every way at every width, and ours with bits by layer."""
        aim = self.config.objective
        ours = {w: {n: self.ours(n, w, aim) for n in self.weights} for w in WIDTHS}
        bits = {w: {n: each.bits_per_weight for n, each in ours[w].items()} for w in WIDTHS}
        held = {w: {n: each.dequantised() for n, each in ours[w].items()} for w in WIDTHS}
        self.judge(f"float32{BOUND}", 0, {}, {})
        for w in WIDTHS:
            self.live.report("bits", w, WIDTHS[-1])
            self.judge(OURS, w, held[w], bits[w])
            self.layers(f"{OURS}, {w} bits", held[w])
            for way in RIVALS:
                rival = {n: self.rival(n, w, way, bits[w][n]) for n in self.weights}
                self.judge(way, w, rival, bits[w])
                if way == GPTQ:
                    self.layers(f"{way}, {w} bits", rival)
        for way in (WEIGHTS, OUTPUTS):
            alone = {n: self.ours(n, WIDTHS[0], way) for n in self.weights}
            self.judge(way, WIDTHS[0], {n: a.dequantised() for n, a in alone.items()}, bits[2])
        score = {n: codes.importance(w, self.upper[n]) for n, w in self.weights.items()}
        if self.config.fault == "least first":
            score = {name: 1 / value for name, value in score.items()}
        given = codes.allocated(score, self.sizes, self.config.mean, WIDTHS)
        self.judge(MIXED, 0, {n: held[w][n] for n, w in given.items()},
                   {n: bits[w][n] for n, w in given.items()})  # fmt: skip
        self.live.curve(self.clock.now(), GIVEN, MIXED, list(enumerate(given.values())))

    def ours(self, name: str, bits: int, objective: str) -> codes.BinaryCodes:
        c, upper_KK = self.config, self.upper[name]
        if c.fault == "backwards":  # what a column errs goes on with the wrong sign
            upper_KK = 2 * upper_KK.diagonal().diag() - upper_KK
        rounds = 0 if objective == OUTPUTS else codes.ROUNDS
        return codes.shift_add(
            self.weights[name], None if objective == WEIGHTS else upper_KK, bits, c.parts,
            c.columns, c.terms, rounds,
        )  # fmt: skip

    def rival(self, name: str, bits: int, way: str, memory: float) -> Tensor:
        """A layer by another way, with groups of a row as small as our memory for scales allows:
        16 bits a scale, zeros for nothing."""
        weight = self.weights[name]
        scales = codes.HALF_BITS * (bits if way == BINARY else 1)
        group = min(max(int(scales / (memory - bits)), 1), weight.shape[1])
        by_row = codes.binary_fit(len(weight), bits, 0)
        fit = by_row if way == BINARY else even_fit(bits, way == GPTQ)
        upper_KK = self.upper[name] if way == GPTQ else None
        return compensated(weight, upper_KK, group, fit)[0]

    def judge(self, way: str, bits: int, held: dict[str, Tensor], memory: dict[str, float]) -> None:
        self.live.poll(self.clock.now())
        line, name = self.text.with_weights(held), f"{way}, {bits} bits" if bits else way
        self.live.curve(self.clock.now(), LOSS, name, list(enumerate(line)))
        whole = sum(memory[n] * self.sizes[n] for n in memory) / max(sum(self.sizes.values()), 1)
        self.live.emit(Level(self.clock.now(), name, "perplexity", float(np.exp(line.mean()))))
        if bits:
            self.live.emit(Level(self.clock.now(), name, "bits of a weight", whole))
            known = BITS.read(self.live.log, way).T if way in BITS.series(self.live.log) else ()
            points = [*map(tuple, known), (whole, float(np.exp(line.mean())))]
            self.live.curve(self.clock.now(), BITS, way, points)

    def layers(self, series: str, held: dict[str, Tensor]) -> None:
        """Each layer's output error for the inputs that calibrate, from their second moments."""
        points: list[Any] = []
        for at, (name, weight) in enumerate(self.weights.items()):
            error_NK, moments_KK = held[name] - weight, self.moments[name]
            signal, error = (float((w @ moments_KK * w).sum()) for w in (weight, error_NK))
            points.append((at, 10 * np.log10(signal / error)))
        self.live.curve(self.clock.now(), LAYERS, series, points)


def product(config: ShiftAddConfig, live: Live, clock: WallClock) -> None:
    """One layer by table lookup: its error, what it costs, its time beside packed integers."""
    draw = torch.Generator().manual_seed(config.seed)
    weight_NK = torch.randn(config.size, config.size, generator=draw)
    x_MK = torch.randn(1, config.size, generator=draw)
    for bits in WIDTHS[:2]:
        lane = f"{bits} bits"
        ours = codes.shift_add(weight_NK, None, bits, config.parts, terms=config.terms)
        given, shifts, turns = ours.packed()
        if config.fault == "one place on":
            shifts[:, :, :, 0] += 1
        truth = x_MK.double() @ ours.dequantised().double().T
        live.error(clock.now(), lane, lookup.binary_matmul(x_MK, given, shifts, turns), truth)
        memory = ours.bits_per_weight + (7 * bits if config.fault == "bytes" else 0)
        for name, value in (
            (MEMORY, memory),
            (ENERGY, lookup.energy(config.size, config.size, bits, config.terms, memory)),
            (ENERGY_INTEGERS, lookup.multiplied_energy(config.size, config.size, memory)),
            (ENERGY_FLOATS, lookup.multiplied_energy(config.size, config.size, 16)),
        ):
            live.emit(Level(clock.now(), lane, name, value))
        packed = pack(round_to_nearest(weight_NK, f"int{bits}", 128))
        ways: dict[str, Callable[[], Tensor]] = {
            LOOKUP: partial(lookup.binary_matmul, x_MK, given, shifts, turns),
            PACKED: partial(OPERATOR, x_MK=x_MK, weight=packed),
        }
        if config.fault == "multiplied":
            ways[LOOKUP] = partial(lookup.scaled_matmul, x_MK, given, ours.scales())
        for call in ways.values():
            call()
        work = OPERATOR.work({"x_MK": x_MK, "weight": packed})
        for round_ in range(config.repeats):
            for way in list(ways)[:: -1 if round_ % 2 else 1]:
                start, begun = clock.now(), time.perf_counter()
                ways[way]()
                seconds = time.perf_counter() - begun
                said = tag(phase="decode", dtype="float32", variant=way,
                           shape=f"1x{config.size}x{config.size}")  # fmt: skip
                live.emit(Span(start + seconds, f"{way}, {lane}", "product", start, work.flops,
                               work.bytes["memory"], said))  # fmt: skip
    kernel = lookup.scaled_sums if config.fault == "multiplied" else lookup.binary_sums
    live.emit(Level(clock.now(), LOOKUP, MULTIPLIED, lookup.multiplications(kernel)))
