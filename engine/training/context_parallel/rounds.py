"""Ring rounds, the two ways: keys travel past the queries, or queries past the keys.

Each is a program that gives `act(of, held)` every rank's travelling tensors in turn, `of` being the
rank they belong to, while the next are already on their way.
"""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor

from engine.distributed.program import Compute, Program, Receive, Send, Wait, shapes_of
from engine.training.context_parallel.piece import Piece

Act = Callable[[int, Sequence[Tensor]], Sequence[Tensor]]
Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]


def size(*groups: Sequence[Tensor]) -> float:
    """Bytes of tensors."""
    return float(sum(tensor.nbytes for group in groups for tensor in group))


def added(total: Sequence[Tensor], more: Sequence[Tensor]) -> Sequence[Tensor]:
    return [a + b for a, b in zip(total, more, strict=True)]


def keys_travel(
    piece: Piece, name: str, own: Sequence[Tensor], act: Act, combine: Combine, each: int
) -> Program[Sequence[Tensor] | None]:
    """Everybody's `own` passes here; what `act` made of them, combined. `each`: flops of a pair.

    Blocks of which nothing is visible are not computed; None where none was.
    """
    held, total = own, None
    for turn in range(piece.ranks):
        of = (piece.rank - turn) % piece.ranks
        if turn < piece.ranks - 1:
            yield Send(piece.after, held, f"{name}_keys_{of}")
            coming = yield Receive(
                piece.before, shapes_of(held), f"{name}_keys_{before(piece, of)}"
            )
        if piece.pairs(piece.rank, of):
            flops = piece.flops(piece.rank, of, each)
            task = f"{name}_keys_{of}"
            made = yield Compute(name, partial(act, of, held), flops, task, size(own, held))
            # What only fills the caller's own tensors leaves nothing to combine.
            total = (yield merging(combine, total, made, task)) if total else made
        if turn < piece.ranks - 1:
            held = yield Wait(coming)
    return total


def keys_and_sums_travel(
    piece: Piece, name: str, own: Sequence[Tensor], act: Act, each: int, combine: Combine = added
) -> Program[Sequence[Tensor]]:
    """As `keys_travel`, but what `act` makes belongs to the keys: sums follow them home.

    A sum leaves a turn after its keys, so it too travels beside work.
    """
    held, coming_sums = own, None
    for turn in range(piece.ranks):
        of = (piece.rank - turn) % piece.ranks
        task = f"{name}_keys_{of}"
        if turn < piece.ranks - 1:
            yield Send(piece.after, held, task)
            coming = yield Receive(
                piece.before, shapes_of(held), f"{name}_keys_{before(piece, of)}"
            )
        flops = piece.flops(piece.rank, of, each)
        total = yield Compute(name, partial(act, of, held), flops, task, size(own, held))
        if coming_sums is not None:
            sums = yield Wait(coming_sums)
            total = yield merging(combine, sums, total, task)
        if piece.ranks == 1:
            return total
        if turn < piece.ranks - 1:
            held = yield Wait(coming)
        yield Send(piece.after, total, f"{name}_sums_{of}")
        coming_sums = yield Receive(
            piece.before, shapes_of(total), f"{name}_sums_{before(piece, of)}"
        )
    found: Sequence[Tensor] = yield Wait(coming_sums)
    return found


def queries_travel(
    piece: Piece, name: str, own: Sequence[Tensor], act: Act, combine: Combine, each: int
) -> Program[Sequence[Tensor]]:
    """Everybody's `own` queries pass here one way; what `act` makes of them goes straight home the
    other way, where it is combined a turn later."""
    held, total, pending = own, None, []
    for turn in range(piece.ranks):
        of, at = (piece.rank - turn) % piece.ranks, (piece.rank + turn) % piece.ranks
        task = f"{name}_queries_{of}"
        if turn < piece.ranks - 1:
            yield Send(piece.after, held, task)
            coming = yield Receive(
                piece.before, shapes_of(held), f"{name}_queries_{before(piece, of)}"
            )
        if turn == 0 or piece.pairs(of, piece.rank):
            flops = piece.flops(of, piece.rank, each)
            made = yield Compute(name, partial(act, of, held), flops, task, size(own, held))
            if turn == 0:
                total = made
            else:
                yield Send(of, made, f"{name}_out_{of}")
        assert total is not None
        if turn and piece.pairs(piece.rank, at):
            ticket = yield Receive(at, shapes_of(total), f"{name}_out_{piece.rank}")
            pending.append((ticket, at))
        if turn < piece.ranks - 1:
            held = yield Wait(coming)
        # The newest has only just been computed elsewhere: it is left on its way for a turn.
        last = turn == piece.ranks - 1
        for ticket, _ in pending if last else pending[:-1]:
            more = yield Wait(ticket)
            total = yield merging(combine, total, more, f"{name}_out_{piece.rank}")
        pending = [] if last else pending[-1:]
    assert total is not None
    return total


def merging(
    combine: Combine, total: Sequence[Tensor], more: Sequence[Tensor], task: str
) -> Compute:
    """The step that combines two partial results."""
    return Compute("merge", partial(combine, total, more), task=task, bytes=1.5 * size(total, more))


def before(piece: Piece, of: int) -> int:
    """Whose tensors come after those of `of`."""
    return (of - 1) % piece.ranks
