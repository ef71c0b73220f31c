"""SingleProcess: a whole model trained in one process, on any loss, by torch's fused AdamW."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import AdamW

from engine.training.loop.checkpoint import Facts, Saved, load_checkpoint, save_checkpoint
from engine.training.loop.learner import Learner
from engine.training.loop.resume import require_same
from engine.training.loop.settings import BETA1, Training

Loss = Callable[[dict[str, Tensor], int], tuple[Tensor, int]]  # weights, step: mean loss, tokens


class SingleProcess(Learner):
    """`weights` are updated in place."""

    def __init__(
        self, weights: dict[str, Tensor], recipe: Training, loss_of: Loss,
        checkpoint: Path | None = None,
    ) -> None:  # fmt: skip
        self.weights, self.recipe, self.loss_of = weights, recipe, loss_of
        self.place, self.facts = checkpoint, {"ranks": 1}
        self.optimizer = adamw(weights, recipe)

    def enter(self, phase: str, step: int) -> None:
        pass  # nobody watches

    def wait(self) -> None:
        pass  # for nobody

    def gradients(self, step: int) -> tuple[float, int]:
        loss, tokens = self.loss_of(self.weights, step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for weight in self.weights.values():
            if weight.grad is None:
                # What no token reached (an expert) still decays.
                weight.grad = torch.zeros_like(weight)
        return loss.item(), tokens

    def update(self, rate: float, asked: bool) -> tuple[float, bool]:
        norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), self.recipe.clip).item()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return norm, asked

    def resume(self, facts: Facts) -> Saved | None:
        assert self.place is not None
        found = load_checkpoint(self.place, self.weights, self.optimizer)
        if found is not None:
            require_same(self.place, found, facts)
        return found

    def save(self, step: int, facts: Facts) -> None:
        assert self.place is not None
        save_checkpoint(self.place, step, self.weights, self.optimizer, facts)

    def whole(self) -> dict[str, Tensor]:
        return {name: weight.detach() for name, weight in self.weights.items()}


def adamw(weights: dict[str, Tensor], recipe: Training) -> AdamW:
    """AdamW (Loshchilov and Hutter, arXiv 1711.05101) that decays matrices, not norms or biases."""
    for weight in weights.values():
        weight.requires_grad_()
    matrices = [weight for weight in weights.values() if weight.ndim > 1]
    vectors = [weight for weight in weights.values() if weight.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (BETA1, recipe.beta2)
    return AdamW(groups, lr=recipe.rate, betas=betas, eps=recipe.eps, fused=True)
