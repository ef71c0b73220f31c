"""Orders and answers: what coordinator and peers say to one another, as bytes without pickle.

A world is a group of peers that exchange with one another; it is made anew whenever one of them
comes or goes.
"""

import hashlib
from typing import TypeAlias

import msgspec
from torch import Tensor


class Meet(msgspec.Struct, frozen=True, tag=True):
    """Make this world, standing there in it; `source` gives the state of outer step `round` to
    those in `newcomers`."""

    world: int
    rank: int
    ranks: int
    source: int
    newcomers: list[int]
    round: int


class Train(msgspec.Struct, frozen=True, tag=True):
    """Learn alone up to the outer step `round`, then exchange what has changed."""

    round: int


class Exchange(msgspec.Struct, frozen=True, tag=True):
    """Exchange again, in another world, what has changed: the last one broke."""

    round: int


class Commit(msgspec.Struct, frozen=True, tag=True):
    """All have the mean: take the outer step. `judge`: say the loss by held-out text, too."""

    judge: bool = False


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Go."""


class Answer(msgspec.Struct, frozen=True):
    """What an order came to. `whole`: whether it was done; `digest`: of the mean, or of the outer
    weights and their momentum; `loss`: by held-out text, after an outer step."""

    whole: bool
    digest: str = ""
    loss: float = 0.0
    why: str = ""


Order: TypeAlias = Meet | Train | Exchange | Commit | Leave


def encode(said: Order | Answer) -> bytes:
    return msgspec.msgpack.encode(said)


def decode_order(data: bytes) -> Order:
    """Checked against the types above; nothing in it is run."""
    found: Order = msgspec.msgpack.decode(data, type=Order)
    return found


def decode_answer(data: bytes) -> Answer:
    return msgspec.msgpack.decode(data, type=Answer)


def digest(*tensors: Tensor) -> str:
    """The same for the same bits alone."""
    found = hashlib.blake2b(digest_size=12)
    for tensor in tensors:
        found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()
