"""ShardingConfig: how a model's training is split over a device mesh (data, pipeline, context and
tensor ranks), whatever the model and its batches."""

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.distributed.mesh import MeshShape
from engine.models.config import ModelConfig
from engine.training.context_parallel.algorithm import SequenceAttention
from engine.training.context_parallel.layouts import Layout, Zigzag
from engine.training.context_parallel.policies.ring import Ring
from engine.training.parallel.parallelism import parts_fit
from engine.training.parallel.tensor.shards import divides, supported
from engine.training.parallel.zero.zero import Zero
from engine.training.parallel.zero.zero0 import Nothing
from engine.training.plan.actions import Plan
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.times import Costs, timed
from engine.training.plan.transfers import lower


class ShardingConfig(Config):
    """The mesh, and what its ranks share among them."""

    mesh: MeshShape = knob(make=MeshShape, doc="ranks in each direction")
    zero: Choice[Zero] = knob(make=Nothing, doc="which states replicas deal among themselves")
    sequence_parallel: bool = knob(False, "norms see a tensor rank's part of the tokens")
    attention: Choice[SequenceAttention] = knob(make=Ring, doc="how context ranks attend")
    layout: Choice[Layout] = knob(make=Zigzag, doc="which positions a context rank owns")
    schedule: Choice[PipelineSchedule] = knob(
        make=OneForwardOneBackward, doc="in what order pipeline ranks do their passes"
    )
    microbatches: int = knob(1, "parts of a replica's sequences in the pipeline", low=1, high=256)

    @property
    def planned(self) -> bool:
        """Whether a step is a plan of passes, and not one forward and one backward."""
        return self.mesh.pipeline > 1 or self.microbatches > 1

    def plan(self) -> Plan:
        """The passes of each pipeline rank with their transfers."""
        made = self.schedule.plan(Pipe(self.mesh.pipeline, self.microbatches))
        times = timed(made, Costs.even(made))
        return lower(made, times.start, times.stop)

    def spans(self, tokens: int) -> list[list[range]]:
        """The positions of each context rank, of a sequence of so many tokens."""
        if self.mesh.context == 1:
            return [[range(tokens)]]
        ranks = range(self.mesh.context)
        return [self.layout.spans(rank, self.mesh.context, tokens) for rank in ranks]

    def fits(self, model: ModelConfig, batch: int, tokens: int) -> None:
        """Raises BadInput where `batch` sequences of `tokens` or the model do not divide."""
        mesh = self.mesh
        if batch % mesh.data:
            raise BadInput(
                f"batch {batch}: cannot be dealt evenly to {mesh.data} replicas; "
                f"take a multiple of {mesh.data}"
            )
        if batch // mesh.data % self.microbatches:
            raise BadInput(
                f"batch {batch}: each replica's {batch // mesh.data} sequences cannot be "
                f"dealt evenly to {self.microbatches} microbatches; take a divisor"
            )
        if self.planned:
            self._pipeline_fits(model.layers)
        supported(model, mesh.context)
        divides(model, mesh.tensor)
        spans = self.spans(tokens)
        if self.sequence_parallel:
            parts_fit(sum(map(len, spans[0])), mesh.tensor)
        if mesh.context > 1:
            self.attention.fits(mesh.context, model.kv_heads // mesh.tensor)

    def _pipeline_fits(self, layers: int) -> None:
        if not self.zero.whole:
            raise BadInput(
                f"zero {self.zero.kind}: a stage's weights stay whole from microbatch to "
                "microbatch; take optimizer or nothing, or one microbatch and no pipeline"
            )
        stages = self.plan().stages
        if stages > layers:
            raise BadInput(
                f"model: {layers} layers cannot be dealt to {stages} stages, one at least each; "
                "take fewer pipeline ranks or chunks"
            )
