"""Ray as the way to many machines: pieces of work as tasks.

An optional part: `pip install 'parallel-workbench[ray]'`. Every machine of the cluster has the
workbench installed; what travels is JSON as text.
"""

import importlib
import json
import socket
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from engine.core.errors import BadInput
from engine.distributed.fleet import Done, Fleet, answer, done

TICK = 0.2  # seconds
HEARD = 5.0  # seconds in which whoever listens at an address takes a connection


def start(address: str = "") -> Any:
    """Ray, joined to the cluster at `address` or made here. Raises BadInput where there is none."""
    if not find_spec("ray"):
        raise BadInput("ray: not installed; pip install 'parallel-workbench[ray]'")
    _probe(address)  # first: Ray takes seconds to load
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        try:
            ray.init(
                address=address or "local", log_to_driver=False, logging_level="ERROR",
                include_dashboard=False,
            )  # fmt: skip
        except Exception as fault:  # a cluster that does not come up in time raises a bare one
            raise BadInput(f"ray {address!r}: cannot join ({str(fault)[:100]})") from None
    return ray


def _probe(address: str) -> None:
    """Raises BadInput where nothing listens at a host and port: Ray tries for a minute."""
    try:
        place = urlsplit(f"//{address.removeprefix('ray://')}")
        host, port = place.hostname, place.port
        if host and port:  # else a word of Ray's own, as auto
            socket.create_connection((host, port), timeout=HEARD).close()
    except (ValueError, OSError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise BadInput(
            f"ray {address!r}: cannot join ({why}); give the HOST:PORT of a cluster, or no address "
            "for one that is started here"
        ) from None


class RayFleet(Fleet):
    """Tasks on a Ray cluster, as many at a time as it has processors. `limit`: seconds for all."""

    def __init__(self, address: str = "", limit: float = 3600.0) -> None:
        self.address, self.limit = address, limit

    def run(self, work: str, pieces: Sequence[Any]) -> Iterator[Done]:
        ray = start(self.address)
        task = ray.remote(max_retries=0)(answer)
        numbers = {task.remote(work, json.dumps(piece)): n for n, piece in enumerate(pieces)}
        until = time.monotonic() + self.limit
        while numbers:
            ready, _ = ray.wait(list(numbers), num_returns=1, timeout=TICK)
            for each in ready:
                number = numbers.pop(each)
                try:
                    yield done(number, ray.get(each))
                except ray.exceptions.RayError as fault:
                    yield Done(number, failed=f"ray: {str(fault).splitlines()[0][:120]}")
            if numbers and time.monotonic() > until:
                for each, number in numbers.items():
                    ray.cancel(each, force=True)
                    yield Done(number, failed=f"no result within {self.limit:g} s; ended")
                return
