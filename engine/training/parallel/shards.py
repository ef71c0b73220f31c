"""Which part of each weight a tensor rank holds, by Hugging Face name; cut and joined again.

Query, key, value, gate and up are split by output rows, whole heads each; out and down by input
columns; embedding and head by vocabulary; norms are whole on every rank.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.parameters import Parameter, layer_parameters, outer_parameters

ROWS = ("embedding", "head", "query", "key", "value", "gate", "up")
COLUMNS = ("out", "down")


def split_along(parameter: Parameter) -> int | None:
    """The dimension tensor ranks share; None where each has the whole."""
    role, _, bias = parameter.roles[0][0].partition(".")
    if role in ROWS:
        return 0
    return 1 if role in COLUMNS and not bias else None


def supported(config: ModelConfig) -> None:
    """Raises BadInput where the model is not a dense one of Llama's kind."""
    for what, there in (
        ("latent attention", config.latent is not None),
        ("experts", any(config.expert_layers)),
        ("learnt positions", config.rotary is None),
        ("a softcap in attention", bool(config.attention_softcap)),
        ("an attention window", any(config.windows)),
    ):
        if there:
            raise BadInput(
                f"model {config.architecture}: has {what}, which is not split among tensor ranks "
                "here; take a dense Llama, Mistral or Qwen"
            )


def divides(config: ModelConfig, tensor: int) -> None:
    """Raises BadInput naming what does not come out even among `tensor` ranks."""
    for what, number in (
        ("attention heads", config.heads),
        ("key/value heads", config.kv_heads),
        ("width of the feed-forward", config.width),
        ("vocabulary", config.vocab),
    ):
        if number % tensor:
            raise BadInput(
                f"model: {what} {number} cannot be dealt evenly to {tensor} tensor ranks; "
                f"take a tensor size that divides {number}"
            )


def stage_parameters(
    config: ModelConfig, layers: Iterable[int], first: bool, last: bool
) -> Iterator[Parameter]:
    """What a stage of these layers holds: `first` the embedding, `last` the norm and the head."""
    for parameter in outer_parameters(config):
        embedding = parameter.roles[0][0] == "embedding"
        if (embedding and (first or (last and config.tied))) or (not embedding and last):
            yield parameter
    for layer in layers:
        yield from layer_parameters(config, layer)


def cut(parameter: Parameter, weight: Tensor, at: int, ranks: int) -> Tensor:
    """Tensor rank `at`'s part of a whole weight, a copy of its own."""
    if tuple(weight.shape) != parameter.shape:
        raise BadInput(
            f"weight {parameter.name}: has shape {tuple(weight.shape)}, the config says "
            f"{parameter.shape}; give the whole weights of this model, not a rank's part"
        )
    dim = split_along(parameter)
    part = weight if dim is None else weight.chunk(ranks, dim)[at]
    return part.detach().clone(memory_format=torch.contiguous_format)


def joined(
    parameters: Iterable[Parameter], parts: Sequence[Mapping[str, Tensor]]
) -> dict[str, Tensor]:
    """Whole tensors from all tensor ranks' parts."""
    found = {}
    for parameter in parameters:
        dim, each = split_along(parameter), [part[parameter.name] for part in parts]
        found[parameter.name] = each[0] if dim is None else torch.cat(each, dim)
    return found
