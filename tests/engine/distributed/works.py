"""What launched ranks do in the tests: functions of a module, as `launch` asks for."""

import os
import signal
import time
from typing import Any

import numpy as np
import torch

from engine.core.config import kinds
from engine.core.events import Mark
from engine.distributed.channels.shared_memory import MemoryHB, MemoryLL, Port, carry_out
from engine.distributed.collective import Collective
from engine.distributed.mesh import Mesh, MeshShape
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.distributed.rank import Rank
from engine.distributed.transport import Shape


def ring(rank: Rank, size: int) -> None:
    """Everybody's numbers once round the ring, summed."""
    rank.enter("ring")
    after, before = (rank.rank + 1) % rank.ranks, (rank.rank - 1) % rank.ranks
    held = torch.full((size,), float(rank.rank))
    total = held.clone()
    for turn in range(rank.ranks - 1):
        rank.transport.send(after, [held, torch.tensor([turn])], f"turn_{turn}")
        coming = rank.transport.receive(
            before, [Shape((size,)), Shape((1,), torch.int64)], f"turn_{turn}"
        )
        held, told = rank.transport.take(coming)
        assert int(told) == turn
        total += held
    rank.record.put("total", total.numpy())
    rank.record.put("threads", np.array(torch.get_num_threads()))


def fail(rank: Rank, given: dict[str, Any]) -> None:
    """Rank `who` dies, hangs or raises in forward or while others wait for it in a collective."""
    rank.enter("forward")
    if given["where"] == "forward":
        _fail(rank, given)
    rank.enter("collective")
    rank.transport.barrier()
    if given["where"] == "collective":
        _fail(rank, given)
    rank.transport.barrier()


def _fail(rank: Rank, given: dict[str, Any]) -> None:
    if rank.rank != given["who"]:
        return
    if given["how"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if given["how"] == "hang":
        time.sleep(600)
    raise ValueError("no such thing")


class BadGroup:
    """A process group whose next message, once `kind` says so, goes out wrong: garbage, the one
    before once more (doubled), or the next one before it (disordered)."""

    def __init__(self, group: Any) -> None:
        self.group, self.kind = group, ""
        self.last: torch.Tensor | None = None
        self.held: list[tuple[torch.Tensor, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.group, name)

    def send(self, flats: list[torch.Tensor], target: int, tag: int) -> Any:
        (flat,) = flats
        kind, self.kind = self.kind, ""
        if kind == "doubled" and self.last is None:
            kind = "garbage"
        if kind == "disordered":
            self.held.append((flat, target, tag))
            return Sent()
        if kind == "garbage":
            flat = flat.clone()
            flat[len(flat) // 2] ^= 0x55
        elif kind == "doubled" and self.last is not None:
            flat = self.last
        self.last = flat
        for earlier, to, number in self.held:
            self.held = []
            self.group.send([flat], to, number).wait()
            flat = earlier
        return self.group.send([flat], target, tag)


class Sent:
    """What a send gives that has yet to be done."""

    def wait(self) -> None:
        pass


def garbled(rank: Rank, given: dict[str, Any]) -> None:
    """News go round; the third of rank `who` goes out wrong."""
    group = BadGroup(rank.transport.group)
    rank.transport.group = group
    rank.enter("exchange")
    other = (rank.rank + 1) % rank.ranks
    for turn in range(5):
        if rank.rank == given["who"] and turn == 2:
            group.kind = given["kind"]
        rank.transport.send(other, [torch.full((9,), float(turn))], f"news_{turn}")
        if rank.rank != given["who"]:
            rank.transport.take(rank.transport.receive(other, [Shape((9,))], f"news_{turn}"))


def deadlock(rank: Rank, given: object) -> None:
    """Everybody waits for a message that nobody sends."""
    rank.enter("exchange")
    other = (rank.rank + 1) % rank.ranks
    rank.transport.take(rank.transport.receive(other, [Shape((1,))], "news"))


def linger(rank: Rank, given: object) -> None:
    """Every rank says that it is there, and stays for long."""
    rank.emit(Mark(rank.now(), rank.lane, "here", ""))
    rank.tell()
    time.sleep(600)


def pids(rank: Rank, given: object) -> None:
    rank.record.put("pid", np.array(os.getpid()))
    rank.transport.barrier()


def collectives(rank: Rank, rows: int) -> None:
    """Every collective of a mesh of two replicas and two tensor ranks, and a message along it."""
    mesh = Mesh(rank, MeshShape(data=2, tensor=2))
    tensor, data, four = mesh.axis("tensor"), mesh.axis("data"), mesh.axis("data", "tensor")
    x = torch.arange(rows * 3, dtype=torch.float32).reshape(rows, 3) * (rank.rank + 1)
    found = {
        "all_reduce": tensor.all_reduce(x, "sum"),
        "largest": tensor.all_reduce(x, "largest", largest=True),
        "all_gather": tensor.all_gather(x, 1),
        "reduce_scatter": tensor.reduce_scatter(x, 0),
    }
    later = x.clone()
    reducing = four.start_all_reduce(later, "all_four")
    found["told"] = data.follow(_tell(data.at, torch.tensor(10 * rank.rank)))
    reducing.wait()
    found["later"] = later
    for name, tensor_found in found.items():
        rank.record.put(name, tensor_found.numpy())


def _tell(at: int, number: torch.Tensor) -> Program[torch.Tensor]:
    yield Send(1 - at, [number], "number")
    ticket = yield Receive(1 - at, [Shape((), torch.int64)], "number")
    (told,) = yield Wait(ticket)
    found: torch.Tensor = yield Compute("nothing", lambda: told)
    return found


def wrong_mesh(rank: Rank, shape: MeshShape) -> None:
    """A mesh that has more places than there are ranks."""
    Mesh(rank, shape)


def fail_beside_a_collective(rank: Rank, given: object) -> None:
    """Rank 1 raises while the others stand at an all-reduce."""
    mesh = Mesh(rank, MeshShape(tensor=3))
    axis = mesh.axis("tensor")
    rank.enter("forward")
    if rank.rank == 1:
        raise ValueError("no such thing")
    axis.all_reduce(torch.ones(4), "out")


def planned_collectives(rank: Rank, given: dict[str, Any]) -> None:
    """Every all-reduce by its plan and torch's own, of whole numbers and of random ones."""
    rank.enter("collective")
    dice = torch.Generator().manual_seed(rank.rank)
    whole = torch.randint(-100, 100, (given["length"],), generator=dice).float()
    real = torch.randn(given["length"], generator=dice)
    for place, kind in enumerate(given["kinds"]):
        plan = kinds(Collective)[kind]().transfers(rank.ranks, given["node"])
        channel = (MemoryHB(), MemoryLL(), Port())[place % 3]
        for name, x in (("whole", whole), ("real", real)):
            found, sent = carry_out(rank, plan, x, channel)
            rank.record.put(f"{kind}/sent", np.array(sent))
            rank.record.put(f"{kind}/{name}", found.numpy())
    for name, x in (("whole", whole), ("real", real)):
        summed = x.clone()
        rank.transport.group.allreduce([summed]).wait()
        rank.record.put(f"torch/{name}", summed.numpy())


def deaf_to(rank: Rank, given: object) -> None:
    """Array ignored: the signals that a rank leaves to its launcher."""
    deaf = [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
    rank.record.put("ignored", np.array(sorted(deaf)))
