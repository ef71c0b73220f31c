"""Plain autograd and gradient checkpointing: a backward through the whole model at once."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.utils.checkpoint
from torch import Tensor

from engine.core.config import knob
from engine.training.streamed.method import Method, Phase, untold
from engine.training.streamed.model import Model
from engine.training.streamed.objectives import Batch, Objective


class Plain(Method):
    """Nothing is computed twice."""

    kind: Literal["plain"] = knob("plain", doc="autograd as it is: every activation is kept")

    def gradients(
        self, model: Model, batch: Batch, objective: Objective, phase: Phase = untold
    ) -> float:
        return _through(model.layer, model, batch, objective, phase)


class Checkpointing(Method):
    """A layer is computed again when its backward comes (Chen et al., arXiv 1604.06174)."""

    kind: Literal["checkpointing"] = knob("checkpointing", doc="keep each layer's input alone")

    def gradients(
        self, model: Model, batch: Batch, objective: Objective, phase: Phase = untold
    ) -> float:
        again = torch.utils.checkpoint.checkpoint
        layer = partial(again, model.layer, use_reentrant=False, preserve_rng_state=False)
        return _through(layer, model, batch, objective, phase)


def _through(
    layer: Callable[..., Tensor], model: Model, batch: Batch, objective: Objective, phase: Phase
) -> float:
    """The loss of a forward whose layers are computed by `layer`, after its backward."""
    with phase("forward"):
        x_BTC = model.embed(batch.ids_BT)
        turn = model.turn(x_BTC)
        for number in range(model.config.layers):
            x_BTC = layer(number, x_BTC, turn)
    with phase("head"):
        lp_BT = model.logprobs(x_BTC, batch.target_BT)
        loss = objective.loss(lp_BT, batch, slice(None))
    with phase("backward"):
        loss.backward()
    return 0.0 if loss.is_meta else loss.item()
