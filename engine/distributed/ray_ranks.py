"""Ranks that talk as actors of a Ray cluster, on one machine or many: `launch` for more than one.

What travels through Ray is JSON and this project's own records as bytes; the ranks' messages go
straight from one to another over gloo.
"""

import importlib
import json
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from engine.core.errors import BadInput
from engine.distributed.faults import PeerGone, RankLost
from engine.distributed.fleet import called
from engine.distributed.rank import LOOPBACK, SLACK, Place, Starter, join
from engine.distributed.ray_fleet import TICK, start
from engine.distributed.record import Record, decode, encode

GRACE = 2.0  # seconds in which a living rank answers what it is doing


class RankActor:
    """One rank, wherever Ray puts it. `doing` answers beside `work`, in a thread of its own."""

    def __init__(self) -> None:
        self.told = ""

    def address(self) -> str:
        """Where this machine can be reached."""
        ray = importlib.import_module("ray")
        return str(ray.util.get_node_ip_address())

    def free_port(self, address: str) -> int:
        """A port that is free on this machine."""
        with socket.socket() as sought:
            sought.bind((address, 0))
            return int(sought.getsockname()[1])

    def pid(self) -> int:
        return os.getpid()

    def doing(self) -> str:
        """What the rank says that it is doing."""
        return self.told

    def work(self, name: str, place: tuple[int, int, str, int], given: str, limit: float) -> bytes:
        """Be a rank until the work is done; its record. `name` as in `fleet.called`."""
        rank, ranks, address, port = place
        record = Record(rank)
        try:
            at = Place(rank, ranks, address, port, False)
            here = join(at, limit + SLACK, Starter(self._say))
            record = here.record
            called(name)(here, json.loads(given))
            here.transport.finish()
            record.sent, record.received = here.transport.sent, here.transport.received
        except PeerGone as fault:
            record.failed, record.peer = f"lost rank {fault.peer} ({fault})", fault.peer
        except BadInput as fault:
            record.failed, record.refused = str(fault), True
        except Exception as fault:
            # As in a process of this machine: whoever watches has to hear of it.
            record.failed = f"{type(fault).__name__}: {fault}"
        return encode(record)

    def _say(self, text: str) -> None:
        self.told = text


def launch_on_ray(work: str, ranks: int, given: Any = None, *, limit: float = 60.0,
                  address: str = "", seen: Callable[[list[int]], object] = lambda pids: None,
                  ) -> list[Record]:  # fmt: skip
    """As `launch`, with each rank an actor of a Ray cluster; `work` is named `module:function`.

    `limit`: seconds for all of it; `seen` is told the ranks' process ids. Raises RankLost naming
    the rank that died, hung or raised. No actor is left when it returns.
    """
    ray = start(address)
    kind = ray.remote(max_restarts=0, max_concurrency=2)(RankActor)
    actors = [kind.remote() for _ in range(ranks)]
    try:
        until = time.monotonic() + limit
        places = ray.get([actor.address.remote() for actor in actors], timeout=limit)
        meeting = LOOPBACK if len(set(places)) == 1 else places[0]
        port = ray.get(actors[0].free_port.remote(meeting), timeout=limit)
        seen(ray.get([actor.pid.remote() for actor in actors], timeout=limit))
        text = json.dumps(given)
        running = {
            actor.work.remote(work, (rank, ranks, meeting, port), text, limit): rank
            for rank, actor in enumerate(actors)
        }
        return _gathered(ray, actors, running, until, limit)
    except ray.exceptions.GetTimeoutError:
        raise BadInput(
            f"ray: {ranks} ranks could not be started within {limit:g} s; is the cluster too small?"
        ) from None
    finally:
        for actor in actors:
            ray.kill(actor)


def _gathered(
    ray: Any, actors: list[Any], running: dict[Any, int], until: float, limit: float
) -> list[Record]:
    records: dict[int, Record] = {}
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=TICK)
        for each in ready:
            rank = running.pop(each)
            try:
                records[rank] = decode(ray.get(each))
            except ray.exceptions.RayError:
                raise RankLost(rank, f"rank {rank}: its process died; all ended") from None
        failed = [record for record in records.values() if record.failed]
        if any(record.peer < 0 for record in failed) or (failed and not ready):
            raise _blamed(failed)
        if running and time.monotonic() > until:
            raise _silent(ray, actors, sorted(running.values()), limit)
    return [records[rank] for rank in range(len(actors))]


def _blamed(failed: list[Record]) -> BadInput:
    """A rank that raised, else one that others lost."""
    refused = next((record for record in failed if record.refused), None)
    if refused is not None:
        return BadInput(refused.failed)
    own = [record for record in failed if record.peer < 0]
    if own:
        return RankLost(own[0].rank, f"rank {own[0].rank}: {own[0].failed}; all ended")
    peer = failed[0].peer
    return RankLost(peer, f"rank {peer}: gone, {failed[0].failed}; all ended")


def _silent(ray: Any, actors: list[Any], left: list[int], limit: float) -> RankLost:
    """Of the ranks that are not done, one that does not answer, or does not wait, is to blame."""
    doing: dict[int, str] = {}
    for rank in left:
        try:
            doing[rank] = ray.get(actors[rank].doing.remote(), timeout=GRACE)
        except ray.exceptions.RayError:
            told = f"rank {rank}: hangs, does not answer after {limit:g} s; all ended"
            return RankLost(rank, told)
    busy = [rank for rank in left if not doing[rank].startswith("waiting")] or left
    told = f"rank {busy[0]}: hangs, still {doing[busy[0]] or 'starting'} after {limit:g} s"
    return RankLost(busy[0], f"{told}; all ended")
