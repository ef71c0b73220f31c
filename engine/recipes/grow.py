"""Grows a trained model into a wider and deeper one that computes the same function.

What is new reads at random and writes nothing: new residual dimensions hold zero, new heads and
feed-forward units have zero columns into the residual, new layers on top add zero. So the large
model starts where the small one, far cheaper per token, has got to (Net2Net: Chen et al.,
arXiv 1511.05641; progressive stacking: Gong et al., ICML 2019).
"""

import math

from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters

WRITERS = ("out", "down", "embedding")  # roles whose output is the residual stream


def grow(
    small: ModelConfig, weights: dict[str, Tensor], large: ModelConfig, fresh: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Weights of `large` that give `small`'s logits; `fresh` are random ones of `large`.

    Raises BadInput where heads differ in size or grouping, or something would have to shrink.
    """
    _check(small, large)
    grown = {}
    for parameter in all_parameters(large):
        name, role = parameter.name, parameter.roles[0][0]
        new = fresh[name].clone()
        if role in WRITERS:
            new.zero_()
        if name in weights:
            old = weights[name]
            if old.ndim == 1:
                # The root mean square runs over more dimensions, the new ones zero.
                old = old * math.sqrt(small.hidden / large.hidden)
            new[tuple(slice(size) for size in old.shape)] = old
        grown[name] = new
    return grown


def _check(small: ModelConfig, large: ModelConfig) -> None:
    same = ("family", "vocab", "head_dim", "tied", "norm")
    differ = [name for name in same if getattr(small, name) != getattr(large, name)]
    if small.heads * large.kv_heads != large.heads * small.kv_heads:
        differ.append("query heads for each key/value head")
    sizes = ("hidden", "layers", "heads", "kv_heads", "width")
    differ += [name for name in sizes if getattr(small, name) > getattr(large, name)]
    if differ or small.family != "llama":
        raise BadInput(
            f"growing a {small.family} model: {', '.join(differ) or 'family'} do not fit"
        )
