"""The knobs of a training step on a mesh of real ranks: the model, the mesh, what is dealt."""

import torch
from pydantic import model_validator
from torch import Tensor

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.distributed.mesh import MeshShape
from engine.training.parallel.parallelism import LeftOut, parts_fit
from engine.training.parallel.shards import divides, supported
from engine.training.parallel.sizes import Sizes
from engine.training.parallel.zero import Learning, Zero
from engine.training.parallel.zeros.nothing import Nothing
from engine.training.pipeline_schedule import Pipe, PipelineSchedule
from engine.training.plan import Plan
from engine.training.plan_times import Costs, timed
from engine.training.plan_transfers import lower
from engine.training.policies.one_forward_one_backward import OneForwardOneBackward
from engine.training.sequence.algorithm import SequenceAttention
from engine.training.sequence.layout import Layout
from engine.training.sequence.layouts.zigzag import Zigzag
from engine.training.sequence.policies.ring import Ring

MODEL, MORE = "model", "more"
MOST = 16  # processes of one run


class MeshTrainingConfig(Config):
    """Some steps of training on real ranks, held to one process's."""

    mesh: MeshShape = knob(make=MeshShape, doc="ranks in each direction")
    zero: Choice[Zero] = knob(make=Nothing, doc="which states replicas deal among themselves")
    sequence: bool = knob(False, "norms see a tensor rank's part of the tokens")
    attention: Choice[SequenceAttention] = knob(make=Ring, doc="how context ranks attend")
    layout: Choice[Layout] = knob(make=Zigzag, doc="which positions a context rank owns")
    schedule: Choice[PipelineSchedule] = knob(
        make=OneForwardOneBackward, doc="in what order pipeline ranks do their passes"
    )
    microbatches: int = knob(1, "parts of a replica's sequences in the pipeline", low=1, high=256)
    batch: int = knob(4, "sequences in a step", low=1, high=4096)
    tokens: int = knob(16, "of each sequence", low=2, high=1 << 15, unit="tokens")
    steps: int = knob(1, "optimiser steps", low=1, high=1000, unit="steps")
    model: Sizes = knob(make=Sizes, doc="the transformer", group=MODEL)
    learning: Learning = knob(make=Learning, doc="the optimiser", group=MODEL)
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group=MORE)
    left_out: LeftOut = knob(
        "nothing", "a sum over ranks that is not made, which is wrong", group=MORE
    )
    limit: float = knob(120.0, "the run is ended after", low=1.0, high=3600.0, unit="s", group=MORE)

    @model_validator(mode="after")
    def _fits(self) -> "MeshTrainingConfig":
        mesh = self.mesh
        if mesh.ranks > MOST:
            raise BadInput(f"mesh {mesh}: {mesh.ranks} ranks, at most {MOST} on one machine")
        if self.batch % mesh.data:
            raise BadInput(
                f"batch {self.batch}: cannot be dealt evenly to {mesh.data} replicas; "
                f"take a multiple of {mesh.data}"
            )
        if self.batch // mesh.data % self.microbatches:
            raise BadInput(
                f"batch {self.batch}: each replica's {self.batch // mesh.data} sequences cannot be "
                f"dealt evenly to {self.microbatches} microbatches; take a divisor"
            )
        if self.planned:
            self._pipeline_fits()
        model = self.model.model()
        supported(model, mesh.context)
        divides(model, mesh.tensor)
        spans = self.spans()
        if self.sequence:
            parts_fit(sum(map(len, spans[0])), mesh.tensor)
        if mesh.context > 1:
            self.attention.fits(mesh.context, model.kv_heads // mesh.tensor)
        return self

    def _pipeline_fits(self) -> None:
        if not self.zero.whole:
            raise BadInput(
                f"zero {self.zero.kind}: a stage's weights stay whole from microbatch to "
                "microbatch; take optimizer or nothing, or one microbatch and no pipeline"
            )
        stages = self.plan().stages
        if stages > self.model.layers:
            raise BadInput(
                f"model.layers {self.model.layers}: cannot be dealt to {stages} stages, one at "
                f"least each; take {stages} or more"
            )

    @property
    def planned(self) -> bool:
        """Whether a step is a plan of passes, and not one forward and one backward."""
        return self.mesh.pipeline > 1 or self.microbatches > 1

    def plan(self) -> Plan:
        """The passes of each pipeline rank with their transfers."""
        made = self.schedule.plan(Pipe(self.mesh.pipeline, self.microbatches))
        times = timed(made, Costs.even(made))
        return lower(made, times.start, times.stop)

    def spans(self) -> list[list[range]]:
        """The positions of each context rank."""
        if self.mesh.context == 1:
            return [[range(self.tokens)]]
        ranks = range(self.mesh.context)
        return [self.layout.spans(rank, self.mesh.context, self.tokens) for rank in ranks]

    def ids(self, step: int) -> Tensor:
        """Token ids [batch, tokens + 1] of a step."""
        draw = torch.Generator().manual_seed(self.seed * 1009 + step + 1)
        sizes = (self.batch, self.tokens + 1)
        return torch.randint(self.model.vocabulary, sizes, generator=draw)
