"""Experts stored as one tensor for all, read one at a time: gpt-oss in floats or in MXFP4 blocks,
and Gemma-4.

gpt-oss has in each layer `gate_up_proj` [E, C, 2·W], gate and up in turns, and `down_proj`
[E, W, C], with biases; or as MXFP4 (Microscaling Formats 1.0: e2m1 codes, 32 under a power of two)
`…_blocks` [E, N, K/32, 16] with two codes a byte, the lower first, and `…_scales` [E, N, K/32].
Gemma-4 has `gate_up_proj` [E, 2·W, C], gate before up, and `down_proj` [E, C, W].
Shape letters: E experts, C hidden, W expert width, N outputs, K inputs.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.weight import Quantised
from engine.models.config import ModelConfig
from engine.models.loading.safetensors_file import Stored

OURS = re.compile(
    r"(model\.layers\.\d+(\.mlp)?\.experts)\.(\d+)\.(gate|up|down)_proj\.(weight|bias)"
)
BLOCK = 32
EVERY = {"gate": slice(0, None, 2), "up": slice(1, None, 2), "down": slice(None)}


@dataclass(frozen=True, slots=True)
class StoredExpert:
    """One expert's part of what is stored for all; `scales` beside MXFP4 blocks."""

    path: Path
    name: str
    part: Stored
    scales: Stored | None
    role: str
    is_bias: bool
    beside: bool = False  # a feed-forward (Gemma-4): outputs first, gate before up

    @property
    def shape(self) -> tuple[int, ...]:
        """As if it were stored alone: outputs first."""
        sides = self.part.shape
        turns = 1 if self.role == "down" else 2
        if self.beside:
            return (sides[0] // turns, sides[1])
        if self.is_bias or self.scales is not None:
            whole = (sides[0], *(() if self.is_bias else (math.prod(sides[1:]) * 2,)))
        else:
            whole = (sides[1], sides[0])
        return (whole[0] // turns, *whole[1:])

    @property
    def bytes(self) -> int:
        """Bytes of it in the file."""
        both = self.part.bytes + (self.scales.bytes if self.scales else 0)
        return both // (1 if self.role == "down" else 2)

    def read(self) -> Tensor:
        """The tensor as numbers."""
        if self.scales is not None:
            return self.codes().dequantised()
        tensor = self.part.read()
        if self.beside:
            half = 0 if self.role == "down" else len(tensor) // 2
            return tensor[half:] if self.role == "up" else tensor[: half or None]
        return (tensor if self.is_bias else tensor.T)[EVERY[self.role]].contiguous()

    def codes(self) -> Quantised:
        """The MXFP4 matrix as codes and scales. Raises BadInput for a scale that is none."""
        assert self.scales is not None
        every = EVERY[self.role]
        raw, powers = self.part.raw()[every], self.scales.raw()[every]
        if (powers == 255).any():
            raise BadInput(f"{self.path}: tensor {self.scales.name!r} has scales that are NaN")
        both = np.stack([raw & 15, raw >> 4], axis=-1)
        scales_NG = np.ldexp(np.float32(1), powers.astype(np.int32) - 127).astype(np.float32)
        codes_NK = np.ascontiguousarray(both.reshape(len(raw), -1))
        return Quantised(format_of("e2m1"), codes_NK, scales_NG, None, BLOCK)


def stored_expert(held: Mapping[str, Stored], name: str) -> StoredExpert | None:
    """One expert's tensor by its name alone; None where it is not stored so."""
    found = OURS.fullmatch(name)
    if found is None:
        return None
    root, expert, role, kind = found[1], int(found[3]), found[4], found[5]
    whole = f"{root}.{'down' if role == 'down' else 'gate_up'}_proj"
    if kind == "bias":
        return _one(held, name, f"{whole}_bias", "", expert, role, 2)
    if f"{whole}_blocks" in held:
        return _one(held, name, f"{whole}_blocks", f"{whole}_scales", expert, role, 4)
    return _one(held, name, whole, "", expert, role, 3)


def _one(
    held: Mapping[str, Stored],
    name: str,
    whole: str,
    scales: str,
    expert: int,
    role: str,
    rank: int,
) -> StoredExpert | None:
    if whole not in held or (scales and scales not in held):
        return None
    parts = [held[each] for each in (whole, scales) if each]
    first = parts[0]
    if len(first.shape) != rank or any(part.shape[:1] != first.shape[:1] for part in parts):
        return None
    if expert >= first.shape[0] or (scales and not _is_mxfp4(*parts)):
        return None
    slices = [_slice(part, expert) for part in parts]
    return StoredExpert(
        first.path, name, slices[0], slices[1] if scales else None, role, rank == 2,
        beside=".mlp." not in name,
    )  # fmt: skip


def _is_mxfp4(blocks: Stored, scales: Stored) -> bool:
    right = blocks.shape[-1] == BLOCK // 2 and blocks.shape[:-1] == scales.shape
    return right and (blocks.dtype, scales.dtype) == ("U8", "U8")


def _slice(stored: Stored, number: int) -> Stored:
    each = stored.bytes // stored.shape[0]
    start = stored.start + number * each
    return Stored(stored.path, stored.name, stored.dtype, stored.shape[1:], start, each)


def stacked(config: ModelConfig, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are stored: every layer's experts as one, the rest as they are."""
    if config.experts is None or config.experts.names not in ("stacked", "beside"):
        return dict(tensors)
    found = {name: tensor for name, tensor in tensors.items() if not OURS.fullmatch(name)}
    kinds = (("weight", ""), ("bias", "_bias"))
    for layer in range(config.layers):
        root = f"model.layers.{layer}{'' if config.fed_twice else '.mlp'}.experts"
        for last, suffix in kinds[:1] if config.fed_twice else kinds:
            gate, up, down = (
                torch.stack(
                    [tensors[f"{root}.{e}.{role}_proj.{last}"] for e in range(config.experts.count)]
                )
                for role in ("gate", "up", "down")
            )
            if config.fed_twice:
                found[f"{root}.gate_up_proj"] = torch.cat([gate, up], dim=1)
                found[f"{root}.down_proj"] = down
                continue
            both = torch.stack([gate, up], dim=2).flatten(1, 2)
            for role, whole in (("gate_up", both), ("down", down)):
                turned = whole.transpose(1, 2) if last == "weight" else whole
                found[f"{root}.{role}_proj{suffix}"] = turned.contiguous()
    return found
