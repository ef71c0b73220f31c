"""The plan on real ranks of this machine: a small language model, one step timed.

Ranks are processes that talk over gloo. Where passes are paced each takes at least what the config
says a pass takes: it is computed, and the rest is slept, as a stand-in for a device of its own.
"""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.training.pipeline.executor import Carried, PipelineExecutor
from engine.training.pipeline.job import Job
from engine.training.pipeline.measured_costs import gradient_error, measured_costs
from engine.training.pipeline.rank_main import RankTask, work
from engine.training.pipeline.tiny_model import TinyModel
from engine.training.plan.times import timed
from engine.training.plan.transfers import lower

MOST = 16  # processes of one run
MOST_MICROBATCHES = 256
MODEL, RUN = "model of the ranks", "run of the ranks"


class OnRanks(PipelineExecutor):
    """The model they train, and how."""

    paced: bool = knob(
        True, "each pass takes at least as long as `passes` says, the rest of it slept (a stand-in "
        "for a device); else as long as this machine's cores take", group=RUN,
    )  # fmt: skip
    layers: int = knob(8, "layers of the model", low=1, high=128, group=MODEL)
    hidden: int = knob(64, "hidden size, a multiple of 16", low=16, high=4096, group=MODEL)
    vocabulary: int = knob(256, "entries of the vocabulary", low=2, high=65536, group=MODEL)
    sequence: int = knob(32, "tokens of a sequence", low=1, high=4096, unit="tokens", group=MODEL)
    rows: int = knob(2, "sequences of a microbatch", low=1, high=256, group=MODEL)
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group=MODEL)
    limit: float = knob(120.0, "the run is ended after", low=1.0, high=3600.0, unit="s", group=RUN)
    port: int = knob(0, "where ranks meet on loopback; 0: any free port", low=0, high=65535,
                     group=RUN)  # fmt: skip
    stall: float = knob(
        0.0, "slept between a message and the pass that it is for, which the clock is not told",
        low=0.0, high=1.0, unit="s", group=RUN,
    )  # fmt: skip
    swapped: int = knob(
        -1, "microbatch whose place another one takes, which is wrong (-1: none)", low=-1,
        high=1023, group=RUN,
    )  # fmt: skip

    def tiny(self) -> TinyModel:
        """What the ranks train."""
        return TinyModel(
            self.layers, self.hidden, self.vocabulary, self.sequence, self.rows, self.seed
        )

    def carry_out(self, job: Job, live: Live) -> Carried | None:
        self._fits(job)
        tiny, plan = self.tiny(), job.plan
        tiny.config()  # refused before processes start
        if not plan.lowered:
            times = timed(plan, job.costs)
            plan = lower(plan, times.start, times.stop)
        passes = job.costs.passes.tolist() if self.paced else None
        task = RankTask(tiny, str(plan), passes, self.stall, self.swapped, job.blocking)
        records = launch(
            work, job.ranks, task, limit=self.limit, port=self.port,
            poll=lambda: live.poll(0.0),
        )  # fmt: skip
        error = None
        if any(record.arrays for record in records):
            error = gradient_error(tiny, job.microbatches, records)
        costs = measured_costs(job.plan, records, job.costs.together)
        return Carried(merged(records), costs, error)

    def _fits(self, job: Job) -> None:
        if job.ranks > MOST or job.microbatches > MOST_MICROBATCHES:
            raise BadInput(
                f"ranks {job.ranks}, microbatches {job.microbatches}: real ranks on one "
                f"machine are for {MOST} and {MOST_MICROBATCHES} at most; take executor=modelled"
            )
        if job.plan.stages > self.layers:
            raise BadInput(
                f"executor: {self.layers} layers for {job.plan.stages} stages, one at least "
                f"each; set executor.layers={job.plan.stages}"
            )


class Real(OnRanks):
    """What the ranks did and held, measured."""

    kind: Literal["real"] = knob("real", doc="on real ranks of this machine")


class Both(OnRanks):
    """One axis for what happened and what the clock expects of such passes."""

    kind: Literal["both"] = knob("both", doc="real ranks above the virtual clock, on one axis")
    modelled: ClassVar[bool] = True
