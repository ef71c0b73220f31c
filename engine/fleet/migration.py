"""Migration: requests that wait on a replica which is behind, and where each would go instead."""

from collections.abc import Iterator, Mapping, Sequence

from engine.fleet.journey import Journey
from engine.fleet.replica import Replica
from engine.fleet.routers.router import Load, Router

BATCH = 8  # requests looked at, the last that came first


def leaving(
    replica: Replica,
    replicas: Sequence[Replica],
    alive: Sequence[Load],
    journeys: Mapping[str, Journey],
    router: Router,
    seed: int,
) -> Iterator[tuple[Journey, Load]]:
    """Requests that `router` takes from `replica`, withdrawn from it, each with its new replica.

    `alive`: loads of replicas that take requests.
    """
    if not router.moving or not router.behind(replica.load):
        return
    loads = [load for load in alive if replicas[load.number].role == replica.role]
    waiting = [each for each in reversed(replica.given.values()) if not each.started][:BATCH]
    for request in waiting:
        journey = journeys[request.id]
        asked = journey.asking(seed, replica.timeline.now)
        target = router.moves(asked, replica.load, loads)
        if target is not None and replica.withdraw(request):
            yield journey, target
