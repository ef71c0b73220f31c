"""Sizes of recurrent layers (gated delta rule, Mamba-2), for whoever counts what they cost.

Nothing here needs torch: what a model costs is asked by those who compute nothing.
"""

from dataclasses import dataclass
from typing import Protocol


class Recurrence(Protocol):
    """Sizes that every kind of recurrent layer has."""

    @property
    def channels(self) -> int:
        """What is convolved."""

    @property
    def kernel(self) -> int:
        """Width of the causal convolution."""

    @property
    def matrix(self) -> tuple[int, int, int]:
        """Heads, keys and values of the state."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Gated delta rule (arXiv 2412.06464): linear attention whose state is a matrix for each head.

    `kernel`: width of the causal convolution before it. `by_head`: projections lie in the
    checkpoint by key head (Qwen3-Next), else by part (Qwen3.5).
    """

    key_heads: int
    value_heads: int
    key: int
    value: int
    kernel: int
    by_head: bool

    @property
    def channels(self) -> int:
        """What is convolved: queries, keys and values."""
        return 2 * self.key_heads * self.key + self.width

    @property
    def width(self) -> int:
        """Numbers of all heads' values."""
        return self.value_heads * self.value

    @property
    def matrix(self) -> tuple[int, int, int]:
        """Heads, keys and values of the state."""
        return self.value_heads, self.key, self.value

    @property
    def flops(self) -> int:
        """Of a token, projections left out: the matrix decays, is read by key, takes an outer
        product, is read by query."""
        return 7 * self.value_heads * self.key * self.value + 2 * self.channels * self.kernel


@dataclass(frozen=True, slots=True)
class Mamba:
    """Mamba-2's sizes. Heads of a `group` share what writes and reads the state.

    `kernel`: width of the causal convolution. `bias`: of both projections; `kernel_bias`: of the
    convolution.
    """

    heads: int
    head: int
    groups: int
    state: int
    kernel: int
    bias: bool
    kernel_bias: bool

    @property
    def width(self) -> int:
        """Numbers of all heads' values."""
        return self.heads * self.head

    @property
    def channels(self) -> int:
        """What is convolved: values, and what writes and reads the state."""
        return self.width + 2 * self.groups * self.state

    @property
    def matrix(self) -> tuple[int, int, int]:
        """Heads, keys and values of the state."""
        return self.heads, self.state, self.head

    @property
    def flops(self) -> int:
        """Of a token, projections left out: the state decays, takes an outer product, is read."""
        return 5 * self.heads * self.state * self.head + 2 * self.channels * self.kernel


def state_shapes(part: Recurrence) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Names and shapes of what a layer keeps of one sequence, all in float32."""
    return (("inputs", (part.channels, part.kernel - 1)), ("matrix", part.matrix))
