"""The driver of 8-bit floats beside integers: tensors, a model's layers, training, gates, time."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.events import Level, Span
from engine.core.plot import BOUND, Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.quantised import OPERATOR
from engine.kernels.quantised.cases import made
from engine.kernels.quantised.formats import Format, format_of
from engine.kernels.quantised.weight import even, rounded, scale_of, through
from engine.training.quantisation.eight_bits_config import EightBitsConfig
from engine.training.quantisation.mac_gates import dearer, integer_mac
from engine.training.quantisation.rounded_model import RoundedModel, decibels

INTEGER = "int8"
FLOATS = ("e2m5", "e3m4", "e4m3", "e5m2")
NAMES = (INTEGER, *FLOATS)
RATES = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
FEWEST = 1e-5  # where a rate of nought stands on a logarithmic axis
SIGNAL = "signal over error (dB)"
TENSORS = Plot("tensors with outliers", "outliers of all numbers", SIGNAL, log_x=True, zero=False)
UNIFORM = "uniform"
LAYERS = Plot("outputs of the model's layers", "linear layer", SIGNAL, zero=False)
TAILS = Plot("tails of what goes in", "linear layer", "kurtosis of inputs", log_y=True)
LOSS = Plot("loss of the model", "window", "loss (nats a token)", zero=False)
TRAINED = Plot("layers trained to be rounded, on other text", "step", SIGNAL, zero=False)
GATES = Plot("gates of a multiply-accumulate", "exponent bits", "gates over an integer's (×)")
PLOTS = (TENSORS, LAYERS, LOSS, TAILS, TRAINED, GATES)
FLOAT32 = f"float32{BOUND}"
TRAINED_LAYER = "layers.2."  # whose linear layers are trained, each by itself
EVERY = 64  # channels, of which the first may stand out
SEEN = 0.75  # of the text, that they are trained on; the rest judges them


def run(config: EightBitsConfig, live: Live) -> None:
    """Signal over error as curves, losses by window, gates and times as levels and spans."""
    clock = WallClock()
    live.open(
        config,
        clock,
        plots=PLOTS,
        question="Which eight bits err less, and what do they cost?",
        roofs=known_roofs(),
    )
    study = _Study(config, live, clock)
    study.tensors()
    study.gates()
    study.model()
    study.timed()


class _Study:
    """One config, and the way numbers are rounded under it."""

    def __init__(self, config: EightBitsConfig, live: Live, clock: WallClock) -> None:
        self.config, self.live, self.clock = config, live, clock

    def held(self, x: Tensor, name: str, dim: int | None = None) -> Tensor:
        """x as the format holds it, with a scale for all or by row."""
        of = self.format(name)
        scale = scale_of(x, of, dim, self.config.best)
        by = even if self.config.evenly and of.is_float else rounded
        return by(x / scale, of) * scale

    def format(self, name: str) -> Format:
        return format_of("int4" if self.config.coarse and name == INTEGER else name)

    def curve(self, plot: Plot, series: str, points: Any) -> None:
        self.live.curve(self.clock.now(), plot, series, points)

    def level(self, lane: str, name: str, value: float) -> None:
        self.live.emit(Level(self.clock.now(), lane, name, value))

    def tensors(self) -> None:
        """Normal numbers of which some are outliers, and uniform ones; the same for all formats."""
        c = self.config
        found = {name: np.zeros((len(RATES) + 1, c.draws)) for name in NAMES}
        for number in range(c.draws):
            self.live.poll(self.clock.now())
            draw = torch.Generator().manual_seed(c.seed * 1000 + number)
            x = torch.randn(c.numbers, generator=draw)
            chance = torch.rand(c.numbers, generator=draw)
            given = [torch.where(chance < rate, x * c.outlier, x) for rate in RATES]
            given.append(chance - 0.5)
            for name in NAMES:
                for at, tensor in enumerate(given):
                    found[name][at, number] = decibels(tensor, self.held(tensor, name))
        x_axis = np.maximum(RATES, FEWEST)
        for name, values in found.items():
            mean, half = values.mean(1), 1.96 * values.std(1, ddof=1) / np.sqrt(c.draws)
            lines = [x_axis, mean[:-1], (mean - half)[:-1], (mean + half)[:-1]]
            self.curve(TENSORS, name, np.stack(lines))
            self.live.keep(self.clock.now(), f"draws/{name}", values)
            self.level(name, f"{UNIFORM}: {SIGNAL}", float(mean[-1]))

    def model(self) -> None:
        """Losses by window and each layer's error, weights by row, activations by tensor."""
        model = RoundedModel(self.config.model, self.config.windows, self.config.length)
        weights = model.weights
        plain: dict[str, list[Tensor]] = {}

        def watch(name: str, x: Tensor, weight: Tensor) -> Tensor:
            plain.setdefault(name, []).append(x.reshape(-1, x.shape[-1]))
            return F.linear(x, weight)

        losses = {FLOAT32: model.losses(watch)}
        rows = {name: self._rows(weights, name) for name in NAMES}
        for number, name in enumerate(NAMES):
            self.live.report("formats", number, len(NAMES))
            self.live.poll(self.clock.now())
            losses[name] = model.losses(partial(self._rounded, rows[name], name))
        for name, line in losses.items():
            self.curve(LOSS, name, list(enumerate(line)))
            self.level(name, "loss (nats a token)", float(np.mean(line)))
            self.level(name, "perplexity", float(np.exp(np.mean(line))))
        inputs = {name: torch.cat(seen) for name, seen in plain.items()}
        self._layers(weights, rows, inputs)
        self._train(weights, inputs)

    def _rows(self, weights: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
        linears = {n: w for n, w in weights.items() if "proj" in n}
        return {n: self.held(w, name, 1) for n, w in linears.items()}

    def _rounded(
        self, rows: dict[str, Tensor], name: str, layer: str, x: Tensor, weight: Tensor
    ) -> Tensor:
        return F.linear(self.fed(x, name), rows[layer])

    def fed(self, x: Tensor, name: str) -> Tensor:
        """What a layer is fed with as the format holds it, its outlier channels at their size."""
        times = torch.ones(x.shape[-1])
        times[::EVERY] = self.config.channels
        return self.held(x * times, name) / times

    def _layers(
        self, weights: dict[str, Tensor], rows: dict[str, dict[str, Tensor]],
        inputs: dict[str, Tensor],
    ) -> None:  # fmt: skip
        """Each layer by itself, fed with what the float32 model feeds it."""
        lines: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
        tails = []
        for at, (layer, x) in enumerate(inputs.items()):
            truth = F.linear(x, weights[layer])
            for name, held in rows.items():
                ours = F.linear(self.fed(x, name), held[layer])
                lines[name].append((at, decibels(truth, ours)))
            tails.append((at, float(x.square().square().mean() / x.square().mean() ** 2)))
        for name, line in lines.items():
            self.curve(LAYERS, name, line)
        self.curve(TAILS, "inputs", tails)

    def _train(self, weights: dict[str, Tensor], inputs: dict[str, Tensor]) -> None:
        """Each linear layer of one block, trained through its own rounding, judged on the text that
        it was not trained on."""
        lines: dict[str, list[list[float]]] = {}
        layers = [name for name in inputs if TRAINED_LAYER in name]
        for name in (INTEGER, "e4m3"):
            of = self.format(name)
            for layer in layers:
                self.live.poll(self.clock.now())
                seen, other = inputs[layer].tensor_split([int(SEEN * len(inputs[layer]))])
                ways = (of, self.config.steps, self.config.rate)
                line = trained(seen, other, weights[layer], *ways)
                lines.setdefault(name, []).append(line)
        for name, found in lines.items():
            self.curve(TRAINED, name, list(enumerate(np.mean(found, axis=0))))
            self.live.keep(self.clock.now(), f"trained/{name}", np.array(found))

    def gates(self) -> None:
        """What a unit of each float costs beside the integer's."""
        integer = format_of(INTEGER)
        lines: dict[str, list[tuple[float, float]]] = {}
        for name in FLOATS:
            of = format_of(name)
            for way, more in dearer(of, integer, not self.config.free).items():
                lines.setdefault(way, []).append((of.exponent, 1 + more))
                self.level(name, f"gates over int8's, {way}", 1 + more)
        for way, line in lines.items():
            self.live.curve(self.clock.now(), GATES, way, line, modelled=True)
        self.level(INTEGER, "gates (modelled)", integer_mac(integer))

    def timed(self) -> None:
        """One token through one layer, its weight in codes of both kinds, in turns."""
        size = self.config.rows
        names = (INTEGER, "e4m3")
        given = {n: made(1, size, size, n, 128, False, 0, torch.float32) for n in names}
        for one in given.values():
            OPERATOR(**one)
        for round_ in range(self.config.repeats):
            for name in names[:: -1 if round_ % 2 else 1]:
                start, begun = self.clock.now(), time.perf_counter()
                OPERATOR(**given[name])
                seconds = time.perf_counter() - begun
                work = OPERATOR.work(given[name])
                said = tag(phase="decode", dtype="float32", shape=f"1x{size}x{size}", variant=name)
                moved = work.bytes["memory"]
                self.live.emit(
                    Span(start + seconds, name, "product", start, work.flops, moved, said)
                )


def trained(
    seen_MK: Tensor, other_LK: Tensor, weight_NK: Tensor, of: Format, steps: int, rate: float
) -> list[float]:
    """Signal over error of the layer's output for inputs that it is not trained on, by step: Adam
    on the weight, its rate falling to nought, rounded by row as it is used; so are the inputs."""
    given = [(rounded(x / scale_of(x, of), of) * scale_of(x, of), F.linear(x, weight_NK))
             for x in (seen_MK, other_LK)]  # fmt: skip
    (held_MK, truth_MN), (judged_LK, wanted_LN) = given
    scale = scale_of(weight_NK, of, 1)
    leaf = weight_NK.clone().requires_grad_()
    step = float((scale * of.largest / 2 ** (of.bits - 1)).mean())
    adam = torch.optim.Adam([leaf], lr=rate * step)
    found = []
    for done in range(steps + 1):
        adam.param_groups[0]["lr"] = rate * step * (1 - done / (steps + 1))
        used_NK = through(leaf, of, scale)
        found.append(decibels(wanted_LN, F.linear(judged_LK, used_NK.detach())))
        adam.zero_grad()
        (F.linear(held_MK, used_NK) - truth_MN).square().mean().backward()
        adam.step()
    return found
