"""One pipeline training step as a value: its plan, what passes and transfers cost, what ranks hold.

`PipelineConfig.job` works it out; executors and clocks take it.
"""

from dataclasses import dataclass, replace

from engine.training.pipeline.stage_cost import Share, Traffic
from engine.training.plan.actions import Kind, Plan
from engine.training.plan.columns import CODES
from engine.training.plan.times import Costs


@dataclass(frozen=True)
class Job:
    """`share`: one rank's part of the model; `blocking`: transfers hold both ranks."""

    plan: Plan
    costs: Costs
    share: Share
    blocking: bool = False

    @property
    def ranks(self) -> int:
        return len(self.plan.ranks)

    @property
    def microbatches(self) -> int:
        return self.plan.microbatches

    def on_network(self) -> "Job":
        """The same with what travels left to a clock that plays it: the boundary's way, and what
        devices of a rank give one another."""
        passes = self.costs.passes.copy()
        for kind in (Kind.F, Kind.I, Kind.B):
            moved = self.share.sent + self.within(kind).seconds
            passes[CODES[kind]] -= moved / max(1, self.plan.chunks)
        return replace(self, costs=replace(self.costs, passes=passes))

    def within(self, kind: Kind) -> Traffic:
        """Traffic among a rank's devices in a pass of all its layers."""
        forward, backward = self.share.within
        return {Kind.F: forward, Kind.I: backward, Kind.B: backward}.get(kind, Traffic())
