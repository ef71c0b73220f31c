"""Nano-batches: a step's tokens in two parts, so that operations of one that read memory or send
run beside products of the other (NanoFlow, arXiv 2408.12757).

Products and prompts' attention bind on arithmetic, attention of answers on memory, sums over ranks
on links (`unit_lanes`). How tokens and units are shared is searched for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

from engine.core.errors import BadInput
from engine.hardware.link import Link
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.measured_step_cost import ATTENTION
from engine.inference.executors.costs.modelled_executor import ModelledExecutor
from engine.inference.executors.costs.ranked_step_cost import Cost, RankedCost
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.step_cost import SINGLE, OpTime, StepCost
from engine.inference.executors.costs.unit_lanes import (
    COMPUTE,
    MEMORY,
    NETWORK,
    Operation,
    Placed,
    placed,
)
from engine.inference.requests.step import Result, Step, StepPart

FIRST, MORE = 4, 4  # layers followed one by one; each further one takes as long as these on average
SPLITS = (0.2, 0.3, 0.4, 0.5, 0.6)  # of the tokens, in the first part
SHARES = (0.1, 0.2, 0.3, 0.4)  # of the units, for attention of answers
ALIKE = 256  # tokens apart that steps of one pipeline are
NOTHING = 1e-12  # seconds of an operation that a part has not
NO_LINK = Link(name="none", bandwidth=1.0, latency=0.0)  # between stages, of which there is one


class Settings(Protocol):
    """What `engine.inference.executors.nano_batches.NanoBatches` says."""

    split: float
    memory_units: float
    network_units: float

    @property
    def overlap(self) -> str:
        """beside, in_turn or none."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a step is shared: tokens in the first part, units for attention of answers. All in the
    first part: there is no other."""

    split: float
    share: float


class NanoBatchedCost(RankedCost):
    """Costs of steps; the same questions as `RankedCost` answers."""

    def __init__(self, whole: Cost, how: Settings) -> None:
        """`whole`: of steps in one part. Raises BadInput where pipeline stages or data ranks share
        a step, too."""
        if isinstance(whole, RankedCost):
            super().__init__(whole.inner, whole.config, whole.ranks, whole.collective, whole.by)
        else:
            super().__init__(whole, whole.config, Ranks(), lambda *_: 0.0, NO_LINK)
        if self.ranks.count > self.ranks.tensor:
            raise BadInput(
                "executor nano_batches: shares a step among tensor ranks alone; leave "
                "pipeline_parallel and data_parallel at 1"
            )
        inner, self.how, self.layers = self.inner, how, self.inner.config.layers
        self.plain = inner if isinstance(inner, StepCost) else inner.plain
        self.found: dict[tuple[int, ...], Pipeline] = {}

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds of a step, and flops and bytes of one rank in it: weights are read twice."""
        _, flops, moved = self.inner.total(shape)
        pipeline = self.pipeline(shape)
        if pipeline.split < 1.0:
            parts = [self.inner.total(part) for part in self.parts(shape, pipeline.split)]
            flops, moved = sum(p[1] for p in parts), sum(p[2] for p in parts)
        return self.seconds(shape, pipeline), flops, moved

    def describe(self, shape: Shape) -> list[OpTime]:
        """Each operation of a step as if it ran alone, of both parts."""
        found: dict[str, OpTime] = {}
        for part in self.parts(shape, self.pipeline(shape).split):
            for op in super().describe(part):
                had = found.get(op.name, OpTime(op.name, 0.0, 0.0, 0.0, op.roof))
                sums = had.seconds + op.seconds, had.flops + op.flops, had.bytes + op.bytes
                found[op.name] = OpTime(op.name, *sums, op.roof)
        return list(found.values())

    def pipeline(self, shape: Shape) -> Pipeline:
        """The quickest of those tried for a step like this."""
        context = int(shape.seen / max(shape.singles, 1))
        key = -(-shape.tokens // ALIKE), -(-shape.singles // ALIKE), context.bit_length()
        if key not in self.found:
            self.found[key] = self._searched(shape)
        return self.found[key]

    def _searched(self, shape: Shape) -> Pipeline:
        how, one = self.how, Pipeline(1.0, SHARES[0])
        if how.overlap == "none" or shape.tokens < 2:
            return one
        splits = (how.split,) if how.split else SPLITS
        shares = SHARES if how.overlap == "beside" else SHARES[:1]
        tried = [Pipeline(split, share) for split in splits for share in shares]
        if not how.split and how.overlap == "beside":
            tried.append(one)
        return min(tried, key=lambda each: self.seconds(shape, each))

    def seconds(self, shape: Shape, pipeline: Pipeline) -> float:
        """Of a step: its first layers one by one, each other one like the mean of the last."""
        layer = self._layer(self.parts(shape, pipeline.split))
        few = min(FIRST, self.layers)
        begun = self._last(layer, few, pipeline.share)
        if self.layers == few:
            return self._once(shape) + begun
        more = min(MORE, self.layers - few)
        each = (self._last(layer, few + more, pipeline.share) - begun) / more
        return self._once(shape) + begun + (self.layers - few) * each

    def went(self, shape: Shape, pipeline: Pipeline, layers: int) -> list[Placed]:
        """The operations of the first layers, as they go."""
        layer = self._layer(self.parts(shape, pipeline.split))
        return self._placed(layer, layers, pipeline.share)

    def _last(self, layer: list[list[Operation]], layers: int, share: float) -> float:
        return max(one.stop for one in self._placed(layer, layers, share))

    def _placed(self, layer: list[list[Operation]], layers: int, share: float) -> list[Placed]:
        how, every = self.how, list(in_layers(layer, layers))
        beside = how.overlap == "beside"
        return placed(every, share, how.memory_units, how.network_units, beside)

    def parts(self, shape: Shape, split: float) -> list[Shape]:
        """The step's tokens in two: answers come first, a prompt's chunk may be cut."""
        if split >= 1.0:
            return [shape]
        first = min(max(round(shape.tokens * split), 1), shape.tokens - 1)
        ones = min(first, shape.singles)
        seen = round(shape.seen * ones / max(shape.singles, 1))
        here: list[tuple[int, int]] = []
        there: list[tuple[int, int]] = []
        room = first - ones
        for new, before in shape.chunks:
            own = min(new, room)
            room -= own
            if own:
                here.append((own, before))
            if new > own:
                there.append((new - own, before + own))
        rows = round(shape.rows * first / max(shape.tokens, 1))
        return [
            self.plain.counted(ones, seen, here, rows),
            self.plain.counted(shape.singles - ones, shape.seen - seen, there, shape.rows - rows),
        ]

    def _layer(self, parts: list[Shape]) -> list[list[Operation]]:
        return [list(self._operations(part, n)) for n, part in enumerate(parts)]

    def _operations(self, part: Shape, n: int) -> Iterator[Operation]:
        """Of one part in one layer; `after` counts from the part's own first."""
        ops = {op.name: op for op in self.inner.describe(part) if op.name not in SINGLE}
        ops.pop(ATTENTION)
        before = self._together([ops.pop(name) for name in ("qkv", "latent_up") if name in ops])
        out, rest = self._together([ops.pop("out")]), self._together(list(ops.values()))
        summed = self._summed(part.tokens)
        prompts = self._attention(0, 0, part.chunks)
        answers = self._attention(part.singles, part.seen, ())
        yield Operation("qkv", n, COMPUTE, *before, ())
        yield Operation("prompts", n, COMPUTE, *prompts, (0,))
        yield Operation("answers", n, MEMORY, *answers, (0,))
        yield Operation("out", n, COMPUTE, *out, (1, 2))
        yield Operation("sum", n, NETWORK, summed, 0.0, (3,))
        yield Operation("mlp", n, COMPUTE, *rest, (4,))
        yield Operation("sum", n, NETWORK, summed, 0.0, (5,))

    def _together(self, ops: list[OpTime]) -> tuple[float, float]:
        """Seconds in one layer of operations one after another, and what they read."""
        seconds = sum(op.seconds for op in ops)
        read = sum(op.bytes for op in ops) / self.memory
        return max(seconds, NOTHING) / self.layers, min(read / max(seconds, NOTHING), 1.0)

    def _attention(
        self, ones: int, seen: int, chunks: tuple[tuple[int, int], ...]
    ) -> tuple[float, float]:
        if not ones and not chunks:
            return NOTHING, 0.0
        shape = self.plain.counted(ones, seen, list(chunks), 0)
        return self._together([op for op in self.inner.describe(shape) if op.name == ATTENTION])

    def _summed(self, tokens: int) -> float:
        """Seconds of one sum over all ranks of so many tokens."""
        if self.ranks.tensor == 1:
            return NOTHING
        hidden = tokens * self.config.hidden * self.size
        return self.collective("all_reduce", self.ranks.tensor, hidden)

    def _once(self, shape: Shape) -> float:
        """Seconds of what a step does once, for both parts."""
        single = sum(op.seconds for op in self.inner.describe(shape) if op.name in SINGLE)
        gathered = sum(
            each for name, each in self._exchanged(shape.tokens, shape.rows) if name == "gather"
        )
        return single + self._summed(shape.tokens) + gathered


def in_layers(layer: list[list[Operation]], count: int) -> Iterator[Operation]:
    """`count` layers of both parts, in the order in which a lane prefers them."""
    size, wide = len(layer[0]), sum(len(part) for part in layer)
    for turn in range(count):
        for n, part in enumerate(layer):
            first = turn * wide + n * size
            for place, one in enumerate(part):
                before = tuple(first + m for m in one.after)
                if not place and turn:
                    before = (first - wide + size - 1,)
                yield one._replace(after=before)


class Laned(Protocol):
    """Costs whose steps have microbatches, operations of which run beside one another."""

    layers: int

    def pipeline(self, shape: Shape) -> Any:
        """How a step is shared among microbatches."""

    def went(self, shape: Shape, pipeline: Any, layers: int) -> list[Placed]:
        """The operations of the first layers, as they go."""


class LanedExecutor(ModelledExecutor):
    """The modelled executor, which tells of a profiled step when each operation runs."""

    def execute(self, step: Step) -> Result:
        result = super().execute(step)
        if step.profile:
            shape, laned = self._shape(step), cast(Laned, self.cost)
            went = laned.went(shape, laned.pipeline(shape), laned.layers)
            found = [
                StepPart(
                    one.operation.lane, one.operation.name, one.stop - one.start, 0.0, 0.0,
                    "modelled", start=one.start, piece=one.operation.part,
                )
                for one in went
                if one.stop > one.start + NOTHING
            ]  # fmt: skip
            result.parts = sorted(found, key=lambda part: (part.start or 0.0) + part.seconds)
        return result
