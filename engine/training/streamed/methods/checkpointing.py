"""Gradient checkpointing (Chen et al., arXiv 1604.06174): each layer's input is kept alone."""

from typing import Literal

import torch
import torch.utils.checkpoint

from engine.core.config import knob
from engine.training.streamed.method import Method, Phase, untold
from engine.training.streamed.model import Model
from engine.training.streamed.objectives import Batch, Objective


class Checkpointing(Method):
    """A layer is computed again, whole, when its backward comes; logits are made at once."""

    kind: Literal["checkpointing"] = knob("checkpointing", doc="keep each layer's input alone")

    def gradients(
        self, model: Model, batch: Batch, objective: Objective, phase: Phase = untold
    ) -> float:
        with phase("forward"):
            x_BTC = model.embed(batch.ids_BT)
            turn = model.turn(x_BTC)
            for layer in range(model.config.layers):
                x_BTC = torch.utils.checkpoint.checkpoint(
                    model.layer, layer, x_BTC, turn, use_reentrant=False, preserve_rng_state=False
                )
        with phase("head"):
            lp_BT = model.logprobs(x_BTC, batch.target_BT)
            loss = objective.loss(lp_BT, batch, slice(None))
        with phase("backward"):
            loss.backward()
        return 0.0 if loss.is_meta else loss.item()
