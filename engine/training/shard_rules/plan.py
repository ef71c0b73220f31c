"""A tensor-parallel plan: for each weight, what of it a rank holds; written by people, one for each
family and with its source, or derived by `rules`; and cutting weights by it.

Cuts are views, so gradients of all ranks' shards flow back into the whole weights.
"""

import tomllib
from typing import Literal

from torch import Tensor

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters
from engine.models.tensors.parameter import Parameter

# Of the matrix as [out, in]: all of it, its output rows, its input columns, or the output rows of
# one of fewer groups of key/value heads than there are ranks.
Split = Literal["whole", "rows", "columns", "shared rows"]
Plan = dict[str, Split]
FACTS = "tensor_plans.toml"


def span(size: int, pieces: int, at: int) -> slice:
    """Piece `at` of `size` numbers in `pieces` as even as they go."""
    return slice(size * at // pieces, size * (at + 1) // pieces)


def cut_roles(
    parameter: Parameter, whole: Tensor, split: Split, rank: int, ranks: int, groups: int = 1
) -> dict[str, Tensor]:
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


def families() -> list[str]:
    """Those with a plan."""
    return sorted(tomllib.loads(dataset(FACTS).read_text(encoding="utf-8")))


def hand_plan(config: ModelConfig) -> Plan:
    """The split of every weight where heads, widths and vocabulary divide by the ranks."""
    plans = tomllib.loads(dataset(FACTS).read_text(encoding="utf-8"))
    if config.family not in plans:
        raise BadInput(f"family {config.family!r}: {FACTS} has no plan; there are {families()}")
    written = plans[config.family]
    found: Plan = {}
    for p in all_parameters(config):
        *_, module, last = p.name.split(".")
        split: Split = "whole"
        if module in written["rows"]:
            split = "rows"
        elif module in written["columns"] and last == "weight":
            split = "columns"
        found[p.name] = split
    return found
