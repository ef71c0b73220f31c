"""A training step's time, part by part: passes of the stages, traffic beside them, bubble, update.

Takes a described run and constants. Each layer's passes come from `work`; gathers and scatters of
sharded parameters run beside them, layer by layer; the pipeline's order is played by its own
schedule (`engine.training.plan`). Everything is modelled, nothing measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.hardware.cost.constants import Constants, of_device
from engine.training.plan.actions import Kind
from engine.training.plan.columns import CODES
from engine.training.plan.schedule import Pipe
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.times import Costs, timed
from engine.training.step_time.bench import (
    COLLECTIVES,
    EXPERTS,
    HALF,
    PRODUCTS,
    WORK,
    Bench,
    Passes,
    beside,
)
from engine.training.step_time.constants import StepConstants, step_constants
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.host import Host
from engine.training.step_time.layer import Layer, model_flops, outer_parameters
from engine.training.step_time.memory import Memory, memory
from engine.training.step_time.stages import stages
from engine.training.step_time.work import outer, passes

PARTS = (*WORK, "host", "update", "bubble")
HOST = len(WORK)
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Step:
    """One step. `parts`: seconds by `PARTS` of the busiest pipeline rank, that sum to `seconds`;
    `collectives` among them are those that stand in the way, `hidden` those beside passes."""

    run: TrainingRun
    seconds: float
    parts: Mapping[str, float]
    hidden: float
    memory: Memory
    flops: float

    @property
    def tokens(self) -> int:
        return self.run.batch * self.run.recipe.sequence

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    @property
    def of_peak(self) -> float:
        """Model flops utilisation: without what is computed again, attention not halved."""
        dtype = "float8" if self.run.recipe.dtype == "float8" else "bfloat16"
        peaks = self.run.cluster.sheet().peaks
        peak = peaks.get(dtype) or peaks["float16"]
        return self.flops / self.seconds / self.run.cluster.devices / peak


@dataclass(frozen=True)
class Stage:
    """Seconds of one stage's passes over a microbatch, by `WORK` and host; what runs beside."""

    forward: np.ndarray
    backward: np.ndarray
    hidden: float


class Prepared:
    """A run with its layers' passes worked out, from which steps are put together.

    `scale` of a step: factors on seconds by part, as when a bound is lifted. `play`: whether the
    pipeline's schedule is played, else a closed form tells its bubble.
    """

    def __init__(
        self, run: TrainingRun, found: Constants | None = None, step: StepConstants | None = None,
        play: bool = True,
    ) -> None:  # fmt: skip
        self.run, self.config = run, run.config()
        self.step = step or step_constants()
        self.found = (found or of_device(run.cluster.device)).cold()
        self.bench = Bench.of(run, self.found, self.step)
        self.stages = stages(run)
        every = dict.fromkeys(layer for stage in self.stages for layer in stage)
        self.passes = {layer: passes(self.bench, layer) for layer in every}
        self.hosts = {layer: Host.of(run, layer, self.step) for layer in every}
        self.embed, self.head = outer(self.bench, self.config.vocab, self.config.hidden)
        self.gathers = {layer: self._traffic(layer) for layer in self.passes}
        self.microbatches = run.microbatches
        self._fill = None if play else 1.0  # of the schedule, over what its closed form says

    def at(self, scale: Mapping[str, float] | None = None) -> tuple[float, dict[str, float], float]:
        """(seconds, parts, hidden collectives) of a step."""
        factors = np.array([(scale or {}).get(part, 1.0) for part in PARTS])
        each = [self._stage(n, factors) for n in range(len(self.stages))]
        ranks, busiest = self.run.split.pipeline, self._busiest(each)
        mine = each[busiest::ranks]
        parts = self.microbatches * sum((s.forward + s.backward for s in mine), np.zeros(HOST + 1))
        hidden = self.microbatches * sum(s.hidden for s in mine)
        bubble = self._bubble(each, float(parts.sum())) * factors[-1] if ranks > 1 else 0.0
        backward = sum(float(s.backward.sum()) for s in mine)
        exposed, beside = self._ends(busiest, backward, factors)
        parts[COLLECTIVES] += exposed
        told = dict(zip(PARTS, (*parts.tolist(), self._update(busiest) * factors[-2], bubble),
                        strict=True))  # fmt: skip
        return float(sum(told.values())), told, float(hidden + beside)

    def whole(self) -> Step:
        """The step itself."""
        seconds, parts, hidden = self.at()
        flops = model_flops(self.config, self.run.recipe.sequence,
                            self.run.batch * self.run.recipe.sequence)  # fmt: skip
        return Step(self.run, seconds, parts, hidden, memory(self.run), flops)

    def by_stage(self) -> tuple[np.ndarray, float, float]:
        """([F, I, W; stages] seconds of a microbatch's passes, and of the busiest rank at the end
        of a step: the gradients' sum that stands in the way, the update).

        W is what waits for nobody: the products of the weights' gradients, half of a backward's.
        """
        factors = np.ones(len(PARTS))
        each = [self._stage(n, factors) for n in range(len(self.stages))]
        busiest = self._busiest(each)
        weights = [
            sum(float(self.passes[layer].backward[[PRODUCTS, EXPERTS]].sum()) / 2 for layer in mine)
            for mine in self.stages
        ]
        forward = [float(stage.forward.sum()) for stage in each]
        back = [float(stage.backward.sum()) - w for stage, w in zip(each, weights, strict=True)]
        mine = each[busiest :: self.run.split.pipeline]
        exposed, _ = self._ends(busiest, sum(float(s.backward.sum()) for s in mine), factors)
        return np.array([forward, back, weights]), exposed, self._update(busiest)

    def _busiest(self, stages: list[Stage]) -> int:
        """The pipeline rank whose passes take longest."""
        ranks = self.run.split.pipeline
        return int(np.argmax([
            sum(s.forward.sum() + s.backward.sum() for s in stages[r::ranks]) for r in range(ranks)
        ]))  # fmt: skip

    def _stage(self, place: int, factors: np.ndarray) -> Stage:
        forward, backward, hidden = np.zeros(HOST + 1), np.zeros(HOST + 1), 0.0
        for layer in self.stages[place]:
            told = self.passes[layer]
            gather, scatter = (x * factors[COLLECTIVES] for x in self.gathers[layer])
            hidden += told.hidden
            ahead, back = told.forward * factors[:HOST], told.again + told.backward
            back = back * factors[:HOST]
            host, scale = self.hosts[layer], float(factors[HOST])
            waited = host.forward(scale, float(ahead.sum()), float(ahead[EXPERTS]))
            for taken, seconds, traffic, launch in (
                (forward, ahead, gather, waited),
                (backward, back, gather + scatter, host.backward(scale, float(back.sum()))),
            ):
                shown = self._beside(float(seconds.sum()) + launch, traffic)
                taken[:HOST] += seconds
                taken[HOST] += launch
                taken[COLLECTIVES] += shown
                hidden += max(0.0, traffic - shown)
        self._outer(place, factors, forward, backward)
        if self.run.split.pipeline > 1:
            for taken in (forward, backward):
                taken[COLLECTIVES] += self.sent() * factors[COLLECTIVES]
        return Stage(forward, backward, hidden)

    def _outer(
        self, place: int, factors: np.ndarray, forward: np.ndarray, backward: np.ndarray
    ) -> None:
        """Add the embedding's passes and the head's where they are, and what a first gather and a
        last scatter have to wait for."""
        ends: list[Passes] = [self.embed] if place == 0 else []
        ends += [self.head] if place == len(self.stages) - 1 else []
        for each in ends:
            forward[:HOST] += each.forward * factors[:HOST]
            backward[:HOST] += each.backward * factors[:HOST]
        if place == 0 and self.stages[0]:
            gather, scatter = self.gathers[self.stages[0][0]]
            forward[COLLECTIVES] += gather * factors[COLLECTIVES]
            backward[COLLECTIVES] += scatter * factors[COLLECTIVES]

    def _beside(self, busy: float, traffic: float) -> float:
        """How much longer passes take with traffic beside them, or all of it in their way."""
        if not self.run.recipe.overlap:
            return traffic
        return beside(self.step.overlap, busy, traffic)

    def _traffic(self, layer: Layer) -> tuple[float, float]:
        """(gather, scatter) of a layer's parameters and gradients, where they are sharded."""
        split, run = self.run.split, self.run
        if split.shard != "parameters":
            return 0.0, 0.0
        grads = BYTES[run.recipe.gradients]
        wires, gather, scatter = self.bench.wires, 0.0, 0.0
        for numbers, parts in ((layer.parameters - layer.inside, 1),
                               (layer.inside, split.expert)):  # fmt: skip
            ranks, apart = max(1, run.sharing // parts), split.tensor * parts
            gather += wires.seconds("all_gather", ranks, apart, HALF * numbers)
            scatter += wires.seconds("reduce_scatter", ranks, apart, grads * numbers)
        return gather, scatter

    def sent(self) -> float:
        """Seconds of a boundary's tensor to the next stage: each tensor rank sends its part, then
        the node gathers it where norms are not split (arXiv 2104.04473, section 4.1)."""
        split, wires = self.run.split, self.bench.wires
        size = HALF * self.bench.tokens * self.config.hidden
        apart = split.tensor * split.context * self.run.replicas
        found = wires.message(apart, size / split.tensor)
        if split.tensor > 1 and not split.sequence_parallel:
            found += wires.seconds("all_gather", split.tensor, 1, size)
        return found

    def _numbers(self, rank: int) -> float:
        """Parameters on a device of a pipeline rank."""
        ranks = self.run.split.pipeline
        found = float(sum(layer.parameters for s in self.stages[rank::ranks] for layer in s))
        embedding, head = outer_parameters(self.config)
        outer = (embedding if rank == 0 else 0) + (head if rank == ranks - 1 else 0)
        return found + outer / self.run.split.tensor

    def _ends(self, rank: int, backward: float, factors: np.ndarray) -> tuple[float, float]:
        """(in the way, hidden) of gradients' sum at the end of a step, beside the last backward."""
        split, run, wires = self.run.split, self.run, self.bench.wires
        owners = run.replicas * split.context
        if owners == 1:
            return 0.0, 0.0
        size = BYTES[run.recipe.gradients] * self._numbers(rank)
        ranks = run.sharing
        if split.shard == "parameters":
            groups = owners // ranks
            total = wires.seconds("all_reduce", groups, split.tensor * ranks, size / ranks)
            outer = sum(outer_parameters(self.config)) / split.tensor
            total += wires.seconds("reduce_scatter", ranks, split.tensor, HALF * outer)
        else:
            total = 0.0
            # Experts' numbers are summed among fewer, which stand further apart.
            inside = float(sum(x.inside for s in self.stages[rank :: split.pipeline] for x in s))
            for numbers, parts in ((self._numbers(rank) - inside, 1), (inside, split.expert)):
                ranks, apart = max(1, owners // parts), split.tensor * parts
                size = BYTES[run.recipe.gradients] * numbers
                if split.shard == "none":
                    total += wires.seconds("all_reduce", ranks, apart, size)
                else:
                    total += wires.seconds("reduce_scatter", ranks, apart, size)
                    total += wires.seconds("all_gather", ranks, apart, HALF * numbers)
        total *= float(factors[COLLECTIVES])
        shown = self._beside(backward, total)
        return shown, max(0.0, total - shown)

    def _update(self, rank: int) -> float:
        owners = self.run.sharing if self.run.split.shard != "none" else 1
        moved = self.step.update * self._numbers(rank) / owners
        return moved / (self.bench.device.bandwidth * self.step.rows)

    def _bubble(self, stages: list[Stage], busy: float) -> float:
        """Seconds the busiest rank waits for others, as the schedule's plan says; of other pass
        times, as much longer as filling and draining are."""
        ranks, chunks = self.run.split.pipeline, self.run.split.chunks
        passes = sum(float(s.forward.sum() + s.backward.sum()) for s in stages)
        fill = (ranks - 1) / ranks * passes / chunks  # a closed form to scale by
        if self._fill is None:
            schedule = Interleaved(chunks=chunks) if chunks > 1 else OneForwardOneBackward()
            plan = schedule.plan(Pipe(ranks, self.microbatches))
            took = np.zeros((len(CODES), plan.stages))
            took[CODES[Kind.F]] = [s.forward.sum() for s in stages]
            took[CODES[Kind.B]] = [s.backward.sum() for s in stages]
            times = timed(plan, Costs(took, np.zeros((ranks, ranks))))
            self._fill = (times.end - busy) / fill
        return self._fill * fill


def step(run: TrainingRun) -> Step:
    """The step of a described run by the shipped constants. Raises BadInput."""
    return Prepared(run).whole()
