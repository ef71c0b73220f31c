"""Autograd as it is: every activation is kept from the forward."""

from typing import Literal

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
        with phase("forward"):
            x_BTC = model.embed(batch.ids_BT)
            turn = model.turn(x_BTC)
            for layer in range(model.config.layers):
                x_BTC = model.layer(layer, x_BTC, turn)
        with phase("head"):
            lp_BT = model.logprobs(x_BTC, batch.target_BT)
            loss = objective.loss(lp_BT, batch, slice(None))
        with phase("backward"):
            loss.backward()
        return 0.0 if loss.is_meta else loss.item()
