"""Block-causal diffusion transformer: each row of cells is a token, tokens of a frame see one
another and those of the frames before it, and every frame has a noise level of its own.

The layers are those of `engine.models`, turned by the
row's place in the film. It says the clean frame; of
a frame at level t there stand 1 - t of that and t of noise. `frames_at_once` is what training
differentiates; `FrameModel` keeps keys and values of frames at the levels they have passed, so that
a pass computes only what is new.

Shape letters: B sequences, F frames, R frames of a pass, T rows of a frame, N numbers of a row, C
hidden, H heads, D head size, S rows seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.diffusion.frames.game import ACTIONS, SIZE
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.layers import feed_forward, linear, norm
from engine.models.loading.safetensors_file import read_header
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.reference import blocks, keys_values, ordered, queries

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


def frames_at_once(
    config: ModelConfig, w: Mapping[str, Tensor], x_BFTN: Tensor, t_BF: Tensor, actions_BF: Tensor
) -> Tensor:
    """The clean rows, [B, F, T, N], of sequences of frames; a frame sees BACK before it."""
    count = x_BFTN.shape[1]
    at_S = torch.arange(count * SIZE)
    frame_S = at_S // SIZE
    ago_SS = frame_S[:, None] - frame_S
    x_BSC = embedded(w, x_BFTN, t_BF, actions_BF).flatten(1, 2)
    order = ordered(config, x_BSC, at_S[None], ((ago_SS >= 0) & (ago_SS <= BACK))[None])
    x_BSC = blocks(config, w, x_BSC, range(config.layers), order)
    outer = roles([p for p in outer_parameters(config) if p.name in w], w)
    x_BSC = norm(config, x_BSC, outer, "norm")
    return F.linear(x_BSC, w["frames.output"]).unflatten(1, (count, SIZE))


@dataclass(frozen=True)
class Row:
    """A frame in a pass: its number and step, its rows, its level, the action told before it, and
    what it sees, (frame, step) of each frame before it."""

    frame: int
    step: int
    x_TN: Tensor
    level: float
    action: int
    sees: tuple[tuple[int, int], ...]


class FrameModel:
    """A trained model and the keys and values of frames, by number and step."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        self.config, self.weights = config, weights
        self.layers = [roles(layer_parameters(config, i), weights) for i in range(config.layers)]
        self.outer = roles([p for p in outer_parameters(config) if p.name in weights], weights)
        self.kept: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """The clean rows, [R, T, N], of the frames of one pass; their keys and values are kept."""
        x_RTN = torch.stack([row.x_TN for row in rows])
        levels = torch.tensor([[row.level] for row in rows])
        actions = torch.tensor([[row.action] for row in rows])
        x_RTC = embedded(self.weights, x_RTN[:, None], levels, actions)[:, 0]
        at = torch.tensor([row.frame for row in rows])[:, None] * SIZE + torch.arange(SIZE)
        turn = ordered(self.config, x_RTC, at).turn
        for row in rows:
            self.kept[row.frame, row.step] = []
        for layer, w in enumerate(self.layers):
            config, h = self.config.at(layer), norm(self.config, x_RTC, w, "attention_norm")
            q, (k, v) = queries(config, w, h, turn), keys_values(config, w, h, turn)
            for number, row in enumerate(rows):
                self.kept[row.frame, row.step].append((k[number], v[number]))
            x_RTC = x_RTC + linear(w, "out", self._seen(rows, layer, q).flatten(-2))
            x_RTC = x_RTC + feed_forward(config, w, norm(config, x_RTC, w, "mlp_norm"))
        return F.linear(norm(self.config, x_RTC, self.outer, "norm"), self.weights["frames.output"])

    def _seen(self, rows: Sequence[Row], layer: int, q_RTHD: Tensor) -> Tensor:
        """Attention of each frame over itself and what it sees."""
        held = [
            [self.kept[key][layer] for key in (*row.sees, (row.frame, row.step))] for row in rows
        ]
        k, v = (torch.stack([torch.cat([one[i] for one in own]) for own in held]) for i in (0, 1))
        q, k, v = (part.transpose(1, 2) for part in (q_RTHD, k, v))
        scale = self.config.scale(layer)
        return F.scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2)

    def forget(self, frames: range) -> None:
        """Give back what is kept of those frames."""
        self.kept = {key: held for key, held in self.kept.items() if key[0] not in frames}


def load_frames(name: str = "distilled", folder: Path | None = None) -> FrameModel:
    """A shipped model, by its name in FILES. Raises BadInput where it is none of frames."""
    folder = folder or dataset(f"diffusion/{SHIPPED}")
    config, stored = read_config(folder), read_header(folder / FILES[name])
    for tensor, shape in extra_shapes(config.hidden).items():
        if tensor not in stored or stored[tensor].shape != shape or config.vocab != len(ACTIONS):
            raise BadInput(f"{folder}: no model of frames; {tensor} should have shape {shape}")
    return FrameModel(config, {key: held.read().float() for key, held in stored.items()})
