"""The driver of a study of gated linear attention: forms compared, timed, and seen in parts."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.events import Mark, Span
from engine.core.interleaved import Interleaved, Measured, measure
from engine.core.memory import require
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.attention import OPERATOR as ATTENTION
from engine.kernels.linear_attention import (
    ablated,
    chunkwise_cpu,
    parallel_cpu,
    recurrent_cpu,
    reference,
    work,
)
from engine.kernels.linear_attention.config import GatedLinearConfig
from engine.kernels.linear_attention.segments import Segments
from engine.kernels.operator import Arguments

TIMES = Plot("time of one pass", "length (tokens)", "time (s)", log_x=True, log_y=True)
AHEAD = Plot(
    "softmax over gated linear", "length (tokens)", "times as fast (×)", log_x=True, log_y=True
)
SOFTMAX = "softmax attention"
AGREE = 96  # tokens that forms are held to the reference at
STATE_LANE = "state"
SHORT, MOST = 8192, 2  # shorter lengths are measured more often, up to so many times
INPUTS = ("q_BHTK", "k_BHTK", "v_BHTV", "log_gate_BHTK", "state_BHKV")
LONGEST_PARALLEL = 2048  # tokens beyond which the quadratic form is timed only if asked for
Call = Callable[[Arguments], tuple[Tensor, Tensor]]


def calls(config: GatedLinearConfig) -> dict[str, Call]:
    """Every form by name."""
    cut: dict[str, Any] = {"chunk": config.chunk, "sub_chunk": config.sub_chunk}
    return {
        "chunkwise": lambda given: chunkwise_cpu.gated_linear_attention(**given, **cut),
        "recurrent": lambda given: recurrent_cpu.gated_linear_attention(**given),
        "parallel": lambda given: parallel_cpu.gated_linear_attention(**given),
        "restarted": lambda given: ablated.restarted(**given, **cut),
        "unsplit": lambda given: ablated.unsplit(**given, chunk=config.chunk),
    }


def arguments(config: GatedLinearConfig, time: int) -> Arguments:
    """Random inputs of `time` tokens; gates spread around the half-life asked for."""
    draw = torch.Generator().manual_seed(config.seed)
    q, k, spread = (torch.randn(1, config.heads, time, config.key, generator=draw) for _ in "qkg")
    gate = -np.log(2.0) / config.half_life * (spread / 2).exp()
    return {
        "q_BHTK": q,
        "k_BHTK": k,
        "v_BHTV": torch.randn(1, config.heads, time, config.value, generator=draw),
        "log_gate_BHTK": gate,
        "state_BHKV": torch.zeros(1, config.heads, config.key, config.value),
        "scale": config.key**-0.5,
    }


def softmax(given: Arguments) -> Arguments:
    """The same queries, keys and values as softmax attention of one sequence takes them."""
    q_THD, k_SGD, v_SGE = (given[name][0].transpose(0, 1).contiguous() for name in INPUTS[:3])
    start_B1 = torch.tensor([0, len(q_THD)])
    return {"q_THD": q_THD, "k_SGD": k_SGD, "v_SGE": v_SGE, "query_start_B1": start_B1,
            "key_start_B1": start_B1, "scale": given["scale"]}  # fmt: skip


def run(config: GatedLinearConfig, live: Live) -> None:
    """Errors as levels, times as spans and curves, one pass by segments as lanes."""
    workers = [f"worker {n}" for n in range(config.workers)]
    numbers = config.heads * config.longest * (3 * config.key + 2 * config.value)
    require(3 * 4 * numbers, f"{config.longest:,} tokens", "take fewer tokens or heads")
    live.open(
        config, WallClock(), plots=[TIMES, AHEAD],
        question="From which length on is it faster than softmax?", lanes=[*workers, STATE_LANE],
        roofs=known_roofs(),
    )  # fmt: skip
    study = _Study(config, live)
    study.agree()
    study.by_segments()
    study.sweep()


class _Study:
    """The forms of one config."""

    def __init__(self, config: GatedLinearConfig, live: Live) -> None:
        self.config, self.live, self.clock = config, live, WallClock()
        self.calls = calls(config)

    def agree(self) -> None:
        """Largest relative error of each form and its gradients, from the float64 recurrence."""
        given = arguments(self.config, AGREE)
        wide = {n: v.double() if torch.is_tensor(v) else v for n, v in given.items()}
        truth = _with_gradients(lambda a: reference.gated_linear_attention(**a), wide)
        for name in dict.fromkeys(("recurrent", "parallel", self.config.form)):
            found = _with_gradients(self.calls[name], given)
            for what, part in (("output", slice(0, 2)), ("gradient", slice(2, None))):
                self.live.error(self.clock.now(), name, found[part], truth[part], f"{what} error")

    def by_segments(self) -> None:
        """One pass over the longest sequence by workers, and how far it is from the plain one."""
        config = self.config
        given = arguments(config, min(config.longest, 8192))
        whole, _ = self.calls["chunkwise"](given)
        segments = Segments(config.workers, self.clock.now, config.chunk, config.sub_chunk)
        try:
            segments.run(given, config.segments, config.pass_state)
            segments.tasks.clear()
            found, _ = segments.run(given, config.segments, config.pass_state)
        finally:
            segments.close()
        for task in sorted(segments.tasks, key=lambda task: task.stop):
            said = tag(task=task.segment, dtype="float32")
            self.live.emit(Span(task.stop, task.lane, task.stage, task.start, tag=said))
        self.live.error(self.clock.now(), "segments", found, whole, "output error")

    def sweep(self) -> None:
        """The form under test, its fellows and softmax attention over lengths, in turns.

        Softmax attention is the variant that models here call: the fastest of this machine.
        """
        config = self.config
        lengths = [config.shortest]
        while lengths[-1] * 2 <= config.longest:
            lengths.append(lengths[-1] * 2)
        over_lengths = Interleaved(
            "timing lengths",
            lengths,
            self.at,
            {TIMES: _quartiles, AHEAD: _ahead},
            rounds=lambda time: config.rounds * max(1, min(MOST, SHORT // time)),
            enough=lambda _, found: min(found[config.form]) > config.patience,
            bounds={AHEAD: {"even": lambda _: 1.0}},
        )
        self.say(measure(over_lengths, self.clock, self.live))

    def at(self, time: int) -> dict[str, Callable[[], float]]:
        """Each form's pass over so many tokens, its first, which only warms up, over."""
        given = arguments(self.config, time)
        named: dict[str, Callable[[], object]] = {
            name: partial(call, given) for name, call in self.calls.items()
        }
        named[SOFTMAX] = partial(ATTENTION, **softmax(given))
        names = dict.fromkeys((self.config.form, "recurrent", "chunkwise", SOFTMAX, "parallel"))
        if time > LONGEST_PARALLEL and self.config.form != "parallel":
            names.pop("parallel")
        for name in names:
            self.live.poll(self.clock.now())
            named[name]()
        return {name: partial(self.time, name, named[name], time) for name in names}

    def time(self, name: str, call: Callable[[], object], time: int) -> float:
        """The seconds of one pass of one form, told as a span."""
        start = self.clock.now()
        call()
        stop = self.clock.now()
        shape = (self.config.heads, time, self.config.key, self.config.value)
        flops, moved = _work(name, shape, self.config.chunk)
        label = tag(phase="prefill", dtype="float32", shape="x".join(map(str, shape)), variant=name)
        lane = "attention" if name == SOFTMAX else "linear_attention"
        self.live.emit(Span(stop, lane, name, start, flops=flops, bytes=moved, tag=label))
        return stop - start

    def say(self, measured: dict[int, Measured]) -> None:
        """The measured crossover in a sentence."""
        form = self.config.form
        ahead = crossover(
            {time: median(found[SOFTMAX]) / median(found[form]) for time, found in measured.items()}
        )
        where = f"from {ahead} tokens on" if ahead else f"nowhere up to {max(measured)} tokens"
        text = f"{form} is faster than softmax attention {where}"
        self.live.emit(Mark(self.clock.now(), "linear_attention", "crossover", text))


def _quartiles(time: int, name: str, found: Measured) -> list[float]:
    """The median of a form's seconds, and the quartiles around it."""
    return [float(each) for each in np.quantile(found[name], (0.5, 0.25, 0.75))]


def _ahead(time: int, name: str, found: Measured) -> list[float] | None:
    """How many times as fast as softmax attention a form is."""
    return None if name == SOFTMAX else [median(found[SOFTMAX]) / median(found[name])]


def crossover(ratios: dict[int, float]) -> int:
    """The shortest length from which on every ratio is above 1; 0 where the longest is not."""
    found = 0
    for time in sorted(ratios, reverse=True):
        if ratios[time] <= 1.0:
            break
        found = time
    return found


def _with_gradients(call: Call, given: Arguments) -> list[Tensor]:
    """Outputs, last state, then the gradient of their sums for every input."""
    leaves = {name: given[name].detach().requires_grad_() for name in INPUTS}
    o, last = call({**given, **leaves})
    sent = o.cos().sum() + last.sin().sum()
    return [o.detach(), last.detach(), *torch.autograd.grad(sent, list(leaves.values()))]


def _work(name: str, shape: tuple[int, int, int, int], chunk: int) -> tuple[int, int]:
    """Flops and compulsory bytes of one pass."""
    heads, time, key, value = shape
    if name == SOFTMAX:
        return work.softmax_flops(*shape), heads * time * 4 * (2 * key + 2 * value)
    if name == "recurrent":
        return work.recurrent_flops(*shape), work.bytes(*shape)
    if name == "parallel":
        return work.parallel_flops(*shape), work.bytes(*shape)
    return work.chunkwise_flops(*shape, chunk), work.bytes(*shape)
