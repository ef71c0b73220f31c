"""Split search for a described run: the quickest tensor, pipeline, context and data ranks.

Every split that divides and fits in memory is timed with a closed form for its bubble, the most
promising ones with their schedule; times are those of `engine.training.step_time`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from engine.cluster.parallelism import ParallelismConfig, on_cluster
from engine.core.config import update
from engine.core.errors import BadInput
from engine.hardware.cluster import cluster
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.interval import Interval, interval
from engine.training.step_time.memory import memory
from engine.training.step_time.step import Prepared, Step

RECOMPUTE = ("none", "half", "full")
CONTEXTS = (1, 2, 4, 8, 16)
MICROBATCHES = (1, 2, 4, 8)
CHUNKS = (1, 2, 4)
EXPERTS = (1, 2, 4, 8, 16, 32, 64)
LEAST_TOKENS = 4096  # of a sequence on a context rank
DEEPEST = 64  # pipeline ranks
PLAYED = 12  # splits whose schedule is played
TIMED = 400  # splits that fit and are timed, those first that leave the most to products

Report = Callable[[str, float, float], None]


@dataclass(frozen=True)
class FoundSteps:
    """`steps`, quickest first, with their intervals; `counted` splits divide, `fitting` fit."""

    steps: tuple[tuple[Step, Interval], ...]
    counted: int
    fitting: int


def described(config: ParallelismConfig) -> TrainingRun:
    """The run that a search with an architecture is for: its cluster, batch and sequence.

    Without a named cluster a node has an adapter for each device, as `OnDevices` says.
    """
    model = on_cluster(config).model
    changes: dict[str, object] = {
        "model": config.architecture,
        "cluster.device": model.device,
        "cluster.devices": config.devices,
        "cluster.node": model.node,
        "recipe.sequence": model.sequence,
        "recipe.batch": config.batch,
        "recipe.compiled": True,
    }
    if config.cluster:
        sheet = cluster(config.cluster)
        changes |= {"cluster.network": sheet.network, "cluster.adapters": sheet.adapters}
    return update(TrainingRun(), changes)


def search_described(
    run: TrainingRun, fill: float = 0.9, report: Report | None = None
) -> FoundSteps:
    """The quickest splits of a run on its cluster. `fill`: share of a device's memory to plan.

    Raises BadInput where none divides or none fits.
    """
    room = run.cluster.sheet().capacity * fill
    found = list(candidates(run))
    if not found:
        raise BadInput(
            f"split: nothing divides {run.cluster.devices} devices and a batch of {run.batch}; "
            "take counts with more common divisors"
        )
    held = [memory(each).total for each in found]
    fits = [each for each, size in zip(found, held, strict=True) if size <= room]
    if not fits:
        raise BadInput(
            f"split: none of {len(found)} fits; the smallest needs {min(held) / 2**30:.0f} GiB of "
            f"{room / 2**30:.0f} GiB a device; take more devices or a smaller batch"
        )
    fits.sort(key=_overhead)
    timed = sorted(fits[:TIMED], key=lambda each: Prepared(each, play=False).at()[0])
    steps = []
    for number, each in enumerate(timed[:PLAYED], 1):
        prepared = Prepared(each)
        steps.append((prepared.whole(), interval(prepared)))
        if report is not None:
            report("splits on the clock", number, min(PLAYED, len(timed)))
    steps.sort(key=lambda told: told[0].seconds)
    return FoundSteps(tuple(steps), len(found), len(fits))


def _overhead(run: TrainingRun) -> float:
    """A rank's work past its products, roughly: what is done again and the bubble."""
    split = run.split
    again = {"none": 0.0, "selective": 0.05, "half": 0.15, "full": 0.3}[run.recipe.recompute]
    bubble = (split.pipeline - 1) / split.chunks / run.microbatches
    return (1 + again) * (1 + bubble) * (1 + 0.02 * (split.tensor - 1))


def candidates(run: TrainingRun) -> Iterator[TrainingRun]:
    """All splits whose sizes divide devices, heads and batch."""
    config, devices, batch = run.config(), run.cluster.devices, run.batch
    tensors = [
        t for t in range(1, run.cluster.joined() + 1) if config.heads % t == 0 == config.width % t
    ]
    pipelines = [p for p in range(1, min(DEEPEST, config.layers) + 1) if devices % p == 0]
    experts = EXPERTS if config.experts else (1,)
    for t, p, c, b in product(tensors, pipelines, CONTEXTS, MICROBATCHES):
        ranks = t * p * c
        if devices % ranks or (c > 1 and run.recipe.sequence // c < LEAST_TOKENS):
            continue
        replicas = devices // ranks
        if batch % (replicas * b):
            continue
        for e, v, again in product(experts, CHUNKS, RECOMPUTE):
            if not _fits(run, e, replicas, v, p, batch // (replicas * b)):
                continue
            shard = "parameters" if p == 1 else "optimizer"
            yield update(
                run,
                {
                    "split.tensor": t, "split.pipeline": p, "split.context": c, "split.chunks": v,
                    "split.expert": e, "split.shard": shard, "split.shard_ranks": 0,
                    "recipe.microbatch": b, "recipe.batch": batch, "recipe.recompute": again,
                },
            )  # fmt: skip


def _fits(run: TrainingRun, e: int, replicas: int, v: int, p: int, m: int) -> bool:
    """Whether experts divide among replicas, and chunks among layers and microbatches."""
    moe = run.config().experts
    if moe is not None and (moe.count % e or replicas % e):
        return False
    return v == 1 or (p > 1 and m % p == 0 and run.config().layers >= p * v)
