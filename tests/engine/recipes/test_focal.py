"""Focal loss against its formula and its derivative by hand."""

import pytest
import torch
import torch.nn.functional as F

from engine.recipes.focal import focal


def drawn(double: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    logits_LV = torch.randn(9, 5, dtype=torch.float64 if double else torch.float32) * 3
    return logits_LV, torch.randint(0, 5, (9,))


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0, 3.5])
def test_the_value_is_the_formula(gamma: float) -> None:
    logits_LV, target_L = drawn()
    p_L = logits_LV.softmax(-1)[torch.arange(9), target_L]
    want_L = -((1 - p_L) ** gamma) * p_L.log()
    assert torch.allclose(focal(logits_LV, target_L, gamma), want_L, atol=1e-12)


def test_without_focus_it_is_cross_entropy() -> None:
    logits_LV, target_L = drawn(double=False)
    want_L = F.cross_entropy(logits_LV, target_L, reduction="none")
    assert torch.equal(focal(logits_LV, target_L, 0.0), want_L)


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_the_gradient_is_the_derivative_by_hand(gamma: float) -> None:
    """d/dz_v = (gamma p (1-p)^(gamma-1) log p - (1-p)^gamma) (1[v = target] - p_v)."""
    logits_LV, target_L = drawn()
    logits_LV.requires_grad_()
    focal(logits_LV, target_L, gamma).sum().backward()
    all_LV = logits_LV.detach().softmax(-1)
    p_L1 = all_LV[torch.arange(9), target_L][:, None]
    outer_L1 = gamma * p_L1 * (1 - p_L1) ** (gamma - 1) * p_L1.log() - (1 - p_L1) ** gamma
    want_LV = outer_L1 * (F.one_hot(target_L, 5) - all_LV)
    assert torch.allclose(logits_LV.grad, want_LV, atol=1e-10)


def test_sure_verdicts_count_next_to_nothing_and_stay_finite() -> None:
    logits_LV = torch.tensor([[30.0, -30.0], [0.0, 0.0]], requires_grad=True)
    loss_L = focal(logits_LV, torch.tensor([0, 0]), 2.0)
    loss_L.sum().backward()
    assert loss_L[0] < 1e-12 < loss_L[1]
    assert logits_LV.grad.isfinite().all()
