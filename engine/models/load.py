"""Models from a Hugging Face folder or with random weights, and weights back into a folder."""

import json
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.model import Model
from engine.models.parameters import all_parameters
from engine.models.random import RandomWeights


def random_weights(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> dict[str, Tensor]:
    """Untrained weights under their Hugging Face names."""
    return dict(RandomWeights(config, seed, dtype))


def random_model(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> Model:
    """An untrained model: any public architecture without its weights."""
    return Model(config, RandomWeights(config, seed, dtype), dtype)


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
