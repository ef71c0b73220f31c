"""Weight shards of tensor ranks, by Hugging Face name: which part each holds; cut and joined.

The two rules of `engine.training.shard_rules` say how each weight is split: what makes queries,
keys, values and inner widths by output rows, what writes back by input columns, embedding and head
by vocabulary; norms, routers and what makes latents are whole on every rank.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.parameters import layer_parameters, outer_parameters
from engine.models.tensors.parameter import Parameter
from engine.training.shard_rules.plan import Plan, Split, cut_roles
from engine.training.shard_rules.rules import Rules, derive


def splits(config: ModelConfig, tensor: int) -> Plan:
    """How every weight is split among `tensor` ranks, where sizes divide (see `divides`)."""
    plan = derive(config, tensor, Rules())
    # A table of learnt positions may be as long as the vocabulary.
    whole = [p.name for p in outer_parameters(config) if p.roles[0][0] == "positions"]
    return plan | dict.fromkeys(whole, "whole")


def split_along(parameter: Parameter, split: Split) -> int | None:
    """The dimension of the stored tensor that ranks share; None where each has the whole."""
    if split == "whole":
        return None
    return int((split == "columns") != parameter.transposed)


def supported(config: ModelConfig, context: int = 1) -> None:
    """Raises BadInput where the model cannot be split among tensor and `context` ranks."""
    latent = config.usual("a split among ranks").latent
    for what, there in (
        ("values wider than keys, which context ranks do not exchange",
         context > 1 and latent is not None and latent.value > latent.nope + latent.rope),
        ("embeddings of paths of thought, which tensor ranks do not split", config.paths > 0),
        ("a softcap in attention, which context ranks do not apply",
         context > 1 and config.attention_softcap > 0),
        ("an attention window, which context ranks do not keep to",
         context > 1 and any(config.windows)),
    ):  # fmt: skip
        if there:
            raise BadInput(f"model {config.architecture}: has {what}; take another or one rank")


def divides(config: ModelConfig, tensor: int) -> None:
    """Raises BadInput naming what does not come out even among `tensor` ranks."""
    moe, sizes = config.experts, [("attention heads", config.heads)]
    if config.latent is None:
        sizes.append(("key/value heads", config.kv_heads))
    if not all(config.expert_layers):
        sizes.append(("width of the feed-forward", config.width))
    if moe and any(config.expert_layers):
        sizes += [("width of an expert", moe.width), ("width of the shared experts", moe.shared)]
    for what, number in (*sizes, ("vocabulary", config.vocab)):
        if number % tensor:
            raise BadInput(
                f"model: {what} {number} cannot be dealt evenly to {tensor} tensor ranks; "
                f"take a tensor size that divides {number}"
            )


def stage_parameters(
    config: ModelConfig, layers: Iterable[int], first: bool, last: bool
) -> Iterator[Parameter]:
    """What a stage of these layers holds: `first` the embeddings, `last` the norm and the head."""
    for parameter in outer_parameters(config):
        role = parameter.roles[0][0]
        if role in ("embedding", "positions"):
            wanted = first or (last and config.tied and role == "embedding")
        else:
            wanted = last
        if wanted:
            yield parameter
    for layer in layers:
        yield from layer_parameters(config, layer)


def part_of(parameter: Parameter, split: Split, ranks: int) -> Parameter:
    """A tensor rank's part as a parameter of its own: its shape and the rows of its roles."""
    dim = split_along(parameter, split)
    if dim is None:
        return parameter
    shape = list(parameter.shape)
    shape[dim] //= ranks
    rows = ranks if split == "rows" else 1
    roles = tuple((role, count // rows) for role, count in parameter.roles)
    return replace(parameter, shape=tuple(shape), roles=roles)


def cut(parameter: Parameter, weight: Tensor, split: Split, at: int, ranks: int) -> Tensor:
    """Tensor rank `at`'s part of a whole weight, a copy of its own; roles that share a tensor are
    cut each by itself."""
    if tuple(weight.shape) != parameter.shape:
        raise BadInput(
            f"weight {parameter.name}: has shape {tuple(weight.shape)}, the config says "
            f"{parameter.shape}; give the whole weights of this model, not a rank's part"
        )
    pieces = cut_roles(parameter, weight.detach(), split, at, ranks).values()
    whole = torch.cat(list(pieces))
    return (whole.T if parameter.transposed else whole).clone(memory_format=torch.contiguous_format)


def joined(
    parameters: Iterable[Parameter], parts: Sequence[Mapping[str, Tensor]], plan: Plan
) -> dict[str, Tensor]:
    """Whole tensors from all tensor ranks' parts, of those parameters that each of them has."""
    found = {}
    for parameter in parameters:
        if any(parameter.name not in part for part in parts):
            continue
        split = plan[parameter.name]
        dim, each = split_along(parameter, split), [part[parameter.name] for part in parts]
        if dim is None:
            found[parameter.name] = each[0]
            continue
        own = part_of(parameter, split, len(parts))
        pieces = zip(*(_pieces(own, part, split, dim) for part in each), strict=True)
        found[parameter.name] = torch.cat([p for role in pieces for p in role], dim)
    return found


def _pieces(parameter: Parameter, weight: Tensor, split: Split, dim: int) -> Sequence[Tensor]:
    """What each role has of the dimension that is split."""
    if split == "columns":
        return [weight]
    return weight.split([rows for _, rows in parameter.roles], dim)
