"""Embeddings of prompts by a decoder: the last token's hidden state behind the model's last norm.

What vLLM gives for a model that was not trained to embed: the last token's state, of length one.
Shape letters: T tokens, C hidden.
"""

import numpy as np
import torch

from engine.models.batch import pack
from engine.models.gathered import Gathered
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.norm import Norm
from engine.models.ops import plain_ops
from engine.models.parameters import outer_parameters

PAGE = 16  # tokens
CHUNK = 512  # tokens of a prompt computed at once


class Embedder:
    """Embeds with a model, in cache memory of its own that grows with the longest prompt."""

    def __init__(self, model: Model) -> None:
        self.model = model
        outer = Gathered(
            outer_parameters(model.config), model.weights, plain_ops(), torch.float32, model.device
        )
        self.norm = Norm(model.config, outer, "norm")
        self.kv = PagedKV(model.spec, 1, PAGE, model.device, 1)

    def __call__(self, tokens_T: np.ndarray) -> np.ndarray:
        """The prompt's vector, float32 [C], of length one."""
        pages = -(-len(tokens_T) // PAGE)
        if pages > self.kv.pages:
            self.kv = PagedKV(self.model.spec, pages, PAGE, self.model.device, 1)
        layers = self.model.config.layers
        for start in range(0, len(tokens_T), CHUNK):
            chunk = tokens_T[start : start + CHUNK].tolist()
            batch = pack([chunk], [start], [list(range(pages))], PAGE)
            batch = self.model.rows(batch, self.kv)
            x_TC = self.model.hidden(batch, self.kv, layers)
        with torch.inference_mode():
            x_RC = self.norm(x_TC[torch.from_numpy(batch.logits_at_R).long()].float())
            vector_C = self.model.mixed(x_RC)[0]
            return torch.nn.functional.normalize(vector_C, dim=0).cpu().numpy()
