"""Starts ranks as processes of this machine, watches them, and gathers what each gives back.

Processes come from a server that has loaded torch and run nothing, never from the caller, whose
threads a fork would not take along. Whatever happens, no process is left when `launch` returns.
"""

import multiprocessing
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

import torch.distributed as dist

from engine.core.errors import BadInput
from engine.distributed import board
from engine.distributed.faults import RankLost, died, hung
from engine.distributed.rank import LOOPBACK, Place, Work, main
from engine.distributed.record import Record, decode

TICK = 0.1  # seconds between looks at a person's commands
GRACE = 1.0  # seconds in which the cause of a failure may still turn up
MOST = 64  # ranks on one machine


def launch(
    work: Work,
    ranks: int,
    given: Any = None,
    *,
    limit: float = 60.0,
    port: int = 0,
    poll: Callable[[], object] = lambda: None,
) -> list[Record]:
    """Run `work(rank, given)` on `ranks` processes; their records in order of rank.

    `work` is a function of a module. `limit`: seconds for all of it; `port`: where they meet on
    loopback, 0 for any free one; `poll` is called ten times a second and may raise to end it all.
    Raises RankLost naming the rank that died, hung or raised, BadInput for a port in use.
    """
    if not 1 <= ranks <= MOST:
        raise BadInput(f"ranks {ranks}: from 1 to {MOST} on one machine")
    context = _context(work.__module__)
    lines = board.board(context, ranks)
    with ExitStack() as stack:
        meeting = stack.enter_context(_listen(port))
        where = meeting.getsockname()[1]
        store = dist.TCPStore(
            LOOPBACK, where, None, True, timedelta(seconds=limit), wait_for_workers=False,
            master_listen_fd=meeting.detach(),
        )  # fmt: skip
        processes: list[BaseProcess] = []
        pipes: list[Connection] = []
        stack.callback(_end, processes, pipes)
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            place = Place(rank, ranks, LOOPBACK, where)
            process = context.Process(  # type: ignore[attr-defined]
                target=main, args=(place, limit, lines, theirs, work, given), daemon=True,
                name=f"rank {rank}",
            )  # fmt: skip
            processes.append(process)
            pipes.append(ours)
            process.start()
            theirs.close()
        found = _Watch(processes, pipes, lines, limit, poll).gather()
        del store
    return found


def place_from(environment: Mapping[str, str]) -> Place:
    """The place torchrun gave this process. Raises BadInput where it was not started by it."""
    try:
        return Place(
            int(environment["RANK"]),
            int(environment["WORLD_SIZE"]),
            environment["MASTER_ADDR"],
            int(environment["MASTER_PORT"]),
            environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        )
    except (KeyError, ValueError) as fault:
        raise BadInput(f"torchrun: {fault} is missing or no number; start with torchrun") from None


class _Watch:
    """Waits for a record of each rank, or for the first sign that one will not come."""

    def __init__(
        self, processes: list[BaseProcess], pipes: list[Connection], lines: board.Board,
        limit: float, poll: Callable[[], object],
    ) -> None:  # fmt: skip
        self.processes, self.pipes, self.lines, self.poll = processes, pipes, lines, poll
        self.limit, self.end = limit, time.monotonic() + limit
        self.records: dict[int, Record] = {}
        self.dead: dict[int, int] = {}  # exit codes of ranks that left no record

    def gather(self) -> list[Record]:
        while len(self.records) < len(self.processes):
            asked = time.monotonic()
            self.poll()
            self.end += time.monotonic() - asked  # a paused run is not a hanging one
            self._look(TICK)
            if self.dead or any(record.failed for record in self.records.values()):
                raise self._blame()
            if time.monotonic() > self.end:
                raise hung([board.read(self.lines, r) for r in range(len(self.pipes))], self.limit)
        return [self.records[rank] for rank in range(len(self.processes))]

    def _look(self, seconds: float) -> None:
        """Take in what arrives within `seconds`."""
        missing = [r for r in range(len(self.pipes)) if r not in self.records | self.dead]
        of = {self.pipes[rank]: rank for rank in missing}
        for pipe in wait(list(of), seconds):
            rank = of[pipe]  # type: ignore[index]
            try:
                self.records[rank] = decode(self.pipes[rank].recv_bytes())
            except (EOFError, OSError):
                self.processes[rank].join(GRACE)
                code = self.processes[rank].exitcode
                self.dead[rank] = 1 if code is None else code

    def _blame(self) -> RankLost:
        """The rank at fault: one that died, else one that raised, else one that others lost."""
        until = time.monotonic() + GRACE
        while not self.dead and time.monotonic() < until and len(self.records) < len(self.pipes):
            self._look(until - time.monotonic())
        for rank, code in sorted(self.dead.items()):
            doing = board.read(self.lines, rank)
            return died(rank, code, f" while {doing}" if doing else " while starting")
        failed = [record for record in self.records.values() if record.failed]
        own = [record for record in failed if record.peer < 0] or failed
        first = min(own, key=lambda record: record.rank)
        doing = board.read(self.lines, first.rank)
        return RankLost(first.rank, f"rank {first.rank}: {first.failed} while {doing}; all ended")


def _listen(port: int) -> socket.socket:
    """A socket that hears loopback only."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()
    except (OSError, OverflowError) as fault:
        listening.close()
        raise BadInput(
            f"port {port}: cannot be listened on ({fault}); choose another, or 0 for any free one"
        ) from None
    return listening


def _context(module: str) -> BaseContext:
    """How processes are made; the server loads `module` once where it is the first asked for."""
    if sys.platform == "linux":
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["engine.distributed.rank", module])
        return context
    return multiprocessing.get_context("spawn")


def _end(processes: list[BaseProcess], pipes: list[Connection]) -> None:
    for process in processes:
        if process.pid is not None:
            process.kill()
    for process in processes:
        if process.pid is not None:
            process.join()
    for pipe in pipes:
        pipe.close()
