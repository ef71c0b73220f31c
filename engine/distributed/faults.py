"""Faults of ranks (lost, hung, out of memory), each one line naming the rank; and injected ones."""

import os
import re
import signal
from collections.abc import Sequence
from typing import Literal

from engine.core.config import Config, knob
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

    @property
    def told(self) -> str:
        """Who was lost and why; at a barrier nobody knows who."""
        return f"lost {f'rank {self.peer}' if self.peer >= 0 else 'another rank'} ({self})"


def told(fault: Exception) -> str:
    """What torch says of a connection, less its source's line and its advice for its own logs."""
    line = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
    return re.sub(r"^\[\S+:\d+\] |\.? This is typically caused by .*", "", line)


class Garbled(Exception):
    """Inside a rank: a message of rank `peer` that is not what was sent, or not in its place."""

    def __init__(self, peer: int, number: int, task: str, wrong: str) -> None:
        named = f" ({task})" if task else ""
        super().__init__(f"message {number} of rank {peer}{named} {wrong}")
        self.peer = peer


class Fault(Config):
    """A rank that dies or stops on purpose, to see what becomes of the others."""

    rank: int = knob(0, "Which rank", low=0, high=4095)
    phase: str = knob("forward", "What it is about to do, such as forward")
    step: int = knob(0, "In which step", low=0, high=1_000_000)
    how: Literal["kill", "stop"] = knob("kill", "Killed (SIGKILL) or stopped (SIGSTOP)")

    def strike(self, rank: int, phase: str, step: int) -> None:
        """Where this is the moment, the process goes no further."""
        if (rank, phase, step) == (self.rank, self.phase, self.step):
            os.kill(os.getpid(), signal.SIGKILL if self.how == "kill" else signal.SIGSTOP)


def read_fault(text: str) -> Fault:
    """From `RANK:PHASE:STEP`, or with `:stop` at its end. Raises BadInput."""
    parts = text.split(":")
    how: Literal["kill", "stop"] = "stop" if parts[-1] == "stop" else "kill"
    if parts[-1] in ("kill", "stop"):
        parts.pop()
    if len(parts) != 3 or not parts[0].isdigit() or not parts[2].isdigit():
        raise BadInput(f"fault {text!r}: write RANK:PHASE:STEP, such as 1:backward:5 (or …:stop)")
    return Fault(rank=int(parts[0]), phase=parts[1], step=int(parts[2]), how=how)


def died(rank: int, code: int, doing: str) -> RankLost:
    """A process that ended without a result. `code`: as `Process.exitcode`, minus the signal."""
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code} and no result"
    return RankLost(rank, f"rank {rank}: {how}{doing}; the run was ended with it")


def hung(statuses: Sequence[str], limit: float, silent: Sequence[float] = ()) -> RankLost:
    """Of the ranks' statuses (`heartbeats.read`), one that does not wait for another is to blame;
    before all others one that shows no sign of life. `silent`: seconds since each rank's last."""
    still = [rank for rank, age in enumerate(silent) if age > max(1.0, limit / 2)]
    if still:
        rank = max(still, key=lambda each: silent[each])
        doing = statuses[rank] or "starting"
        return RankLost(
            rank,
            f"rank {rank}: hangs, no sign of life for {silent[rank]:.1f} s while {doing}; "
            "all ranks were ended",
        )
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
