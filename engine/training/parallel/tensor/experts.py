"""Mixture of experts under tensor parallelism: a part of every expert's inner width a rank.

Every rank routes all tokens alike by the same router; one sum over ranks ends the layer.
Shape letters: B sequences, T tokens, C hidden, K experts of a token.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import route
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.layers import column, inner


def experts(
    config: ModelConfig, parallel: Parallelism, w: Mapping[str, Tensor], x_BTC: Tensor, task: str
) -> Tensor:
    """The rank's part of y_BTC, of normalised x. Experts without a token work on none of them, so
    that all ranks find gradients of the same weights."""
    moe = config.experts
    assert moe is not None
    x_BTC = parallel.into(x_BTC, task)
    x_TC = x_BTC.flatten(0, -2)
    # What a rank weighs are its parts of the experts' outputs: each finds a share of the gradient.
    own = {"router": parallel.whole(w["router"], True, f"{task}.router")}
    index_TK, weight_TK = route(moe, column(own, "router", x_TC), w.get("correction"))
    y_TC = torch.zeros_like(x_TC)
    for expert in range(moe.count):
        token, rank = (index_TK == expert).nonzero(as_tuple=True)
        prefix = f"experts.{expert}."
        out = F.linear(inner(config, w, x_TC[token], prefix), w[f"{prefix}down"])
        scaled = out * weight_TK[token, rank, None].to(out.dtype)
        y_TC = y_TC.index_add(0, token, scaled.to(y_TC.dtype))
    if moe.shared:
        y_TC = y_TC + F.linear(inner(config, w, x_TC, "shared."), w["shared.down"])
    return y_TC.view_as(x_BTC)
