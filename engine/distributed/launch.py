"""Launcher of ranks: starts processes on this machine, watches them and gathers their records.

Processes come from a server that has loaded torch and run nothing, never from the caller, whose
threads a fork would not take along. Whatever happens, no process is left when `launch` returns.
"""

import atexit
import multiprocessing
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from engine.core.errors import BadInput
from engine.distributed import heartbeats
from engine.distributed.device import DeviceKind, require_devices
from engine.distributed.faults import RankLost
from engine.distributed.rank import LOOPBACK, Place, Rank, Work, main, store
from engine.distributed.record import Record
from engine.distributed.watch import Watch

MOST = 64  # ranks on one machine
# How many processes were started: by whoever names them as torch does, srun, Open MPI, MPICH.
COUNTS = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
ENDING = 5.0  # seconds in which the server tells of an end; stopped, it tells nothing
# What each rank would take a second or two to load, once: of torch's first backward pass and of its
# first fully sharded module, and of the first kernel that numba compiled.
PRELOADED = (
    "engine.distributed.rank",
    "torch.fx.experimental.symbolic_shapes",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "engine.kernels.numba_types",
)


def launch(
    work: Work,
    ranks: int,
    given: Any = None,
    *,
    limit: float = 60.0,
    phases: bool = False,
    port: int = 0,
    device: DeviceKind = "cpu",
    poll: Callable[[], object] = lambda: None,
    tell: Callable[[Record], object] = lambda record: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Record]:
    """Run `work(rank, given)` on `ranks` processes; their records in order of rank.

    `work` is a function of a module. `limit`: seconds for all of it or, with `phases`, the longest
    in which no rank enters another phase; `port`: where they meet on loopback, 0 for any free one;
    `device`: what each computes on;
    `poll` is called ten times a second and may raise to end it all; `tell` is given the records
    that ranks send on the way; once `stop` says so, ranks are asked to end by themselves
    (`Starter.asked`). Raises RankLost naming the rank that died, hung or raised, BadInput for a
    port in use.
    """
    if not 1 <= ranks <= MOST:
        raise BadInput(f"ranks {ranks}: from 1 to {MOST} on one machine")
    require_devices(device, ranks)
    context = server(work.__module__)
    lines = heartbeats.heartbeats(context, ranks)
    with ExitStack() as stack:
        meeting = stack.enter_context(listen(port))
        where = meeting.getsockname()[1]
        held = store(
            LOOPBACK, where, None, True, timedelta(seconds=limit),
            master_listen_fd=meeting.detach(),
        )  # fmt: skip
        processes: list[BaseProcess] = []
        pipes: list[Connection] = []
        end = partial(_end, processes, pipes)
        # At this process's own end multiprocessing asks ranks by SIGTERM, which they do not heed.
        stack.callback(atexit.unregister, atexit.register(end))
        stack.callback(end)
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            place = Place(rank, ranks, LOOPBACK, where, True, rank, ranks, device)
            process = context.Process(  # type: ignore[attr-defined]
                target=main, args=(place, limit, lines, theirs, work, given), daemon=True,
                name=f"rank {rank}",
            )  # fmt: skip
            processes.append(process)
            pipes.append(ours)
            _start(process, rank)
            theirs.close()

        def look() -> None:
            poll()
            if stop():
                lines.stop[0] = 1

        found = Watch(processes, pipes, lines, limit, phases, look, tell).gather()
        del held
    return found


def _start(process: BaseProcess, rank: int) -> None:
    try:
        process.start()
    except (EOFError, ConnectionError):
        said = f"rank {rank}: not started, the server of processes has ended; repeat this"
        raise RankLost(rank, said) from None


def place_from(environment: Mapping[str, str]) -> Place:
    """The place torchrun gave this process. Raises BadInput where it was not started by it."""
    try:
        return Place(
            int(environment["RANK"]),
            int(environment["WORLD_SIZE"]),
            environment["MASTER_ADDR"],
            int(environment["MASTER_PORT"]),
            environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            int(environment.get("LOCAL_RANK", "0")),
            int(environment.get("LOCAL_WORLD_SIZE", "1")),
        )
    except (KeyError, ValueError) as fault:
        raise BadInput(f"torchrun: {fault} is missing or no number; start with torchrun") from None


def require_single(environment: Mapping[str, str]) -> None:
    """Raises BadInput where something other than torchrun started several of this process: each
    would train alone and end as if it had been all of them."""
    for name in COUNTS:
        count = environment.get(name, "")
        if count.isdecimal() and int(count) > 1:
            raise BadInput(
                f"{name}={count}: this is one process of {count}, and not torchrun started it; "
                f"start one torchrun a machine, or give --ranks N to one process; if it is one "
                f"process, unset {name}"
            )


def listen(port: int) -> socket.socket:
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


def server(module: str) -> BaseContext:
    """How processes are made; the server loads `module` once where it is the first asked for."""
    if sys.platform == "linux":
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*PRELOADED, *loaded_works(), module])
        return context
    return multiprocessing.get_context("spawn")


def loaded_works() -> list[str]:
    """The engine's modules of work for ranks that this process has loaded. Asked for next by the
    same program, each rank would load one anew: a fifth of a second."""
    loaded = list(sys.modules.items())  # as it is now: other threads may be importing
    return [
        name for name, module in loaded
        if name.startswith("engine.") and getattr(module, "Rank", None) is Rank
    ]  # fmt: skip


def _end(processes: list[BaseProcess], pipes: list[Connection]) -> None:
    for process in processes:
        if process.pid is not None:
            process.kill()
    for process in processes:
        if process.pid is not None:
            process.join(ENDING)
    for pipe in pipes:
        pipe.close()
