"""Parallelism search: tensor, pipeline, context and data-parallel sizes for a cluster.

In come a GPT with the device it runs on, how many devices, and the batch; out come the splits that
fit in memory, the best of them played on the virtual clock, and their front of time and memory.
Matrix products have one efficiency whatever their size, so that small microbatches look better here
than they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from engine.cluster.gradient_sum import described, gradient_sum
from engine.cluster.pipeline_events import passes_of
from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.hardware.cluster import cluster
from engine.hardware.device import device
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.stage_cost import Share
from engine.training.pipeline.stage_costs.transformer import Transformer
from engine.training.pipeline.transformer_cost import step_flops
from engine.training.plan.actions import Kind
from engine.training.plan.columns import CODES
from engine.training.plan.memory import peaks
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.times import timed

RECOMPUTE = ("none", "selective", "full")
CONTEXTS = (1, 2, 4, 8, 16)
MICROBATCHES = (1, 2, 4, 8, 16)
CHUNKS = (1, 2, 4)
WORDS = ("tensor", "pipeline", "context", "data", "microbatch", "chunks", "recompute")

Report = Callable[[str, float, float], None]


class ParallelismConfig(Config):
    """What is to be trained on what. Ranks and recomputation of `model` are what is searched."""

    model: Transformer = knob(make=Transformer, doc="the model, its device and its links")
    cluster: str = knob(
        "", "a cluster with a sheet (selene, llama3-roce, ethernet-pods): its devices and nodes, "
        "and on the clock its shared links; empty: equal links as `model` says",
    )  # fmt: skip
    devices: int = knob(1536, "devices of the cluster", low=1, high=1 << 17)
    batch: int = knob(2304, "sequences in a step", low=1, high=1 << 20)
    fill: float = knob(0.9, "share of a device's memory that may be planned", low=0.05, high=1.0,
                        called="Memory planned, share")  # fmt: skip
    clocked: int = knob(
        40, "splits played on the virtual clock", low=1, high=2000, called="Splits played"
    )  # fmt: skip
    architecture: str = knob(
        "", "a public architecture (llama-3.1-70b) in the GPT's place: its steps are predicted "
        "from its own shapes, with intervals; empty: the GPT that `model` says",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Split:
    """One way to split. `seconds` of a step and `memory` (bytes) of the fullest device.

    `clocked`: whether the virtual clock played its plan; otherwise a closed form estimates it.
    `bubble`: share of the time from the first pass to the last in which ranks do none.
    `communication`: share of the step in which a rank is at messages that stand in the way: between
    stages, among tensor and context ranks, the gradients' sum.
    `all_reduce`: the algorithm that sums gradients fastest on the cluster, "" where none is named.
    """

    passes: Transformer
    pipeline: int
    microbatches: int
    chunks: int
    seconds: float
    memory: float
    clocked: bool = False
    bubble: float = 0.0
    communication: float = 0.0
    all_reduce: str = ""

    def words(self) -> dict[str, object]:
        """What was chosen, by the names of `WORDS`."""
        found = {name: getattr(self.passes, name, None) for name in WORDS}
        summed = {"all_reduce": self.all_reduce} if self.all_reduce else {}
        return {**found, "pipeline": self.pipeline, "chunks": self.chunks, **summed}

    def pipeline_config(self) -> PipelineConfig:
        """The same split as the knobs of a pipeline."""
        schedule = Interleaved(chunks=self.chunks) if self.chunks > 1 else OneForwardOneBackward()
        return PipelineConfig(
            schedule=schedule,
            ranks=self.pipeline,
            microbatches=self.microbatches,
            passes=self.passes,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """`splits` that fit, quickest first; `counted` splits were looked at, `fitting` fit."""

    splits: tuple[Split, ...]
    counted: int
    fitting: int
    least: Split | None  # of those that do not fit, the one that needs the least memory

    def front(self) -> list[Split]:
        """Splits on the clock that no other beats in both time and memory, quickest first."""
        return front([split for split in self.splits if split.clocked])


def search(config: ParallelismConfig, report: Report | None = None) -> Found:
    """Every split that divides; the most promising ones are played on the clock."""
    config = on_cluster(config)
    room = device(config.model.device).capacity * config.fill
    splits, least, counted = [], None, 0
    for split in candidates(config):
        counted += 1
        if split.memory <= room:
            splits.append(split)
        elif least is None or split.memory < least.memory:
            least = split
    splits.sort(key=lambda split: split.seconds)
    chosen = {id(split) for split in front(splits)[: config.clocked]}
    for split in splits:
        if len(chosen) >= config.clocked:
            break
        chosen.add(id(split))
    done, played = 0, []
    for split in splits:
        if id(split) in chosen:
            split, done = on_the_clock(split, config.cluster), done + 1
            if report is not None:
                report("splits on the clock", done, len(chosen))
        played.append(split)
    played.sort(key=lambda split: split.seconds)
    return Found(tuple(played), counted, len(splits), least)


def front(splits: list[Split]) -> list[Split]:
    """Those that no other beats in both time and memory, quickest first."""
    kept, least = [], inf
    for split in sorted(splits, key=lambda split: (split.seconds, split.memory)):
        if split.memory < least:
            kept.append(split)
            least = split.memory
    return kept


def candidates(config: ParallelismConfig) -> Iterator[Split]:
    """All splits whose sizes divide, estimated."""
    model = config.model
    tensors = [t for t in _divisors(model.heads) if t <= model.node]
    for t, p, c, b in product(tensors, _divisors(model.layers), CONTEXTS, MICROBATCHES):
        ranks = t * p * c
        if config.devices % ranks or model.sequence % c:
            continue
        data = config.devices // ranks
        if config.batch % (data * b):
            continue
        microbatches = config.batch // (data * b)
        if microbatches > 1024 or p > 128:
            continue
        for recompute, v in product(RECOMPUTE, CHUNKS):
            if v > 1 and (p == 1 or microbatches % p or model.layers % (p * v)):
                continue
            passes = model.model_copy(
                update={"tensor": t, "context": c, "data": data, "microbatch": b,
                        "recompute": recompute, "sequence_parallel": t > 1}
            )  # fmt: skip
            yield estimated(passes, p, microbatches, v)


def estimated(passes: Transformer, pipeline: int, microbatches: int, chunks: int) -> Split:
    """Time and memory by closed forms: the steady state of the last rank, which has the logits,
    the (p - 1) / v passes of filling and draining (2104.04473, section 2.2), the gradients."""
    p, m, v = pipeline, microbatches, chunks
    share = passes.share(p, v)
    drained = (p - 1) / (v * m + p - 1)
    both = share.forward + share.backward_input + share.backward_weight
    seconds = m * (both + sum(share.head)) + (p - 1) / v * both + share.reduce + share.update
    ahead = min(p, m) if v == 1 else min(m * v, 2 * (p - 1) + (v - 1) * p + 1) / v
    memory = _states(share) + ahead * share.activations
    spoken = _spoken(share, m) + share.reduce
    return Split(passes, p, m, v, seconds, memory, bubble=drained, communication=spoken / seconds)


def on_cluster(config: ParallelismConfig) -> ParallelismConfig:
    """The same with the cluster's devices and network in the model's place, where one is named.

    Raises BadInput where it has too few devices.
    """
    if not config.cluster:
        return config
    cluster(config.cluster).topology(config.devices)
    return config.model_copy(update={"model": described(config.model, config.cluster)})


def on_the_clock(split: Split, name: str = "") -> Split:
    """The same split with the time and memory that its plan gives, action by action; on a cluster
    with the gradients' sum by the fastest algorithm on its shared links."""
    job = split.pipeline_config().job()
    summed = job.share.reduce
    if name:
        size = job.share.gradients / max(1, job.plan.chunks)
        kind, seconds = gradient_sum(name, split.passes, split.pipeline, size)
        job.costs.passes[CODES[Kind.REDUCE_GRAD]] = seconds
        summed = seconds * max(1, job.plan.chunks)
        split = replace(split, all_reduce=kind or "none")
    times = timed(job.plan, job.costs)
    most = float(peaks(times.columns, job.plan.chunks, job.share.kept).max())
    memory = _states(job.share) + most * job.share.activations
    spoken = (_spoken(job.share, split.microbatches) + summed) / times.end
    idle = passes_of(times).of_total
    return replace(
        split, seconds=times.end, memory=memory, clocked=True, bubble=idle, communication=spoken
    )


def reached(config: ParallelismConfig, split: Split) -> float:
    """Flops of the model, without what is computed again, over time and the devices' peak."""
    shape = split.passes.model_copy(update={"recompute": "none"}).shape()
    peak = device(split.passes.device).peaks["float16"] * config.devices
    return step_flops(shape, config.batch) / split.seconds / peak


def refuse_nothing(config: ParallelismConfig, found: Found) -> None:
    """Raises BadInput saying why there is no split."""
    if found.splits:
        return
    where = f"{config.devices} devices, batch {config.batch}"
    if found.least is None:
        raise BadInput(
            f"parallelism: no split of {config.model.layers} layers and {config.model.heads} heads "
            f"divides {where}; take counts with more common divisors"
        )
    room = device(on_cluster(config).model.device).capacity * config.fill
    raise BadInput(
        f"parallelism: none of {found.counted} splits over {where} fits; the smallest needs "
        f"{found.least.memory / 2**30:.0f} GiB of {room / 2**30:.0f} GiB a device; take more "
        "devices, a larger device, or a smaller model"
    )


def _states(share: Share) -> float:
    return share.weights + share.gradients + share.optimiser


def _spoken(share: Share, microbatches: int) -> float:
    """Seconds of a rank's passes that are messages."""
    return microbatches * (2 * share.sent + sum(traffic.seconds for traffic in share.within))


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
