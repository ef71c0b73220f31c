"""Replay: an outer state computed again in one process, from the ledger of a run of peers alone.

Who exchanged what, how often and from which state it began is in the ledger; a change lost or
counted twice, or a newcomer that began elsewhere, gives other bits.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from engine.distributed.program import Compute, run
from engine.kernels.threads import torch_threads
from engine.training.low_communication.churn.coordinator import Outer
from engine.training.low_communication.churn.orders import digest
from engine.training.low_communication.churn.peer import Peer, Task
from engine.training.low_communication.text import shipped_text


def replayed(task: Task, ledger: Sequence[Outer]) -> Iterator[str]:
    """The digest of the state after each outer step."""
    text, peers = shipped_text(), dict[int, Peer]()
    with torch_threads(1):  # as each peer has
        for round, outer in enumerate(ledger):
            state = next(iter(peers.values())).state() if peers else None
            for seat in outer.joined:
                peers[seat] = Peer(task, seat, text)
                if state is not None:
                    peers[seat].begin(*state)
            peers = {seat: peers[seat] for seat in outer.members}
            for peer in peers.values():
                run(peer.steps(round), _computed)
            mean_P = mean([peer.gone_P for peer in peers.values()])
            for peer in peers.values():
                peer.mean_P = mean_P
                peer.commit()
            yield digest(*peer.state())


def mean(changes: Sequence[Tensor]) -> Tensor:
    """By shares, in order of rank, as ranks take it."""
    shares = zip(*(each.tensor_split(len(changes)) for each in changes), strict=True)
    return torch.cat([torch.stack(share).mean(0) for share in shares])


def _computed(step: object) -> object:
    assert isinstance(step, Compute)
    return step.work()
