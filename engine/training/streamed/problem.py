"""A model's weights and a batch to learn from, as numbers drawn from a seed or as shapes alone.

Shape letters: B sequences, T tokens.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.loading.random_weights import RandomWeights
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.streamed.model import Model
from engine.training.streamed.objectives import Batch, Objective

LOUD = 4.0  # random matrices are scaled up, so that attention and gradients are not all alike


def weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Leaves under their Hugging Face names."""
    return {
        name: (tensor * (LOUD if tensor.ndim > 1 else 1.0)).requires_grad_()
        for name, tensor in RandomWeights(config, seed).items()
    }


def clear(found: Mapping[str, Tensor]) -> None:
    """Gradients to zero."""
    for tensor in found.values():
        tensor.grad = torch.zeros_like(tensor)


def batch(config: ModelConfig, rows: int, length: int, seed: int) -> Batch:
    """Random tokens, of which the last three quarters are the answer.

    What other models would have said lies about the log-probability of a guess.
    """
    generator = torch.Generator().manual_seed(seed)
    ids_BT = torch.randint(config.vocab, (rows, length + 1), generator=generator)
    counts_BT = (torch.arange(length) >= length // 4).float().expand(rows, length)
    guess = -torch.tensor(float(config.vocab)).log()
    old_BT, reference_BT = (
        guess + 0.3 * torch.randn(rows, length, generator=generator) for _ in range(2)
    )
    advantage_B = torch.randn(rows, generator=generator)
    return Batch(ids_BT[:, :-1], ids_BT[:, 1:], counts_BT, advantage_B, old_BT, reference_BT)


def shaped(
    config: ModelConfig, rows: int, length: int, tile: int, dtype: torch.dtype
) -> tuple[Model, Batch]:
    """The same without numbers, on torch's meta device."""
    found = {
        p.name: torch.empty(p.shape, dtype=dtype, device="meta").requires_grad_()
        for p in all_parameters(config)
    }
    ids_BT = torch.empty(rows, length, dtype=torch.int64, device="meta")
    real_BT = torch.empty(rows, length, device="meta")
    real_B = torch.empty(rows, device="meta")
    return Model(config, found, tile), Batch(ids_BT, ids_BT, real_BT, real_B, real_BT, real_BT)


def truth(config: ModelConfig, found: dict[str, Tensor], to: Batch, objective: Objective) -> float:
    """The loss, and gradients in `.grad`, by autograd of the whole dense forward."""
    logits_BTV = dense(config, found, to.ids_BT)
    lost = F.cross_entropy(logits_BTV.flatten(0, 1), to.target_BT.flatten(), reduction="none")
    loss = objective.loss(-lost.view_as(to.target_BT), to, slice(None))
    loss.backward()
    return loss.item()
