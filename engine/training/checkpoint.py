"""A training run on disk: weights, AdamW's moments and the step, in one safetensors file.

Written beside the old one and moved over it, so a crash leaves the last whole checkpoint.
"""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import AdamW

from engine.core.config import Config, to_dict
from engine.core.errors import BadInput

MOMENTS = ("exp_avg", "exp_avg_sq")  # AdamW's names for the first and the second


def save_checkpoint(
    path: Path, step: int, weights: dict[str, Tensor], optimizer: AdamW, recipe: Config
) -> None:
    """`step` is the next one to do. `recipe` goes along as JSON, to tell foreign files apart."""
    tensors = {name: weight.detach() for name, weight in weights.items()}
    for name, weight in weights.items():
        for moment in MOMENTS:
            if weight in optimizer.state:
                tensors[f"{moment}/{name}"] = optimizer.state[weight][moment]
    facts = {"step": str(step), "recipe": json.dumps(to_dict(recipe))}
    fresh = path.with_suffix(".new")
    save_file(tensors, fresh, metadata=facts)
    os.replace(fresh, path)


def load_checkpoint(path: Path, weights: dict[str, Tensor], optimizer: AdamW) -> int:
    """Fill `weights` and `optimizer` in place; the next step to do.

    Raises BadInput where the file is not a checkpoint of these weights.
    """
    try:
        with safe_open(path, "pt") as file:
            step = int((file.metadata() or {})["step"])
            names = set(file.keys())
            for name, weight in weights.items():
                with torch.no_grad():
                    weight.copy_(file.get_tensor(name))
                if f"{MOMENTS[0]}/{name}" in names:
                    optimizer.state[weight] = {
                        "step": torch.tensor(float(step)),
                        **{moment: file.get_tensor(f"{moment}/{name}") for moment in MOMENTS},
                    }
    except (SafetensorError, KeyError, ValueError, RuntimeError) as fault:
        raise BadInput(f"{path}: not a checkpoint of this model ({fault}); delete it") from None
    return step
