"""An attention problem of a run: its shape, its random inputs, its results, the memory it took.

Shape letters: T tokens of all sequences, H query heads, G key/value heads, D head size.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from engine.core.memory import require
from engine.kernels.attention.arguments import Given, given
from engine.kernels.attention.gradients import Switches, Tensors
from engine.kernels.matmul.pack import aligned

LARGE = 2**26  # bytes beyond which an array is asked for first
FEWER = "take fewer tokens, heads or sequences, or workers=modelled"


class Ledger:
    """Float32 arrays handed out, and bytes held now and at most."""

    def __init__(self) -> None:
        self.held, self.most = 0, 0

    def take(self, *shape: int) -> np.ndarray:
        """A new array of zeros, counted."""
        size = 4 * math.prod(shape)
        if size > LARGE:
            require(size, "this attention", FEWER)
        array = aligned(int(np.prod(shape)), np.float32).reshape(shape)
        self.held += array.nbytes
        self.most = max(self.most, self.held)
        return array

    def give_back(self, array: np.ndarray) -> None:
        """The array is no longer held."""
        self.held -= array.nbytes


class Problem:
    """Inputs are drawn when first asked for: a modelled run never does."""

    def __init__(
        self, lengths: Sequence[int], heads: int, kv_heads: int, dim: int, causal: bool,
        backward: bool, seed: int,
    ) -> None:  # fmt: skip
        self.lengths, self.heads, self.kv_heads = list(lengths), heads, kv_heads
        self.dim, self.causal, self.backward, self.seed = dim, causal, backward, seed
        self.ledger = Ledger()

    @property
    def tokens(self) -> int:
        """Of all sequences."""
        return sum(self.lengths)

    @property
    def share(self) -> int:
        """Query heads for each key head."""
        return self.heads // self.kv_heads

    @property
    def switches(self) -> Switches:
        """Scale and mask."""
        return Switches(self.dim**-0.5, self.causal)

    @property
    def name(self) -> str:
        """The shape in one word."""
        return f"{self.heads}x{self.tokens}x{self.dim}"

    @cached_property
    def tensors(self) -> Tensors:
        """q, k, v and starts."""
        start = torch.tensor([0, *accumulate(self.lengths)])
        q, k, v, _ = self._drawn
        return Tensors(q, k, v, start, start)

    @cached_property
    def do_THD(self) -> Tensor:
        """The gradient that comes back for o."""
        return self._drawn[3]

    @cached_property
    def _drawn(self) -> list[Tensor]:
        # Queries are doubled into another array; results are as large as inputs.
        numbers = self.tokens * self.dim * (5 * self.heads + 4 * self.kv_heads)
        require(4 * numbers, f"{self.tokens:,} tokens of {self.heads} heads", FEWER)
        draw = torch.Generator().manual_seed(self.seed)
        heads = (self.heads, self.kv_heads, self.kv_heads, self.heads)
        # Queries twice as wide as usual: scores differ more, so that the maximum moves on the way.
        q, *rest = (torch.randn(self.tokens, n, self.dim, generator=draw) for n in heads)
        return [2 * q, *rest]

    @cached_property
    def given(self) -> Given:
        """The same, flat."""
        return given(*self.tensors)

    @cached_property
    def results(self) -> dict[str, np.ndarray]:
        """What is asked for, NaN until written: o, and dq, dk, dv where backward runs."""
        wanted = {"o": self.heads}
        if self.backward:
            wanted |= {"dq": self.heads, "dk": self.kv_heads, "dv": self.kv_heads}
        size = self.tokens * self.dim
        return {name: np.full(size * n, np.nan, np.float32) for name, n in wanted.items()}
