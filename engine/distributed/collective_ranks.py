"""A collective's plan carried out on real ranks, message by message."""

from collections.abc import Sequence

from torch import Tensor

from engine.distributed.collective import Transfers
from engine.distributed.transport import Shape, Transport


def carry_out(
    transport: Transport, plan: Transfers, x: Tensor, task: str, members: Sequence[int] = ()
) -> Tensor:
    """What this rank has in the end; `x` is left alone. `members`: the ranks that take part, all of
    them where it is empty; every one of them calls this with a tensor of the same length."""
    ranks = list(members) or list(range(transport.ranks))
    here = ranks.index(transport.rank)
    flat = x.detach().clone().reshape(-1)
    first, edge = flat.clone() if plan.original else flat, plan.bounds(flat.numel())
    for number, round in enumerate(plan.rounds):
        said = f"{task}/{number}"
        coming = []
        for each in round:
            if each.target == here:
                shape = Shape((edge[each.last] - edge[each.first],), flat.dtype)
                coming.append((each, transport.receive(ranks[each.source], [shape], said)))
        for each in round:
            if each.source == here:
                part = first[edge[each.first] : edge[each.last]]
                transport.send(ranks[each.target], [part], said)
        for each, ticket in coming:
            (part,) = transport.take(ticket)
            start = edge[each.first if each.place < 0 else each.place]
            there = flat[start : start + part.numel()]
            if each.add:
                there += part
            else:
                there.copy_(part)
    return flat.reshape(x.shape)
