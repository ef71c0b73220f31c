"""Parallelism policies: how the ranks of a replica share the work of each step.

By tensors each rank computes a part of every matrix for all tokens; by tokens (sequence parallelism
as in Ulysses) a part of the tokens with whole matrices, and exchanges them for heads around
attention. Both keep the same heads of all tokens on a rank, so that either reads what the other
wrote.
"""

from abc import abstractmethod
from typing import Literal

from engine.core.config import Policy, knob
from engine.core.errors import BadInput


class Parallelism(Policy):
    """How ranks share a step."""

    folder = "engine.inference.policies.parallelism"

    @abstractmethod
    def by_tokens(self, tokens: int) -> bool:
        """Whether a step of so many new tokens is shared by tokens, not by tensors."""

    @abstractmethod
    def copies(self, ranks: int) -> tuple[int, ...]:
        """Into how many tensor parts each copy of the weights is cut, of those kept on `ranks`
        ranks; the one for steps shared by tokens first. Raises BadInput where it does not fit."""


class ByTensors(Parallelism):
    """Tensor parallelism: each rank a part of every matrix, sums after each half of a layer."""

    kind: Literal["tensor"] = "tensor"

    def by_tokens(self, tokens: int) -> bool:
        return False

    def copies(self, ranks: int) -> tuple[int, ...]:
        return (ranks,)


class ByTokens(Parallelism):
    """Sequence parallelism: groups of ranks share tokens, ranks of a group whole matrices."""

    kind: Literal["sequence"] = "sequence"
    groups: int = knob(0, "Groups of ranks that share tokens; 0: each rank is one", low=0, high=64)

    def by_tokens(self, tokens: int) -> bool:
        return True

    def copies(self, ranks: int) -> tuple[int, ...]:
        groups = self.groups or ranks
        if ranks < 2 or ranks % groups:
            raise BadInput(
                f"parallelism {self.kind}: {groups} groups of {ranks} ranks; take a number that "
                "divides them, and tensor_parallel of 2 at least"
            )
        return (ranks // groups,)


class Shift(ByTokens):
    """Shift Parallelism (arXiv 2509.16495): by tokens where a step has many, else by tensors."""

    kind: Literal["shift"] = "shift"  # type: ignore[assignment]
    threshold: int = knob(
        512, "New tokens of a step above which it is shared by tokens", low=0, high=1 << 20,
        unit="tokens",
    )  # fmt: skip
    fault: Literal["none", "inverted", "head_order"] = knob(
        "none", "What goes wrong: few tokens are shared by tokens and many by tensors, or tensor "
        "parts read other heads than those that a rank keeps", group="faults",
    )  # fmt: skip

    def by_tokens(self, tokens: int) -> bool:
        return (tokens > self.threshold) != (self.fault == "inverted")

    def copies(self, ranks: int) -> tuple[int, ...]:
        return (*super().copies(ranks), ranks)
