"""The mean of a vector over all ranks, in two rounds of messages, the same bits on every rank.

Each rank is in charge of a share: all send it their part of that share, it adds them in order of
rank and sends the mean to all. That moves 2 (n - 1) / n of the vector out of each rank, as a ring.
"""

import torch
from torch import Tensor

from engine.distributed.transport import Shape, Transport


def mean(transport: Transport, x_P: Tensor, task: str) -> Tensor:
    """[P]: the mean of the ranks' `x_P`, which have the same length and dtype."""
    ranks = transport.ranks
    if ranks == 1:
        return x_P
    shares = x_P.tensor_split(ranks)
    own = shares[transport.rank]
    parts = _exchange(transport, list(shares), [own] * ranks, f"{task}/shares")
    mean_S = torch.stack(parts).sum(0) / ranks
    return torch.cat(_exchange(transport, [mean_S] * ranks, list(shares), f"{task}/means"))


def from_first(transport: Transport, tensors: list[Tensor], task: str) -> None:
    """Rank 0's `tensors` on all ranks, in place."""
    if transport.rank == 0:
        for rank in range(1, transport.ranks):
            transport.send(rank, tensors, task)
        return
    shapes = [Shape(tuple(tensor.shape), tensor.dtype) for tensor in tensors]
    found = transport.take(transport.receive(0, shapes, task))
    with torch.no_grad():
        for tensor, value in zip(tensors, found, strict=True):
            tensor.copy_(value)


def _exchange(
    transport: Transport, out: list[Tensor], like: list[Tensor], task: str
) -> list[Tensor]:
    """What each rank sent here, in order of rank, one's own among them; `like` says its shape."""
    here = transport.rank
    others = [rank for rank in range(transport.ranks) if rank != here]
    tickets = {
        rank: transport.receive(rank, [Shape(tuple(like[rank].shape), like[rank].dtype)], task)
        for rank in others
    }
    for rank in others:
        transport.send(rank, [out[rank]], task)
    found = {rank: transport.take(tickets[rank])[0] for rank in others}
    return [out[here] if rank == here else found[rank] for rank in range(transport.ranks)]
