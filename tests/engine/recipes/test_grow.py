"""A grown model starts as the same function and has somewhere to go."""

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.models.reference import dense
from engine.recipes.grow import grow
from engine.recipes.recipe import Recipe
from engine.training.losses.language import fresh_weights

SMALL = Recipe(
    name="small", entries=258, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, width=48
)
LARGE = update(SMALL, {"hidden": 64, "layers": 3, "heads": 8, "kv_heads": 4, "width": 80})
TOKENS = torch.arange(40).reshape(2, 20) + 7


def weights(recipe: Recipe, seed: int) -> dict[str, torch.Tensor]:
    """Fresh ones scaled up, norms uneven, so that every part matters to the logits."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: weight * 8 if weight.ndim > 1 else 1 + torch.rand(weight.shape, generator=generator)
        for name, weight in fresh_weights(recipe.model(), seed).items()
    }


def test_a_grown_model_computes_the_same_function() -> None:
    small = weights(SMALL, 1)
    grown = grow(SMALL.model(), small, LARGE.model(), weights(LARGE, 2))
    expected = dense(SMALL.model(), small, TOKENS)
    assert expected.std() > 1
    # The norms' epsilon weighs more where half the dimensions are zero; nothing else differs.
    assert torch.allclose(dense(LARGE.model(), grown, TOKENS), expected, atol=1e-2)


def test_every_matrix_of_a_grown_model_can_learn() -> None:
    grown = grow(SMALL.model(), weights(SMALL, 1), LARGE.model(), weights(LARGE, 2))
    for weight in grown.values():
        weight.requires_grad_()
    logits = dense(LARGE.model(), grown, TOKENS)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), TOKENS.flatten()).backward()
    for name in ("model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight"):
        gradient = grown[name].grad
        assert gradient is not None
        assert gradient[..., -1].abs().sum() > 0


@pytest.mark.parametrize("change", [{"head_dim": 16}, {"kv_heads": 8}, {"layers": 1}])
def test_shapes_that_cannot_hold_the_small_model_are_refused(change: dict[str, int]) -> None:
    large = update(LARGE, change)
    with pytest.raises(BadInput, match="do not fit"):
        grow(SMALL.model(), weights(SMALL, 1), large.model(), weights(large, 2))
