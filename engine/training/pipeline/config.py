"""Config of a pipeline: its schedule, its size, what passes and transfers cost.

`PipelineConfig.job` is the plan and the costs that a clock, virtual or real, works from.
"""

from typing import Literal

import numpy as np

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.training.pipeline.cluster import OnCluster
from engine.training.pipeline.executor import PipelineExecutor
from engine.training.pipeline.executors.modelled import Modelled
from engine.training.pipeline.job import Job
from engine.training.pipeline.stage_cost import Share, StageCost
from engine.training.pipeline.stage_costs.given import Given
from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.columns import CODES
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.times import Costs


class Wires(Config):
    """What joins the ranks: alpha-beta links within a node and between nodes."""

    latency: float = knob(0.0, "a transfer within a node, before its bytes", low=0.0, high=10.0,
                          unit="s")  # fmt: skip
    bandwidth: float = knob(3e11, "within a node, one way", low=1.0, high=1e15, unit="B/s",
                            log=True)  # fmt: skip
    ranks_per_node: int = knob(1024, "pipeline ranks in one node", low=1, high=1024)
    between_latency: float = knob(0.0, "a transfer between nodes, before its bytes", low=0.0,
                                  high=10.0, unit="s")  # fmt: skip
    between_bandwidth: float = knob(2.5e10, "between nodes, one way", low=1.0, high=1e15,
                                    unit="B/s", log=True)  # fmt: skip
    blocking: bool = knob(False, "transfers hold both ranks instead of riding beside the passes")
    awaited: Literal["each", "first"] = knob(
        "each", "interleaved: which microbatches wait for their tensor on its way from the last "
        "rank round to the first: each, or the first of p alone, as arXiv 2401.10241 calculates "
        "its rates (the others begin before theirs is there)",
    )  # fmt: skip

    def seconds(self, ranks: int, size: float) -> np.ndarray:
        """[ranks, ranks]: a tensor of `size` bytes from one rank to another."""
        node = np.arange(ranks) // self.ranks_per_node
        within = self.latency + size / self.bandwidth
        between = self.between_latency + size / self.between_bandwidth
        return np.where(node[:, None] == node[None, :], within, between)


class PipelineConfig(Config):
    """One training step of a pipeline."""

    aliases = {"execution": "executor"}
    schedule: Choice[PipelineSchedule] = knob(
        make=OneForwardOneBackward, doc="in what order ranks do their passes"
    )
    ranks: int = knob(4, "pipeline ranks (p)", low=1, high=128, called="Pipeline ranks (p)")
    microbatches: int = knob(
        8, "microbatches in a step (m)", low=1, high=1024, called="Microbatches (m)"
    )
    memory_limit: float = knob(
        0.0,
        "activations a rank may hold, in microbatches; 0: no limit",
        low=0.0,
        high=4096.0,
        called="Memory limit, microbatches (0: none)",
    )
    passes: Choice[StageCost] = knob(make=Given, doc="where pass times and bytes come from")
    wires: Wires = knob(make=Wires, doc="links between ranks")
    cluster: OnCluster = knob(make=OnCluster, doc="a cluster whose links transfers share")
    slow_rank: int = knob(0, "the rank that is slower than the rest", low=0, high=127, group="skew")
    slow_by: float = knob(1.0, "how many times its passes take", low=0.1, high=10.0, group="skew")
    executor: Choice[PipelineExecutor] = knob(make=Modelled, doc="what carries out the plan")
    fault: Literal["none", "late_backward"] = knob(
        "none", "What goes wrong on rank 0: it runs one forward too many before its first "
        "backward (where there is none left, two backwards change places)", group="skew",
    )  # fmt: skip
    together: bool = knob(
        False, "no optimiser begins before all ranks are done (gradient clipping across stages)",
        group="end of step",
    )  # fmt: skip

    def job(self) -> Job:
        """The plan and the costs of a step. Raises BadInput where they do not fit one another."""
        share = self.passes.share(self.ranks, 1)
        between = self.wires.seconds(self.ranks, share.boundary) * (not share.awaited)
        pipe = Pipe(
            self.ranks,
            self.microbatches,
            share.forward,
            share.backward_input,
            share.backward_weight,
            float(between[0, -1] if self.ranks > 1 else 0.0),
            self.memory_limit or float("inf"),
            share.kept,
        )
        made = self.schedule.plan(pipe)
        if self.fault == "late_backward":
            made = plan([late_backward(list(made.ranks[0])), *made.ranks[1:]])
        if made.chunks > 1:
            share = self.passes.share(self.ranks, made.chunks)
        update = share.update > 0 or self.executor.real
        replicas = self.cluster.replicas or self.passes.replicas(self.ranks)
        summed = bool(self.cluster.name) and replicas > 1 and share.gradients > 0
        whole = ended(made, reduce=share.reduce > 0 or summed, update=update)
        return Job(whole, _costs(self, whole, share, between), share, self.wires.blocking)


def ended(given: Plan, *, reduce: bool, update: bool) -> Plan:
    """`given` with each stage's all-reduce and update at the end of its rank."""
    rows = []
    for rank, actions in enumerate(given.ranks):
        stages = [stage for stage, home in sorted(given.rank_of.items()) if home == rank]
        kinds = [Kind.REDUCE_GRAD] * reduce + [Kind.STEP] * update
        there = {each.kind for each in actions}
        tail = [Action(stage, kind) for kind in kinds if kind not in there for stage in stages]
        rows.append([*actions, *tail])
    return plan(rows)


def late_backward(row: list[Action]) -> list[Action]:
    """A rank's actions with its first backward one place too late."""
    backwards = [n for n, each in enumerate(row) if each.kind in (Kind.B, Kind.I)]
    first = backwards[0]
    forward = (n for n, each in enumerate(row) if n > first and each.kind is Kind.F)
    moved = next(forward, None)
    if moved is not None:
        row.insert(first, row.pop(moved))
    elif len(backwards) > 1:
        second = backwards[1]
        row[first], row[second] = row[second], row[first]
    return row


def slow_among(config: PipelineConfig, ranks: int) -> None:
    """Raises BadInput where the rank that is slower is none of so many."""
    if config.slow_by != 1 and config.slow_rank >= ranks:
        raise BadInput(
            f"slow_rank: no rank {config.slow_rank} among {ranks}; take at most {ranks - 1}"
        )


def _costs(config: PipelineConfig, made: Plan, share: Share, between: np.ndarray) -> Costs:
    even = Costs.even(made, share.forward, share.backward_input, share.backward_weight)
    passes, chunks = even.passes, made.chunks
    forward, backward_input, backward_weight = share.head
    for kind, more in (
        (Kind.F, forward),
        (Kind.I, backward_input),
        (Kind.W, backward_weight),
        (Kind.B, backward_input + backward_weight),
    ):
        passes[CODES[kind], made.stages - 1] += more
    if share.stages:
        passes[[CODES[Kind.F], CODES[Kind.I], CODES[Kind.W]]] = share.stages
        passes[CODES[Kind.B]] = passes[CODES[Kind.I]] + passes[CODES[Kind.W]]
    if not config.cluster.name:  # there it is one of all replicas' ranks
        slow_among(config, config.ranks)
        slow = [stage for stage, rank in made.rank_of.items() if rank == config.slow_rank]
        passes[:, slow] *= config.slow_by
    passes[CODES[Kind.REDUCE_GRAD]] = share.reduce / chunks
    passes[CODES[Kind.STEP]] = share.update / chunks
    first_alone = config.wires.awaited == "first"
    return Costs(passes, between, config.together, first_alone=first_alone)
