"""A tensor-parallel plan: for each weight, what of it a rank holds; and cutting weights by it.

Cuts are views, so gradients of all ranks' shards flow back into the whole weights.
"""

from collections.abc import Mapping
from typing import Literal

from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.parameters import Parameter, all_parameters

# Of the matrix as [out, in]: all of it, its output rows, its input columns, or the output rows of
# one of fewer groups of key/value heads than there are ranks.
Split = Literal["whole", "rows", "columns", "shared rows"]
Plan = dict[str, Split]


def span(size: int, pieces: int, at: int) -> slice:
    """Piece `at` of `size` numbers in `pieces` as even as they go."""
    return slice(size * at // pieces, size * (at + 1) // pieces)


def cut(parameter: Parameter, whole: Tensor, split: Split, rank: int, ranks: int,
        groups: int) -> dict[str, Tensor]:  # fmt: skip
    """A rank's shard by role, each as [out, in]; roles that share a tensor are cut each by itself.

    `groups`: key/value heads, for shared rows. Raises BadInput where columns of a vector are asked
    for.
    """
    tensor = whole.T if parameter.transposed else whole
    if split == "columns" and tensor.ndim == 1:
        raise BadInput(
            f"plan: {parameter.name} is a vector and has no input columns; keep it whole"
        )
    parts = tensor.split([rows for _, rows in parameter.roles])
    found = {}
    for (role, rows), part in zip(parameter.roles, parts, strict=True):
        if split == "rows":
            part = part[span(rows, ranks, rank)]
        elif split == "shared rows":
            part = part[span(rows, groups, rank * groups // ranks)]
        elif split == "columns":
            part = part[:, span(part.shape[1], ranks, rank)]
        found[role] = part
    return found


def shards(
    config: ModelConfig, weights: Mapping[str, Tensor], plan: Plan, ranks: int
) -> list[dict[str, dict[str, Tensor]]]:
    """Of each rank: by weight's name, its shard by role."""
    return [
        {
            p.name: cut(p, weights[p.name], plan[p.name], rank, ranks, config.kv_heads)
            for p in all_parameters(config)
        }
        for rank in range(ranks)
    ]


def bytes_of_rank(config: ModelConfig, plan: Plan, ranks: int, size: int = 2) -> int:
    """The most bytes of weights a rank holds, a number being `size` bytes."""
    total = 0
    for p in all_parameters(config):
        rows, numbers = p.shape[-1] if p.transposed else p.shape[0], 1
        for length in p.shape:
            numbers *= length
        if plan[p.name] == "rows":
            numbers = -(-rows // ranks) * (numbers // rows)
        elif plan[p.name] == "shared rows":
            numbers //= config.kv_heads
        elif plan[p.name] == "columns":
            numbers //= ranks
        total += numbers * size
    return total
