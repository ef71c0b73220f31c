"""The driver of training steps on a mesh of real ranks, held to one process's.

Emits ranks' events; levels for the error of losses, gradients and weights, and for the bytes of
weights, gradients and optimiser states, counted and by formula.
"""

from engine.core.clock import WallClock
from engine.core.events import Level
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import lane, merged
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.mesh_run import KINDS
from engine.training.parallel.ownership import state_bytes
from engine.training.parallel.rank_main import work
from engine.training.parallel.truth import errors, of_place

ERROR = "error"


def run(config: MeshTrainingConfig, live: Live) -> None:
    """Train as `config` says. Raises BadInput, RankLost among them."""
    clock, model = WallClock(), config.model.model()
    ranks = config.mesh.ranks
    live.open(config, clock, lanes=[lane(rank) for rank in range(ranks)])
    live.report("training", 0, 0)
    records = launch(work, ranks, [config], limit=config.limit, poll=lambda: live.poll(0.0))
    for event in merged(records):
        live.emit(event)
    now = live.log.duration
    for name, error in errors(config, [of_place(record, 0) for record in records]).items():
        live.emit(Level(now, name, ERROR, error))
    for rank, record in enumerate(records):
        counted = record.array("0/held")
        for kind, size, told in zip(KINDS, counted, state_bytes(config, model, rank), strict=True):
            live.emit(Level(now, lane(rank), f"{kind} counted", float(size)))
            live.emit(Level(now, lane(rank), f"{kind} by formula", float(told)))
    clock.wait_until(now)
