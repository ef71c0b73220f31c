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
from engine.distributed.device import DeviceKind
from engine.distributed.faults import PeerGone, RankLost, hung
from engine.distributed.fleet import called
from engine.distributed.rank import LOOPBACK, SLACK, Place, Starter, join
from engine.distributed.ray_fleet import TICK, start
from engine.distributed.record import Record, decode, encode

GRACE = 2.0  # seconds in which news of a rank that has ended, or of one that failed, still come
STARTING = 120.0  # seconds for all actors to be there


class RankActor:
    """One rank, wherever Ray puts it. All but `work` answers beside it, in another thread."""

    def __init__(self) -> None:
        self.doing, self.asked = "", False
        self.told: list[bytes] = []

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

    def news(self) -> tuple[str, list[bytes]]:
        """What the rank is doing, and the records it told since this was asked last."""
        told, self.told = self.told, []
        return self.doing, told

    def stop(self) -> None:
        """Ask the rank to end by itself."""
        self.asked = True

    def work(
        self, name: str, place: tuple[int, int, str, int, DeviceKind], given: str, limit: float
    ) -> bytes:
        """Be a rank until the work is done; its record. `name` as in `fleet.called`."""
        rank, ranks, address, port, device = place
        record = Record(rank)
        starter = Starter(
            self._say, lambda each: self.told.append(encode(each)), lambda: self.asked
        )
        try:
            # Ray shows each actor its own GPU only.
            stands = Place(rank, ranks, address, port, False, device=device)
            here = join(stands, limit + SLACK, starter)
            record = here.record
            called(name)(here, json.loads(given))
            here.transport.finish()
            record.sent, record.received = here.transport.sent, here.transport.received
        except PeerGone as fault:
            record.failed, record.peer = fault.told, fault.peer
        except BadInput as fault:
            record.failed, record.refused = str(fault), True
        except Exception as fault:
            # As in a process of this machine: whoever watches has to hear of it.
            record.failed = f"{type(fault).__name__}: {fault}"
        return encode(record)

    def _say(self, text: str) -> None:
        self.doing = text


def launch_on_ray(
    work: str,
    ranks: int,
    given: Any = None,
    *,
    limit: float = 60.0,
    phases: bool = False,
    address: str = "",
    device: DeviceKind = "cpu",
    poll: Callable[[], object] = lambda: None,
    tell: Callable[[Record], object] = lambda record: None,
    stop: Callable[[], bool] = lambda: False,
    seen: Callable[[list[int]], object] = lambda pids: None,
) -> list[Record]:
    """As `launch`, with each rank an actor of the Ray cluster at `address`, or of a local one.

    `work` is named `module:function`, `given` is plain JSON values; `seen` is told the ranks'
    process ids. Raises RankLost naming the rank that died, hung or raised. No actor is left when it
    returns.
    """
    ray = start(address)
    gpus = {"num_gpus": 1} if device == "cuda" else {}
    kind = ray.remote(max_restarts=0, max_concurrency=2, **gpus)(RankActor)
    actors = [kind.remote() for _ in range(ranks)]
    try:
        places = ray.get([actor.address.remote() for actor in actors], timeout=STARTING)
        meeting = LOOPBACK if len(set(places)) == 1 else places[0]
        port = ray.get(actors[0].free_port.remote(meeting), timeout=STARTING)
        seen(ray.get([actor.pid.remote() for actor in actors], timeout=STARTING))
        text = json.dumps(given)
        running = {
            actor.work.remote(work, (rank, ranks, meeting, port, device), text, limit): rank
            for rank, actor in enumerate(actors)
        }
        return _Watching(ray, actors, running, limit, phases, poll, tell, stop).gather()
    except ray.exceptions.GetTimeoutError:
        raise BadInput(
            f"ray: {ranks} ranks were not there within {STARTING:g} s; is the cluster too small?"
        ) from None
    finally:
        for actor in actors:
            ray.kill(actor)


class _Watching:
    """Waits for all ranks' records and passes on what they tell meanwhile."""

    def __init__(
        self, ray: Any, actors: list[Any], running: dict[Any, int], limit: float, phases: bool,
        poll: Callable[[], object], tell: Callable[[Record], object], stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.ray, self.actors, self.running = ray, actors, running
        self.limit, self.phases, self.end = limit, phases, time.monotonic() + limit
        self.poll, self.tell, self.stop, self.stopping = poll, tell, stop, False
        self.records: dict[int, Record] = {}
        self.failing = float("inf")  # when the first failure was seen
        self.doing = [""] * len(actors)
        self.answered = [time.monotonic()] * len(actors)
        self.asked = [actor.news.remote() for actor in actors]

    def gather(self) -> list[Record]:
        while self.running:
            begun = time.monotonic()
            self.poll()
            self.end += time.monotonic() - begun  # a paused run is not a hanging one
            if self.stop() and not self.stopping:
                self.stopping = True
                for actor in self.actors:
                    actor.stop.remote()
            ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=TICK)
            for each in ready:
                self._ended(each)
            for rank in self.running.values():
                self._news(rank, 0.0)
            self._judge()
        return [self.records[rank] for rank in range(len(self.actors))]

    def _ended(self, work: Any) -> None:
        rank = self.running.pop(work)
        try:
            record = decode(self.ray.get(work))
        except self.ray.exceptions.RayError:
            doing = self.doing[rank] or "starting"
            told = f"rank {rank}: its process died while {doing}; the run was ended with it"
            raise RankLost(rank, told) from None
        for _ in range(2):  # what was asked for before, and what was told since
            self._news(rank, GRACE)
        self.records[rank] = record

    def _news(self, rank: int, patience: float) -> None:
        """Pass on what a rank told, if it answers within `patience` seconds."""
        if not self.ray.wait([self.asked[rank]], timeout=patience)[0]:
            return
        try:
            doing, told = self.ray.get(self.asked[rank])
        except self.ray.exceptions.RayError:
            return  # it died: its work's end says so
        for each in told:
            self.tell(decode(each))
        self.answered[rank] = time.monotonic()
        if self.phases and doing != self.doing[rank]:
            self.end = time.monotonic() + self.limit
        self.doing[rank] = doing
        self.asked[rank] = self.actors[rank].news.remote()

    def _judge(self) -> None:
        """Raise where a rank failed or the time is up."""
        now = time.monotonic()
        failed = [record for record in self.records.values() if record.failed]
        if failed:
            self.failing = min(self.failing, now)
        # The cause of a failure may turn up after it: a rank that died says so by itself.
        if failed and self.running and now < self.failing + GRACE:
            return
        refused = next((record for record in failed if record.refused), None)
        if refused is not None:
            raise BadInput(refused.failed)
        own = [record for record in failed if record.peer < 0]
        if own:
            raise RankLost(own[0].rank, f"rank {own[0].rank}: {own[0].failed}; all ended")
        if failed:
            peer = failed[0].peer
            raise RankLost(peer, f"rank {peer}: gone, {failed[0].failed}; all ended")
        if self.running and now > self.end:
            left = set(self.running.values())
            silent = [now - at if rank in left else 0.0 for rank, at in enumerate(self.answered)]
            raise hung(
                [text if rank in left else "waiting, done" for rank, text in enumerate(self.doing)],
                self.limit, silent,
            )  # fmt: skip
