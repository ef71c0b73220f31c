"""Block-causal diffusion transformer: each row of cells is a token, tokens of a frame see one
another and those of the frames before it, and every frame has a noise level of its own.

The layers are those of `engine.models`, turned by the row's place in the film. It says the clean
frame; of a frame at level t there stand 1 - t of that and t of noise.

Shape letters: B films, F frames, R frames of a step, T rows of a frame, N numbers, C hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.errors import BadInput
from engine.diffusion.frames.game import ACTIONS, SIZE
from engine.diffusion.model import folder_of
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.loading.safetensors_file import read_header
from engine.models.model import Model

SHIPPED = "catch-frames-150k"
NUMBERS = 2 * SIZE  # of a row: both planes
BACK = 3  # frames before its own that one sees
LIT = 4.0  # of a lit cell, of which there are few: numbers vary about as much as noise
WAVES = 8  # numbers that tell a noise level
FILES = {"distilled": "model.safetensors", "teacher": "teacher.safetensors"}


def extra_shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """What frames need beside a language model's weights."""
    return {
        "frames.rows": (SIZE, hidden),
        "frames.input": (hidden, NUMBERS),
        "frames.level": (hidden, WAVES),
        "frames.output": (NUMBERS, hidden),
    }


def numbers(frames: Tensor) -> Tensor:
    """Cells [..., 2, SIZE, SIZE] as rows of numbers [..., SIZE, NUMBERS], each 0 or LIT."""
    return frames.transpose(-3, -2).flatten(-2).float() * LIT


def cells(rows: Tensor) -> Tensor:
    """The nearest cells of rows of numbers, uint8."""
    return (rows > LIT / 2).to(torch.uint8).unflatten(-1, (2, SIZE)).transpose(-3, -2)


def embedded(w: Mapping[str, Tensor], x_BFTN: Tensor, t_BF: Tensor, actions_BF: Tensor) -> Tensor:
    """x_BFTC of noisy rows, their frames' levels and the actions told before them."""
    waves_BFK = torch.cos(t_BF[..., None] * torch.arange(WAVES) * pi)
    told_BFC = F.linear(waves_BFK, w["frames.level"])
    told_BFC = told_BFC + F.embedding(actions_BF, w["model.embed_tokens.weight"])
    return F.linear(x_BFTN, w["frames.input"]) + w["frames.rows"] + told_BFC[..., None, :]


@dataclass(frozen=True)
class FrameModel:
    """A trained model: what it is, and its weights by name."""

    config: ModelConfig
    weights: Mapping[str, Tensor]

    @torch.inference_mode()
    def embed(self, x_RTN: Tensor, levels: Sequence[float], actions: Sequence[int]) -> np.ndarray:
        """Rows as the layers take them, float32 [R * T, C]."""
        told = torch.tensor([levels]), torch.tensor([actions])
        return embedded(self.weights, x_RTN[None], *told).flatten(0, 2).numpy()

    def opened(self) -> Model:
        """Its layers as an engine runs them. They say the NUMBERS of a clean row in the place of
        logits; its first tokens are the actions, and the others nothing."""
        names = "model.embed_tokens.weight", "lm_head.weight"
        table, head = self.weights[names[0]], self.weights["frames.output"]
        table = F.pad(table, (0, 0, 0, NUMBERS - len(table)))
        config = replace(self.config, vocab=NUMBERS, tied=False)
        return Model(config, {**self.weights, names[0]: table, names[1]: head})


def load_frames(name: str = "distilled", weights: str | Path = SHIPPED) -> FrameModel:
    """A shipped model or a folder's, by its name in FILES. Raises BadInput where it is none."""
    folder = folder_of(str(weights), SHIPPED)
    config, stored = read_config(folder), read_header(folder / FILES[name])
    for tensor, shape in extra_shapes(config.hidden).items():
        if tensor not in stored or stored[tensor].shape != shape or config.vocab != len(ACTIONS):
            raise BadInput(f"{folder}: no model of frames; {tensor} should have shape {shape}")
    return FrameModel(config, {key: held.read().float() for key, held in stored.items()})
