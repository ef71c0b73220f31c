"""Ranks are processes of this machine that exchange tensors over gloo, one thread each."""

from typing import TYPE_CHECKING, Literal

from engine.core.clock import Clock, WallClock
from engine.core.config import knob, to_dict
from engine.core.errors import BadInput
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.rank import Work
from engine.training.context_parallel.place import Done, Place

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig

MOST = 16  # processes of one run
MOST_TOKENS = 1 << 15


class Processes(Place):
    """float32; forward and backward once unrecorded first, so that nothing is timed cold."""

    kind: Literal["processes"] = knob("processes", doc="real ranks on this machine, over gloo")
    limit: float = knob(60.0, "the run is ended after", low=1.0, high=3600.0, unit="s")
    port: int = knob(0, "where ranks meet on loopback; 0: any free port", low=0, high=65535)

    def clock(self) -> Clock:
        return WallClock()

    def attend(self, config: "SequenceConfig", live: Live) -> Done:
        if config.ranks > MOST or config.tokens > MOST_TOKENS:
            raise BadInput(
                f"ranks {config.ranks}, tokens {config.tokens}: real ranks on one machine are for "
                f"{MOST} ranks and {MOST_TOKENS} tokens at most; take place=devices"
            )
        records = launch(
            _work(), config.ranks, to_dict(config), limit=self.limit, port=self.port,
            poll=lambda: live.poll(0.0),
        )  # fmt: skip
        names = ("o", "dq", "dk", "dv") if config.backward else ("o",)
        return Done(
            merged(records),
            [int(record.array("peak")) for record in records],
            [{name: record.array(name) for name in names} for record in records],
        )


def _work() -> Work:
    from engine.training.context_parallel.work import (
        work,  # it reads the config, which names this place
    )

    return work
