"""Parallelism context of a layer: its tensor and context groups, and the sums it owes them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.distributed.axis import Axis
from engine.training.context_parallel.algorithm import SequenceAttention
from engine.training.context_parallel.piece import Piece
from engine.training.parallel.tensor.regions import enter, gathered, leave, scattered

LeftOut = Literal["nothing", "activations", "gradients", "tied"]
Phase = Callable[[int, str], AbstractContextManager[None]]  # told which tensor rank does what


def unseen(_rank: int, _name: str) -> AbstractContextManager[None]:
    """A phase that nobody watches."""
    return nullcontext()


@dataclass
class Parallelism:
    """`tensor` shares each matrix, `context` each sequence, whose positions `spans` deals out: they
    are those of the step under way, for a training may change the length of its sequences.

    `sequence_parallel`: norms see a tensor rank's part of the tokens, so all-reduces become
    reduce-scatters and all-gathers. `left_out`: a sum that is not made, which is wrong, to show
    that it is. Activations stand as BTC.

    `turns`: so many tensor ranks take turns in this process, and nothing travels; 0: each has a
    process of its own. `phase` sees what each of them does.
    """

    tensor: Axis
    context: Axis
    spans: Sequence[Sequence[range]]
    attention: SequenceAttention | None  # None where each sequence is whole
    sequence_parallel: bool = False
    left_out: LeftOut = "nothing"
    turns: int = 0
    phase: Phase = unseen

    @property
    def ranks(self) -> int:
        """Tensor ranks that share each matrix."""
        return self.turns or self.tensor.size

    @property
    def here(self) -> Sequence[int]:
        """Those of them that this process computes."""
        return range(self.turns) if self.turns else (self.tensor.at,)

    @property
    def device(self) -> torch.device:
        """Where the rank's tensors lie."""
        return torch.device("cpu") if self.turns else self.tensor.rank.device

    def into(self, x_BTC: Tensor, task: str) -> Tensor:
        """What every tensor rank multiplies by its part of a matrix: all of the tokens."""
        if self.sequence_parallel:
            return gathered(x_BTC, self.tensor, 1, task)
        return enter(x_BTC, self.tensor, task)

    def out_of(self, x_BTC: Tensor, task: str) -> Tensor:
        """The sum of the tensor ranks' products, as the norms want it."""
        summed = self.left_out != "activations"
        if self.sequence_parallel:
            if summed:
                return scattered(x_BTC, self.tensor, 1, task)
            return x_BTC.chunk(self.tensor.size, 1)[self.tensor.at]
        return leave(x_BTC, self.tensor, task) if summed else x_BTC

    def whole(self, weight: Tensor, partial: bool, task: str) -> Tensor:
        """A weight that every tensor rank has; `partial`: each finds a share of its gradient."""
        return enter(weight, self.tensor, task) if partial else weight

    def piece(self, dim: int, heads: int) -> Piece:
        """This rank's part of split attention; `heads`: query heads here times sequences."""
        return Piece(self.context.at, self.spans, True, dim, heads)


class _Alone:
    """An axis of one member: a process without others."""

    at, size = 0, 1


def in_turns(ranks: int, phase: Phase = unseen) -> Parallelism:
    """Tensor ranks of one process, which run the mesh's forward one after the other."""
    alone = cast(Axis, _Alone())
    return Parallelism(alone, alone, (), None, turns=ranks, phase=phase)


def parts_fit(tokens: int, tensor: int) -> None:
    """Raises BadInput where a rank's tokens cannot be dealt to `tensor` ranks for their norms."""
    if tokens % tensor:
        raise BadInput(
            f"tokens {tokens} of a rank: sequence-parallel norms cannot deal them to {tensor} "
            "tensor ranks; take a multiple, or leave it off"
        )
