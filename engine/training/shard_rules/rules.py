"""Two rules that derive a tensor-parallel plan from names and shapes of a model's weights.

Redco (Tan et al., arXiv 2310.16355): fully connected layers are split along one dimension and the
other in alternation; attention's queries, keys and values along heads, and its output likewise.
Here the rules look at blocks: the matrices of a layer that lie in one module, in the order data
passes them; the last one writes back what the ones before it have read.
"""

from functools import lru_cache
from typing import Literal

from engine.core.config import Config, knob
from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters
from engine.models.tensors.parameter import Parameter
from engine.training.shard_rules.plan import Plan, Split


class Rules(Config):
    """The two rules; what is not as it should be is there to show what it is needed for."""

    fully_connected: Literal["alternate", "in_order", "off"] = knob(
        "alternate",
        "alternate along the data's way; in_order: along the list of matrices, which is wrong "
        "where two of them read the same",
    )
    attention: Literal["heads", "as_fully_connected", "off"] = knob(
        "heads", "along whole heads; or by the first rule, which knows neither heads nor latents"
    )
    swapped: bool = knob(False, "rows for columns and columns for rows, which is wrong")


def derive(config: ModelConfig, ranks: int, rules: Rules) -> Plan:
    """The split of every weight. Vectors follow the matrix whose output they belong to."""
    plan: Plan = {}
    for name, block in _blocks(config).items():
        matrices = [p for p in block if len(p.shape) == 2]
        if not name or len(matrices) < 2:
            # Nothing to alternate with: a table of the vocabulary, or something all ranks need.
            for p in matrices:
                plan[p.name] = "rows" if p.shape[0] == config.vocab else "whole"
        elif "attn" in name and rules.attention == "heads":
            plan |= _attention(config, block, matrices, ranks)
        elif "attn" in name and rules.attention == "off":
            plan |= {p.name: "whole" for p in matrices}
        else:
            plan |= _fully_connected(matrices, ranks, rules.fully_connected)
    if rules.swapped:
        other: dict[Split, Split] = {"rows": "columns", "columns": "rows"}
        plan = {name: other.get(split, split) for name, split in plan.items()}
    return plan | _vectors(config, plan)


@lru_cache(maxsize=4)
def _blocks(config: ModelConfig) -> dict[str, list[Parameter]]:
    """Weights by the module that holds them, in order; "" for those outside the layers."""
    found: dict[str, list[Parameter]] = {}
    for p in all_parameters(config):
        inside = any(part.isdigit() for part in p.name.split("."))
        found.setdefault(p.name.rsplit(".", 2)[0] if inside else "", []).append(p)
    return found


def _sizes(p: Parameter) -> tuple[int, int]:
    """(outputs, inputs)."""
    return (p.shape[1], p.shape[0]) if p.transposed else (p.shape[0], p.shape[1])


def _fully_connected(matrices: list[Parameter], ranks: int, how: str) -> Plan:
    """Rule 1."""
    if how == "off" or _sizes(matrices[-1])[1] % ranks:
        return {p.name: "whole" for p in matrices}
    if how == "in_order":
        turns: tuple[Split, Split] = ("rows", "columns")
        return {p.name: turns[place % 2] for place, p in enumerate(matrices)}
    *readers, writer = matrices
    plan: Plan = {p.name: "rows" for p in readers}
    plan[writer.name] = "columns"
    return plan


def _attention(
    config: ModelConfig, block: list[Parameter], matrices: list[Parameter], ranks: int
) -> Plan:
    """Rule 2. What makes a latent that a norm reads whole is shared by all heads."""
    *makers, writer = matrices
    groups = config.kv_heads
    if config.heads % ranks or (groups % ranks and ranks % groups):
        return {p.name: "whole" for p in matrices}
    plan: Plan = {writer.name: "columns"}
    for p in makers:
        # With fewer key heads than ranks, ranks that serve the same key head each have it.
        few = groups % ranks and _sizes(p)[0] < _sizes(writer)[1]
        plan[p.name] = "whole" if _latent(block, p) else "shared rows" if few else "rows"
    return plan


def _latent(block: list[Parameter], matrix: Parameter) -> bool:
    """Whether the matrix is followed by a norm whose width is what the next matrix reads."""
    rest = [p for p in block[block.index(matrix) + 1 :] if not p.name.endswith(".bias")]
    if len(rest) < 2 or len(rest[0].shape) != 1 or len(rest[1].shape) != 2:
        return False
    return rest[0].shape[0] == _sizes(rest[1])[1]


def _vectors(config: ModelConfig, plan: Plan) -> Plan:
    """A bias is cut with its matrix's rows; whatever is added after a sum, and norms, are whole."""
    found: Plan = {}
    for p in all_parameters(config):
        if len(p.shape) == 1:
            split = plan.get(p.name.removesuffix("bias") + "weight", "whole")
            found[p.name] = split if "rows" in split and p.name.endswith(".bias") else "whole"
    return found
