"""Step cost of a replica whose ranks share a step by tensors or by tokens, as a policy says.

By tokens a rank computes its part of them with the matrices of its group, and attention over all
tokens for the heads that it keeps; between the two it exchanges tokens for heads with every group.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.device import Device
from engine.inference.executors.costs.device_cost import Choice, cost_of
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.measured_step_cost import ATTENTION
from engine.inference.executors.costs.rank_memory import rank_weights
from engine.inference.executors.costs.ranked_step_cost import Cost, RankedCost
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.step_cost import OpTime
from engine.inference.policies.parallelism import Parallelism
from engine.models.config import ModelConfig

TOKEN = 8  # bytes of an answer's token, which every rank is told


class SharedCost:
    """The same questions as `RankedCost` answers. `parts`: tensor parts of a group's weights;
    `inner`: what one of them computes."""

    def __init__(self, tensor: RankedCost, group: Cost, parts: int, how: Parallelism) -> None:
        self.tensor, self.parts, self.how = tensor, parts, how
        self.group = group.inner if isinstance(group, RankedCost) else group
        self.groups = tensor.ranks.count // parts
        self.memory = tensor.memory
        self._others: dict[tuple[int, int], list[OpTime]] = {}  # but attention, by tokens and rows

    def shape(self, new_B: np.ndarray, context_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step, as `ForwardWork.shape`."""
        return self.tensor.shape(new_B, context_B, rows)

    def decode_shape(self, starts_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step in which every sequence decodes."""
        return self.tensor.decode_shape(starts_B, rows)

    def mixed_shape(
        self, starts_B: np.ndarray, new_B: np.ndarray, decodes: int, rows: int,
        seen: int | None = None,
    ) -> Shape:  # fmt: skip
        """What matters of a step whose first `decodes` sequences decode."""
        return self.tensor.mixed_shape(starts_B, new_B, decodes, rows, seen)

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds of a step, and flops and bytes of one rank in it."""
        if not self.how.by_tokens(shape.tokens):
            return self.tensor.total(shape)
        ops = self.describe(shape)
        return sum(o.seconds for o in ops), sum(o.flops for o in ops), sum(o.bytes for o in ops)

    def describe(self, shape: Shape) -> list[OpTime]:
        """Each operation of a rank and each kind of collective."""
        if not self.how.by_tokens(shape.tokens):
            return self.tensor.describe(shape)
        key = shape.tokens, shape.rows
        if key not in self._others:
            self._others[key] = [*self._computed(shape), *self._exchanged(shape)]
        attention = [op for op in self.tensor.inner.describe(shape) if op.name == ATTENTION]
        return [*attention, *self._others[key]]

    def _computed(self, shape: Shape) -> list[OpTime]:
        """Matrices and norms, of the tokens of the fullest group."""
        tokens, rows = (-(-count // self.groups) for count in (shape.tokens, shape.rows))
        own = shape._replace(tokens=tokens, rows=rows)
        return [op for op in self.group.describe(own) if op.name != ATTENTION]

    def _exchanged(self, shape: Shape) -> list[OpTime]:
        return [
            OpTime(name, seconds, 0.0, 0.0, "link") for name, seconds in self._collectives(shape)
        ]

    def _collectives(self, shape: Shape) -> Iterator[tuple[str, float]]:
        tensor, groups, parts = self.tensor, self.groups, self.parts
        config, size, collective = tensor.config, tensor.size, tensor.collective
        tokens, rows = (-(-count // groups) for count in (shape.tokens, shape.rows))
        hidden = tokens * config.hidden * size
        if parts > 1:
            sums = 2 * config.layers + 1
            yield "all_reduce", sums * collective("all_reduce", parts, hidden)
            yield "gather", collective("all_gather", parts, rows * config.vocab * size)
        kept = tensor.ranks.shard(config)  # heads of one rank
        there = groups * (kept.heads + 2 * kept.kv_heads) * config.head_dim * size
        back = groups * kept.heads * config.head_dim * size
        each = sum(collective("all_to_all", groups, tokens * wide) for wide in (there, back))
        yield "all_to_all", config.layers * each
        yield "answers", collective("all_gather", groups, rows * groups * TOKEN)


def shared_cost(
    model: ModelConfig, machine: Device, dtype: str, choice: Choice, how: Parallelism
) -> Cost | SharedCost:
    """The costs of a replica whose ranks share steps so. Raises BadInput where they cannot."""
    tensor, parts = cost_of(model, machine, dtype, choice), how.copies(choice.ranks.tensor)[0]
    if parts == choice.ranks.tensor:  # by tensors alone: stages and replicas go beside that
        return tensor
    if choice.ranks.tensor != choice.ranks.count or not isinstance(tensor, RankedCost):
        raise BadInput(
            f"parallelism {how.kind}: shares a step among tensor ranks alone; "
            "leave pipeline_parallel and data_parallel at 1"
        )
    if model.experts is not None or model.latent is not None:
        raise BadInput(f"parallelism {how.kind}: for models without experts and latents")
    group = cost_of(model, machine, dtype, choice, Ranks(tensor=parts))
    return SharedCost(tensor, group, parts, how)


def shared_weights(model: ModelConfig, ranks: Ranks, dtype: str, how: Parallelism) -> float:
    """Bytes of weights on the fullest rank: of every copy that is kept."""
    copies = how.copies(ranks.tensor)
    return sum(rank_weights(model, replace(ranks, tensor=parts), dtype) for parts in copies)
