"""Step cost with attention offloaded: it runs beside the keys on devices of its own, all else on
compute devices, and queries, keys, values and outputs cross a link in every layer.

A step's sequences go round in groups, so that one is computed while another's attention is under
way. Requests are dealt to attention devices whole. Prompts attend where they are computed: their
keys are sent, and what was cached of them before comes back.
"""

from collections.abc import Sequence

import numpy as np

from engine.hardware.link import Link
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.inference.executors.costs.measured_step_cost import ATTENTION
from engine.inference.executors.costs.ranked_step_cost import Cost
from engine.inference.executors.costs.step_cost import OpTime
from engine.models.config import ModelConfig
from engine.models.kv import BYTES, cache_spec

WAIT = "wait for attention"


def crossing(config: ModelConfig, dtype: str) -> float:
    """Bytes that cross for a token that decodes, over all layers: query and output, key, value."""
    there_and_back = 2 * config.layers * config.heads * config.head_dim * BYTES[dtype]
    return there_and_back + cache_spec(config, dtype).bytes_per_token()


class OffloadedCost:
    """Costs of steps; the same questions as `StepCost` answers.

    `inside`: of the compute devices; `beside`: of one of `workers` attention devices; `wires`:
    devices on the side that has fewer, each of which sends over its own link.
    """

    def __init__(
        self, config: ModelConfig, dtype: str, inside: Cost, beside: Cost, workers: int, wires: int,
        wire: Link, groups: int,
    ) -> None:  # fmt: skip
        self.config, self.inside, self.beside = config, inside, beside
        self.workers, self.wires, self.wire, self.groups = workers, wires, wire, groups
        self.work = ForwardWork(config, dtype)
        self.memory = beside.memory
        self.crosses = crossing(config, dtype)
        self.cached = cache_spec(config, dtype).bytes_per_token()

    def shape(self, new_B: np.ndarray, context_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step, as `ForwardWork.shape`."""
        return self.work.shape(new_B, context_B, rows)

    def decode_shape(self, starts_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step in which every sequence decodes."""
        return self.work.decode_shape(starts_B, rows)

    def mixed_shape(
        self, starts_B: np.ndarray, new_B: np.ndarray, decodes: int, rows: int,
        seen: int | None = None,
    ) -> Shape:  # fmt: skip
        """What matters of a step whose first `decodes` sequences decode."""
        return self.work.mixed_shape(starts_B, new_B, decodes, rows, seen)

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds, flops and bytes of a step."""
        ops = self.describe(shape)
        return sum(o.seconds for o in ops), sum(o.flops for o in ops), sum(o.bytes for o in ops)

    def describe(self, shape: Shape) -> list[OpTime]:
        """What the compute devices do, and what they wait for attention: in one group where that
        is sooner, since every group reads the weights anew."""
        one = self._in_groups(shape, 1)
        groups = min(self.groups, shape.sequences)
        if shape.chunks or groups < 2:
            return one
        several = self._in_groups(shape, groups)
        return min(one, several, key=lambda ops: sum(op.seconds for op in ops))

    def _in_groups(self, shape: Shape, groups: int) -> list[OpTime]:
        part = shape.share(groups)
        ops = [op for op in self.inside.describe(part) if op.name != ATTENTION]
        if part.chunks:
            prompts = self.work.counted(0, 0, list(part.chunks), 0)
            ops.append(self._attention(self.inside, prompts))
        found = [
            OpTime(op.name, groups * op.seconds, groups * op.flops, groups * op.bytes, op.roof)
            for op in ops
        ]
        computing = sum(op.seconds for op in ops)
        sent = self._sent(part)
        own = self.work.counted(part.singles, part.seen, [], part.singles).share(self.workers)
        attending = self._attention(self.beside, own) if part.singles else None
        busy = attending.seconds if attending else 0.0
        # Of each group one after another: computing, the way there, attention, the way back.
        seconds = max(groups * computing, groups * busy, groups * sent, computing + busy + sent)
        flops = groups * self.workers * attending.flops if attending else 0.0
        moved = groups * self.workers * attending.bytes if attending else 0.0
        roof = "bandwidth" if busy > sent else "link"
        return [*found, OpTime(WAIT, seconds - groups * computing, flops, moved, roof)]

    @staticmethod
    def _attention(cost: Cost, shape: Shape) -> OpTime:
        return next(op for op in cost.describe(shape) if op.name == ATTENTION)

    def _sent(self, part: Shape) -> float:
        """Seconds of all that crosses, a message there and one back in each layer."""
        prompts: Sequence[tuple[int, int]] = part.chunks
        size = part.singles * self.crosses
        size += sum(new + before for new, before in prompts) * self.cached
        layers = self.config.layers
        return 2 * layers * self.wire.latency + size / (self.wires * self.wire.bandwidth)
