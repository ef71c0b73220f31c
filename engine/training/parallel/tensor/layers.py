"""Tensor-parallel layers: a rank's part of the projections and of the embedding.

Megatron-LM (arXiv 1909.08053, section 3; sequence parallelism arXiv 2205.05198, section 4.2).
Shape letters: B sequences, T tokens, C hidden, O a rank's part of the outputs.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers import ACTIVATIONS
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.cross_entropy import owned


def column(w: Mapping[str, Tensor], role: str, x_BTC: Tensor) -> Tensor:
    """y_BTO: the rank's output rows of a projection of what has come `into` the tensor ranks."""
    return nn.functional.linear(x_BTC, w[role], w.get(f"{role}.bias"))


def inner(config: ModelConfig, w: Mapping[str, Tensor], x_BTC: Tensor, prefix: str = "") -> Tensor:
    """The rank's part of a feed-forward's inner width; `prefix` picks an expert."""
    act, up = ACTIVATIONS[config.activation], column(w, f"{prefix}up", x_BTC)
    return act(column(w, f"{prefix}gate", x_BTC)) * up if config.gated else act(up)


def with_bias(parallel: Parallelism, w: Mapping[str, Tensor], role: str, y_BTC: Tensor,
              task: str) -> Tensor:  # fmt: skip
    """What came out of a sum over tensor ranks, with the bias of that role where it has one."""
    bias = w.get(f"{role}.bias")
    if bias is None:
        return y_BTC
    return y_BTC + parallel.whole(bias, parallel.sequence_parallel, f"{task}.bias")


def embedding(weight_VC: Tensor, ids_BT: Tensor, first: int) -> Tensor:
    """x_BTC: rows that this rank, whose first is `first`, does not have count as nought in the sum
    over tensor ranks."""
    here_BT, own_BT = owned(ids_BT, first, len(weight_VC))
    return nn.functional.embedding(here_BT, weight_VC) * own_BT[..., None].to(weight_VC.dtype)
