"""Models from a Hugging Face folder, or with random weights from a config alone; and back to disk."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters

SPREAD = 0.02  # standard deviation of random weights, as Hugging Face configs have it


def random_weights(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> dict[str, Tensor]:
    """Untrained weights under their Hugging Face names: normal matrices, neutral norms and biases.

    The same seed gives the same numbers on every machine with the same torch.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    neutral = 1.0 - config.norm_offset
    weights = {}
    for parameter in all_parameters(config):
        if len(parameter.shape) > 1:
            wide = torch.empty(parameter.shape).normal_(0, SPREAD, generator=generator)
            weights[parameter.name] = wide.to(kind)
        elif parameter.name.endswith("bias"):
            weights[parameter.name] = torch.zeros(parameter.shape, dtype=kind)
        else:
            weights[parameter.name] = torch.full(parameter.shape, neutral, dtype=kind)
    return weights


def save(path: str | Path, config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Write config.json and model.safetensors into a folder that transformers loads too."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    names = [parameter.name for parameter in all_parameters(config)]
    dtype = str(weights[names[0]].dtype).removeprefix("torch.")
    raw = config.raw | {"dtype": dtype, "torch_dtype": dtype}
    (folder / "config.json").write_text(json.dumps(raw, indent=2) + "\n", encoding="utf-8")
    tensors = {name: weights[name].detach().contiguous() for name in names}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
