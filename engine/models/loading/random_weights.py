"""Untrained weights from a config alone, each tensor drawn from the seed and its own name."""

import zlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters

APART = 0x9E3779B1  # odd, so that no two seeds of 32 bits are mixed alike
SPREAD = 0.02  # standard deviation, as Hugging Face configs have it


class RandomWeights(Mapping[str, Tensor]):
    """Weights by Hugging Face name, made when asked for: normal matrices, neutral norms and biases.

    The same seed and name give the same numbers, whatever the order of asking.
    """

    def __init__(self, config: ModelConfig, seed: int = 0, dtype: str = "float32") -> None:
        self.shapes = {p.name: p.shape for p in all_parameters(config)}
        self.neutral = 1.0 - config.norm_offset
        self.whole = {p.name for p in all_parameters(config) if p.whole}
        self.seed = seed
        self.dtype = getattr(torch, dtype)

    def __getitem__(self, name: str) -> Tensor:
        shape = self.shapes[name]
        if len(shape) == 1:
            value = 1.0 if name in self.whole else self.neutral
            value = 0.0 if name.endswith("bias") else value
            return torch.full(shape, value, dtype=self.dtype)
        generator = torch.Generator().manual_seed(self._seed_of(name))
        return torch.empty(shape).normal_(0, SPREAD, generator=generator).to(self.dtype)

    def _seed_of(self, name: str) -> int:
        """Of 32 bits, since torch's generator on a processor forgets what lies above them."""
        return zlib.crc32(name.encode()) ^ self.seed * APART % 2**32

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)
