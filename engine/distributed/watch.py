"""Watchdog: waits for a record of each rank, or for the first sign that one will not come."""

import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from engine.core.errors import BadInput
from engine.distributed import heartbeats
from engine.distributed.faults import RankLost, died, hung
from engine.distributed.record import Record, decode

TICK = 0.1  # seconds between looks at a person's commands
GRACE = 1.0  # seconds in which the cause of a failure may still turn up


class Watch:
    """`limit`: seconds for all of it or, with `phases`, in which some rank has to enter another
    phase; `tell` is given what ranks tell on the way; `poll` is called at every tick."""

    def __init__(
        self, processes: Sequence[BaseProcess], pipes: Sequence[Connection],
        lines: heartbeats.Heartbeats, limit: float, phases: bool,
        poll: Callable[[], object], tell: Callable[[Record], object],
    ) -> None:  # fmt: skip
        self.processes, self.pipes, self.lines = processes, pipes, lines
        self.poll, self.tell = poll, tell
        self.limit, self.phases, self.end = limit, phases, time.monotonic() + limit
        self.seen: list[str] = []
        self.records: dict[int, Record] = {}
        self.dead: dict[int, int] = {}  # exit codes of ranks that left no record

    def gather(self) -> list[Record]:
        """The ranks' records. Raises RankLost naming the rank at fault."""
        while len(self.records) < len(self.processes):
            asked = time.monotonic()
            self.poll()
            self.end += time.monotonic() - asked  # a paused run is not a hanging one
            self._look(TICK)
            if self.dead or any(record.failed for record in self.records.values()):
                raise self._blame()
            self._hear()
        return [self.records[rank] for rank in range(len(self.processes))]

    def _hear(self) -> None:
        """Raise where the time is up."""
        now, lines = time.monotonic(), self._lines()
        if self.phases and lines != self.seen:
            self.seen, self.end = lines, now + self.limit
        if now > self.end:
            # A rank that has given its record is silent for good reason.
            silent = [
                0.0 if rank in self.records else now - beat
                for rank, beat in enumerate(self.lines.beats)
            ]
            raise hung(lines, self.limit, silent)

    def _lines(self) -> list[str]:
        return [heartbeats.read(self.lines, rank) for rank in range(len(self.pipes))]

    def _look(self, seconds: float) -> None:
        """Take in what arrives within `seconds`."""
        missing = [r for r in range(len(self.pipes)) if r not in self.records | self.dead]
        of = {self.pipes[rank]: rank for rank in missing}
        for pipe in wait(list(of), seconds):
            rank = of[pipe]  # type: ignore[index]
            try:
                record = decode(self.pipes[rank].recv_bytes())
            except (EOFError, OSError):
                self.processes[rank].join(GRACE)
                code = self.processes[rank].exitcode
                self.dead[rank] = 1 if code is None else code
                continue
            if record.done:
                self.records[rank] = record
            else:
                self.tell(record)

    def _blame(self) -> BadInput:
        """The rank at fault: one that died, else one that raised, else one that others lost."""
        until = time.monotonic() + GRACE
        while not self.dead and time.monotonic() < until and len(self.records) < len(self.pipes):
            self._look(until - time.monotonic())
        for rank, code in sorted(self.dead.items()):
            doing = heartbeats.read(self.lines, rank)
            return died(rank, code, f" while {doing}" if doing else " while starting")
        failed = [record for record in self.records.values() if record.failed]
        refused = next((record for record in failed if record.refused), None)
        if refused is not None:
            return BadInput(refused.failed)
        own = [record for record in failed if record.peer < 0] or failed
        first = min(own, key=lambda record: record.rank)
        doing = heartbeats.read(self.lines, first.rank)
        return RankLost(first.rank, f"rank {first.rank}: {first.failed} while {doing}; all ended")
