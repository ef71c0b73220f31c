"""TinyModel: the small language model that a pipeline's real ranks train, and its drawn tokens."""

from typing import NamedTuple

import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig, Rotary

COMPARED = 4_000_000  # parameters of a model whose gradients are held to one process's


class TinyModel(NamedTuple):
    """A Llama with heads of 16. `rows`: sequences of a microbatch; `sequence`: tokens of each."""

    layers: int
    hidden: int
    vocabulary: int
    sequence: int
    rows: int
    seed: int

    def config(self) -> ModelConfig:
        """Raises BadInput where heads of 16 do not fit."""
        if self.hidden % 16:
            raise BadInput(f"hidden size {self.hidden}: heads have 16; take a multiple of 16")
        heads = self.hidden // 16
        return ModelConfig(
            architecture="LlamaForCausalLM", family="llama", vocab=self.vocabulary,
            hidden=self.hidden, layers=self.layers, heads=heads, kv_heads=heads, head_dim=16,
            width=2 * self.hidden, max_positions=self.sequence, norm_eps=1e-5,
            attention_scale=0.25, windows=(0,) * self.layers,
            expert_layers=(False,) * self.layers, rotary=Rotary(16),
        )  # fmt: skip

    def microbatches(self, count: int) -> list[tuple[Tensor, Tensor]]:
        """Drawn tokens and the ones after them."""
        drawn = torch.Generator().manual_seed(self.seed)
        shape = (count, self.rows, self.sequence + 1)
        ids = torch.randint(0, self.vocabulary, shape, generator=drawn)
        return [(each[:, :-1].clone(), each[:, 1:].clone()) for each in ids]

    @property
    def compared(self) -> bool:
        """Whether it is small enough to be held to one process's gradients."""
        model = self.config()
        layer = 4 * model.hidden**2 + 3 * model.hidden * model.width
        return model.layers * layer + 2 * model.vocab * model.hidden <= COMPARED
