"""Codec: what a float32 vector becomes on the wire, as bytes that are really packed."""

from abc import abstractmethod

import torch
from torch import Tensor

from engine.core.config import Policy


class Codec(Policy):
    """Concrete ones lie one to a file in `codecs`. `pack` and `unpack` are each other's inverse
    up to rounding, and equal on every replica."""

    folder = "engine.training.low_communication.codecs"

    @abstractmethod
    def bytes(self, count: int) -> int:
        """Size of `count` packed numbers."""

    @abstractmethod
    def pack(self, x_N: Tensor) -> Tensor:
        """uint8 of shape [bytes(N)] for float32 [N]."""

    @abstractmethod
    def unpack(self, packed: Tensor, count: int) -> Tensor:
        """float32 of shape [count]; a tensor of its own."""


def blocks(x_N: Tensor, size: int) -> Tensor:
    """[⌈N / size⌉, size], the end filled with zeros."""
    short = -len(x_N) % size
    return torch.nn.functional.pad(x_N, (0, short)).view(-1, size)


def raw(x: Tensor) -> Tensor:
    """The bytes of a tensor."""
    return x.contiguous().view(torch.uint8).reshape(-1)


def numbers(packed: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor of `dtype` from its bytes, wherever in a message they lay."""
    return packed.clone().view(dtype)
