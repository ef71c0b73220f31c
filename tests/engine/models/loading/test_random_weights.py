"""Random weights: each seed's own, and seed 0's as ever, which shipped models began at."""

import numpy as np
import torch

from engine.models.loading.random_weights import RandomWeights
from tests.engine.models import small

NAME = "model.embed_tokens.weight"


def test_every_seed_has_weights_of_its_own() -> None:
    config = small.config("llama-3")
    found = [RandomWeights(config, seed)[NAME] for seed in (0, 1, 2, 2**16, 2**31 - 1)]
    for i, one in enumerate(found):
        assert torch.equal(one, found[i]) and not any(torch.equal(one, o) for o in found[:i])
        assert abs(float(one.std()) / 0.02 - 1) < 0.1
    flat = np.corrcoef([one.flatten() for one in found])
    assert abs(flat - np.eye(len(found))).max() < 0.1


def test_matrices_of_one_seed_differ_and_repeat() -> None:
    weights = RandomWeights(small.config("llama-3"), 7)
    first, second = (weights[f"model.layers.{i}.mlp.up_proj.weight"] for i in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, weights["model.layers.0.mlp.up_proj.weight"])


def test_seed_0_is_what_shipped_models_began_at() -> None:
    begun = RandomWeights(small.config("llama-3"), 0)[NAME].flatten()[:3]
    torch.testing.assert_close(begun, torch.tensor([0.00544917, 0.00155788, -0.01903660]))
