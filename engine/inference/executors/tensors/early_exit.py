"""Early exits: the tokens a model would likely say if it ended at a layer in its middle.

Shape letters: C hidden, R rows of logits, S samples, V vocabulary.
"""

from dataclasses import replace

import numpy as np
import torch

from engine.models.batch import NOTHING_KEPT, Batch, States
from engine.models.gathered import Cast, Gathered
from engine.models.kv import PagedKV
from engine.models.layers import finished
from engine.models.model import Model
from engine.models.norm import Norm
from engine.models.ops import plain_ops
from engine.models.parameters import outer_parameters


class EarlyExit:
    """The last norm and the head behind the first `layers` layers of a model.

    The layers are computed once more, which changes nothing: the same keys go to the same places.
    """

    def __init__(
        self, model: Model, share: float, candidates: int, seed: int | None = None
    ) -> None:
        """`share` of the layers come before it; with a `seed`, wrongly, any tokens will do."""
        config = model.config
        self.model, self.layers = model, round(share * config.layers)
        self.candidates = min(candidates, config.vocab)
        self.draw = None if seed is None else np.random.default_rng(seed)
        self.scores_RV = np.zeros((0, config.vocab), np.float32)  # of the pass that comes
        source = Cast(model.weights, model.dtype)
        weights = Gathered(
            outer_parameters(config), source, plain_ops(), torch.float32, model.device
        )
        self.norm = Norm(config, weights, "norm")
        embedding = weights.ops.linear(weights.take("embedding"), None) if config.tied else None
        self.head = embedding or weights.linear("head")

    @torch.inference_mode()
    def listen(self, batch: Batch, kv: PagedKV) -> None:
        """Hear what the exit says of a batch before its pass, which moves recurrent states on."""
        if self.draw is not None:
            return
        if batch.states is not None:
            nowhere_B = np.full_like(batch.states.write_B, -1)
            batch = replace(batch, states=States(batch.states.read_B, nowhere_B, NOTHING_KEPT))
        x_TC = self.model.hidden(self.model.rows(batch, kv), kv, self.layers)
        x_RC = self.norm(x_TC[torch.from_numpy(batch.logits_at_R).long()].float())
        self.scores_RV = finished(self.model.config, self.head(x_RC).float()).cpu().numpy()

    def hits(self, from_S: np.ndarray, tokens_S: np.ndarray) -> np.ndarray:
        """Whether each sample's token is among the candidates of its row of logits."""
        if self.draw is not None:
            return self.draw.random(len(tokens_S)) < self.candidates / self.model.config.vocab
        scores_RV = self.scores_RV[from_S]
        better_S = (scores_RV > scores_RV[np.arange(len(tokens_S)), tokens_S][:, None]).sum(1)
        return np.asarray(better_S < self.candidates)
