"""The driver of a study of local linear attention: solver, memory, and regression tasks."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.events import Level, Mark, Span
from engine.core.plot import BOUND, Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.local_linear_attention import blocks_cpu, reference, rows_cpu, work
from engine.kernels.local_linear_attention.allocated import peak_bytes
from engine.kernels.local_linear_attention.cases import made
from engine.kernels.local_linear_attention.config import LocalLinearConfig
from engine.kernels.local_linear_attention.regression import (
    Estimate,
    Tasks,
    best,
    fading,
    least_squares,
    softmax,
    tasks,
)
from engine.kernels.local_linear_attention.tiles import Solver
from engine.kernels.operator import Arguments

BY_POSITION = Plot("error by position", "pairs seen", "mean squared error", log_y=True)
BY_TASK = Plot("error of each task", "task", "mean squared error", log_y=True)
RESIDUAL = Plot("residual of the solver", "step", "residual (relative)", log_y=True)
MEMORY = Plot("most bytes alive", "head width", "memory (bytes)", log_x=True, log_y=True)
PLOTS = (BY_POSITION, BY_TASK, RESIDUAL, MEMORY)
ASKED = "Does the solver settle, and do targets that move stay known?"
LOCAL, SOFTMAX, GLOBAL = "local linear", "softmax", "linear (least squares)"
FADING = "linear that forgets"
FORMED = f"matrices of all queries{BOUND}"
SCALES = (1.0, 4.0, 16.0, 64.0)  # bandwidths that kernels choose from
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)  # that the global regression chooses from
KEPT = (0.8, 0.9, 0.95, 0.98)  # of a pair's weight each step, that the forgetting one chooses from
SHAPE = (1, 2, 192, 32, 32)  # batch, heads, tokens, key and value width of the solver's problem
TOKENS = 512  # of the sequence that memory is measured on
NARROWEST = 8
INPUTS = ("q_BHTD", "k_BHTD", "v_BHTE")


def run(config: LocalLinearConfig, live: Live) -> None:
    """Errors, residuals and memory as curves and levels; each attention a span."""
    live.open(config, WallClock(), plots=PLOTS, roofs=known_roofs(), question=ASKED)
    study = _Study(config, live)
    study.converge()
    study.weigh()
    study.regress()


class _Study:
    """One config, its clock and its solver."""

    def __init__(self, config: LocalLinearConfig, live: Live) -> None:
        self.config, self.live, self.clock = config, live, WallClock()
        self.residuals: list[Tensor] = []

    def attend(self, given: Arguments, watched: bool = False) -> Tensor:
        """Local linear attention by the solver asked for."""
        config = self.config
        if config.solver == "formed":
            return _formed(given)
        note = self.residuals.append if watched else None
        solver = Solver(config.iterations, config.tolerance, note)
        return blocks_cpu.local_linear_attention(**given, solver=solver, queries=config.queries)

    def converge(self) -> None:
        """One problem against the truth in float64, gradients too; residuals step by step."""
        given = made(*SHAPE, SHAPE[3] ** -0.5, self.config.ridge, self.config.seed, torch.float32)
        wide = {n: v.double() if torch.is_tensor(v) else v for n, v in given.items()}
        start = self.clock.now()
        ours = self.derived(given)
        self.span(given, start, len(self.residuals) // -(-SHAPE[2] // self.config.queries))
        true = _derived(reference.local_linear_attention, wide)
        for name, found, truth in zip(("output", *INPUTS), ours, true, strict=True):
            what = "output error" if name == "output" else f"gradient error of {name[0]}"
            self.live.error(self.clock.now(), self.config.solver, found, truth, what)
        if self.residuals:
            last = self.residuals[-self.last_tile() :]
            steps = np.arange(len(last), dtype=float)
            for name, of in (("median query", np.median), ("slowest query", np.max)):
                points = np.array([max(float(of(r.numpy())), 1e-12) for r in last])
                self.draw(RESIDUAL, name, steps, points)
            asked = np.full(len(steps), self.config.tolerance)
            self.draw(RESIDUAL, f"asked for{BOUND}", steps, asked)

    def last_tile(self) -> int:
        """How many of the newest residuals belong to the newest tile: its first is 1."""
        for back, residual in enumerate(reversed(self.residuals), 1):
            if float(residual.min()) > 1.0 - 1e-6:
                return back
        return len(self.residuals)

    def derived(self, given: Arguments) -> list[Tensor]:
        return _derived(lambda **a: self.attend(a, watched=True), given)

    def weigh(self) -> None:
        """The most bytes alive while attending, over head widths; and what formed matrices take."""
        widths, ours, naive, formed = [], [], [], []
        width = NARROWEST
        while width <= self.config.widest:
            given = made(1, 1, TOKENS, width, width, width**-0.5, 1.0, 0, torch.float32)
            inputs = [given[name] for name in INPUTS]
            start = self.clock.now()
            widths.append(float(width))
            ours.append(float(peak_bytes(partial(self.attend, given), inputs)))
            self.span(given, start, work.STEPS)
            naive.append(float(peak_bytes(partial(_formed, given), inputs)))
            formed.append(float(work.formed_bytes(1, TOKENS, width)))
            width *= 2
        x = np.array(widths)
        self.draw(MEMORY, self.config.solver, x, np.array(ours))
        self.draw(MEMORY, "naive", x, np.array(naive))
        self.draw(MEMORY, FORMED, x, np.array(formed))

    def regress(self) -> None:
        """Each estimator, its setting chosen on other tasks, on the tasks of this config."""
        c = self.config
        shape = (c.tasks, c.length, c.width, c.regimes, c.spread, c.noise)
        held_out, test = tasks(*shape, c.seed + 1), tasks(*shape, c.seed)
        choices: dict[str, dict[Any, Estimate]] = {
            LOCAL: {s: self.estimate(s) for s in SCALES},
            SOFTMAX: {s: softmax(s) for s in SCALES},
            GLOBAL: {r: least_squares(r) for r in RIDGES},
            FADING: {(r, kept): fading(r, kept) for r in RIDGES[1:] for kept in KEPT},
        }
        for number, (name, settings) in enumerate(choices.items()):
            self.live.report("estimators", number, len(choices))
            self.live.poll(self.clock.now())
            setting, estimate = best(settings, held_out)
            self.judge(name, setting, estimate, test)

    def estimate(self, scale: float) -> Estimate:
        def attend(q_NTD: Tensor, k_NTD: Tensor, v_NTD: Tensor) -> Tensor:
            asked_NTD = q_NTD.roll(1, 1) if self.config.stale else q_NTD
            q, k, v = (x.unsqueeze(1) for x in (asked_NTD, k_NTD, v_NTD))
            given: dict[str, Any] = dict(zip(INPUTS, (q, k, v), strict=True))
            told: dict[str, Any] = {**given, "scale": scale, "ridge": self.config.ridge}
            if self.config.solver == "formed":
                return _formed(told).squeeze(1)
            limits: dict[str, Any] = {
                "iterations": self.config.iterations,
                "tolerance": self.config.tolerance,
            }
            return rows_cpu.local_linear_attention(**told, **limits).squeeze(1)

        return attend

    def judge(self, name: str, setting: Any, estimate: Estimate, test: Tasks) -> None:
        """Errors of one estimator by task and by position, as curves and in a sentence."""
        found = test.errors(estimate(test.q_NTD, test.k_NTD, test.v_NTD)).double()
        by_task = found.mean(1).numpy()
        stretch = max(1, found.shape[1] // 64)
        parts = found[:, : found.shape[1] // stretch * stretch].unflatten(1, (-1, stretch))
        parts_NP = parts.mean(2).numpy()
        mean, half = _interval(parts_NP)
        x = (np.arange(parts_NP.shape[1]) + 0.5) * stretch
        self.draw(BY_POSITION, name, x, mean, np.maximum(mean - half, mean / 10), mean + half)
        self.draw(BY_TASK, name, np.arange(len(by_task), dtype=float), by_task)
        now = self.clock.now()
        self.live.emit(Level(now, name, "mean squared error", float(by_task.mean())))
        text = f"{name}: {by_task.mean():.4f} over {len(by_task)} tasks, setting {setting}"
        self.live.emit(Mark(now, name, "regression", text))

    def span(self, given: Arguments, start: float, steps: int) -> None:
        """The work of one attention that ended now."""
        batch, heads, time, key = given["q_BHTD"].shape
        shape = (batch * heads, time, key, given["v_BHTE"].shape[-1])
        if self.config.solver == "formed":
            flops, moved = work.formed_flops(*shape), work.formed_bytes(*shape[:3])
        else:
            flops = work.matrix_free_flops(*shape, steps)
            moved = work.bytes(*shape)
        said = tag(
            phase="prefill", dtype="float32", shape="x".join(map(str, shape)),
            variant=self.config.solver,
        )  # fmt: skip
        now = self.clock.now()
        lane = "local_linear_attention"
        self.live.emit(Span(now, lane, self.config.solver, start, flops, moved, said))

    def draw(self, plot: Plot, series: str, *rows: np.ndarray) -> None:
        """A curve: x, y and, where there is an interval, its low and high."""
        self.live.curve(self.clock.now(), plot, series, np.stack(rows))


def _formed(given: Arguments) -> Tensor:
    return reference.local_linear_attention(**given)


def _interval(values_NP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over tasks and half of its 95% interval (normal)."""
    error = values_NP.std(0, ddof=1) / np.sqrt(len(values_NP))
    return values_NP.mean(0), 1.96 * error


def _derived(call: Any, given: Arguments) -> list[Tensor]:
    """The output, then the gradient of a sum over it for every input."""
    leaves = {name: given[name].detach().requires_grad_() for name in INPUTS}
    o = call(**{**given, **leaves})
    return [o.detach(), *torch.autograd.grad(o.cos().sum(), list(leaves.values()))]
