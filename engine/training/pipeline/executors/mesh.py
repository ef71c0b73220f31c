"""The plan on a mesh of real ranks: each of its places a set of tensor, context and data ranks."""

from typing import Literal

import msgspec

from engine.core.config import Choice, from_dict, knob, to_dict
from engine.core.events import AnyEvent, Mark, Move, Span
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import lane, merged
from engine.distributed.mesh import MeshShape
from engine.training.context_parallel.algorithm import SequenceAttention
from engine.training.context_parallel.policies.ring import Ring
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.parallelism import LeftOut
from engine.training.parallel.rank_main import STEP, work
from engine.training.parallel.sizes import Sizes
from engine.training.parallel.truth import errors, of_place
from engine.training.parallel.zero.zero import Zero
from engine.training.parallel.zero.zero0 import Nothing
from engine.training.pipeline.executor import Carried, PipelineExecutor
from engine.training.pipeline.job import Job
from engine.training.plan.schedules.as_written import AsWritten

# With 1e-8 Adam makes whole steps of what rounding leaves of gradients that cancel, and ranks that
# sum in another order part from the one process that they are held to.
EXACT_EPS = 1e-4
MESH, MODEL = "mesh of the ranks", "model of the ranks"


class OnMesh(PipelineExecutor):
    """A tiny transformer, every layer shared by tensor ranks; two steps, the second one told."""

    kind: Literal["mesh"] = knob("mesh", doc="on real ranks, with tensor, context and data ranks")
    tensor: int = knob(2, "ranks that share each matrix (tp)", low=1, high=16, group=MESH)
    context: int = knob(1, "ranks that share a sequence (cp)", low=1, high=16, group=MESH)
    data: int = knob(1, "replicas, each with its own sequences (dp)", low=1, high=16, group=MESH)
    sequence_parallel: bool = knob(True, "norms see a tensor rank's part of the tokens", group=MESH)
    attention: Choice[SequenceAttention] = knob(make=Ring, doc="how context ranks attend",
                                                group=MESH)  # fmt: skip
    zero: Choice[Zero] = knob(make=Nothing, doc="which states replicas deal", group=MESH)
    left_out: LeftOut = knob("nothing", "a sum over ranks that is not made, which is wrong",
                             group=MESH)  # fmt: skip
    model: Sizes = knob(make=lambda: Sizes(layers=4), doc="the transformer", group=MODEL)
    rows: int = knob(1, "sequences of a microbatch", low=1, high=64, group=MODEL)
    tokens: int = knob(16, "of each sequence", low=2, high=4096, unit="tokens", group=MODEL)
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group=MODEL)
    limit: float = knob(120.0, "the run is ended after", low=1.0, high=3600.0, unit="s", group=MESH)

    def lanes(self, ranks: int) -> list[str]:
        return [lane(rank) for rank in range(self._mesh(ranks).ranks)]

    def carry_out(self, job: Job, live: Live) -> Carried | None:
        asked = self.training(job)
        records = launch(
            work, asked.mesh.ranks, [asked], limit=self.limit, poll=lambda: live.poll(0.0)
        )
        found = errors(asked, [of_place(record, 0) for record in records])
        worst = max(error for name, error in found.items() if name.startswith("gradient/"))
        return Carried(last_step(merged(records)), job.costs, worst)

    def training(self, job: Job) -> MeshTrainingConfig:
        """The same plan as steps on a mesh. Raises BadInput where it does not divide."""
        asked = {
            "mesh": to_dict(self._mesh(job.ranks)),
            "zero": to_dict(self.zero),
            "sequence_parallel": self.sequence_parallel,
            "attention": to_dict(self.attention),
            "schedule": to_dict(AsWritten(text=str(job.plan))),
            "microbatches": job.microbatches,
            "batch": self.data * job.microbatches * self.rows,
            "tokens": self.tokens,
            "steps": 2,
            "learning": {"eps": EXACT_EPS},
            "model": to_dict(self.model),
            "seed": self.seed,
            "left_out": self.left_out,
            "limit": self.limit,
        }
        return from_dict(MeshTrainingConfig, asked)

    def _mesh(self, ranks: int) -> MeshShape:
        return MeshShape(data=self.data, pipeline=ranks, context=self.context, tensor=self.tensor)


def last_step(events: list[AnyEvent]) -> list[AnyEvent]:
    """What each rank did from the beginning of its last step on; the first to begin is second
    nought."""
    begun = {e.lane: e.time for e in events if isinstance(e, Mark) and e.name == STEP}
    nought = min(begun.values())
    found: list[AnyEvent] = []
    for event in events:
        start = event.start if isinstance(event, Span | Move) else event.time
        if start >= begun[_rank(event)]:
            moved = {"start": start - nought} if isinstance(event, Span | Move) else {}
            found.append(msgspec.structs.replace(event, time=event.time - nought, **moved))
    return found


def _rank(event: AnyEvent) -> str:
    """The lane of the rank that an event is of; of a transfer, the sender's."""
    where = event.source if isinstance(event, Move) else str(getattr(event, "lane", ""))
    return where.split(" to ")[0].replace("link", "rank")
