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


class Embedder:
    """Embeds with a model, each prompt in cache memory of its own, which the next takes over."""

    def __init__(self, model: Model) -> None:
        self.model = model
        outer = Gathered(
            outer_parameters(model.config), model.weights, plain_ops(), torch.float32, model.device
        )
        self.norm = Norm(model.config, outer, "norm")
        self.idle: list[PagedKV] = []

    def begin(self, tokens_T: np.ndarray) -> "Embedding":
        """Nothing is computed yet."""
        pages = -(-len(tokens_T) // PAGE)
        kv = self.idle.pop() if self.idle else None
        if kv is None or pages > kv.pages:
            kv = PagedKV(self.model.spec, pages, PAGE, self.model.device, 1)
        return Embedding(self, tokens_T, kv)


class Embedding:
    """One prompt, computed chunk by chunk, so that others come in between."""

    def __init__(self, embedder: Embedder, tokens_T: np.ndarray, kv: PagedKV) -> None:
        self.embedder, self.tokens_T, self.kv, self.start = embedder, tokens_T, kv, 0

    def go_on(self, most: int) -> np.ndarray | None:
        """Compute at most so many tokens more. At the end the prompt's vector, float32 [C], of
        length one; None before."""
        model, pages = self.embedder.model, -(-len(self.tokens_T) // PAGE)
        chunk = self.tokens_T[self.start : self.start + most].tolist()
        batch = model.rows(pack([chunk], [self.start], [list(range(pages))], PAGE), self.kv)
        x_TC = model.hidden(batch, self.kv, model.config.layers)
        self.start += len(chunk)
        if self.start < len(self.tokens_T):
            return None
        self.embedder.idle.append(self.kv)
        with torch.inference_mode():
            x_RC = self.embedder.norm(x_TC[torch.from_numpy(batch.logits_at_R).long()].float())
            vector_C = model.mixed(x_RC)[0]
            return torch.nn.functional.normalize(vector_C, dim=0).cpu().numpy()
