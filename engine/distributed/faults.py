"""What can go wrong among ranks, each as one line that names the rank."""

import signal

from engine.core.errors import BadInput


class RankLost(BadInput):
    """A rank died, hung or raised; the run is over. One line for a person, as `BadInput` is."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)
        self.rank = rank


class PeerGone(RuntimeError):
    """Inside a rank: a transfer with `peer` broke, so `peer` is the one to look at."""

    def __init__(self, peer: int, cause: str) -> None:
        super().__init__(cause)
        self.peer = peer


def died(rank: int, code: int, doing: str) -> RankLost:
    """A process that ended without a result. `code`: as `Process.exitcode`, minus the signal."""
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code} and no result"
    return RankLost(rank, f"rank {rank}: {how}{doing}; the run was ended with it")


def hung(statuses: list[str], limit: float) -> RankLost:
    """Of the ranks' statuses (`board.read`), one that does not wait for another is to blame."""
    busy = [rank for rank, status in enumerate(statuses) if not status.startswith("waiting")]
    if busy:
        rank = busy[0]
        return RankLost(
            rank,
            f"rank {rank}: hangs, still {statuses[rank] or 'starting'} after {limit:g} s; "
            "all ranks were ended; raise the limit if that was work",
        )
    told = ", ".join(f"rank {rank} {status}" for rank, status in enumerate(statuses))
    return RankLost(0, f"ranks: deadlock, all wait after {limit:g} s ({told}); all were ended")
