"""Small models of every family: configs read, and weights that say something."""

from typing import Any

import torch
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.loading.random_weights import RandomWeights
from tests.engine.models.small_configs import COMMON, FAMILIES


def raw(name: str, **changes: Any) -> dict[str, Any]:
    """The config.json of one small family."""
    return COMMON | FAMILIES[name] | changes


def config(name: str, **changes: Any) -> ModelConfig:
    """The same, read."""
    return parse(raw(name, **changes))


def weights(config: ModelConfig, seed: int = 1) -> dict[str, Tensor]:
    """Weights large enough that attention, routing and norms all matter: seed 0's matrices, with
    vectors drawn by `seed`."""
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, tensor in RandomWeights(config, 0).items():
        if tensor.dim() > 1:
            found[name] = tensor * (1.0 if "embed" in name or "wte" in name else 8.0)
        else:
            found[name] = tensor + 0.1 * torch.randn(tensor.shape, generator=generator)
    return found


CONFIGS = {name: config(name) for name in FAMILIES}
# Those whose logits are the same bits in any batch without being asked to (`Model.exact`).
EXACT = [name for name, it in CONFIGS.items() if not any(it.recurrent) and it.index is None]
# Those without what only the engine's own forward passes know (`ModelConfig.unusual`).
USUAL = tuple(name for name in sorted(FAMILIES) if not CONFIGS[name].unusual)
