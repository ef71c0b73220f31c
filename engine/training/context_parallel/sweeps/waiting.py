"""Communication that work does not hide, over the speed of a link, for each way to split."""

from typing import TYPE_CHECKING, ClassVar, Literal

from engine.core.config import knob, update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.core.log import Log
from engine.core.plot import Plot
from engine.core.run import Live
from engine.distributed.exposed import exposed
from engine.training.context_parallel.places.devices import Devices
from engine.training.context_parallel.sweep import Sweep

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig

PLOT = Plot("time spent waiting", "link bandwidth (B/s)", "share of the time", log_x=True)
KINDS = ("ring", "token_ring", "all_to_all")
POINTS = (3e9, 1e10, 3e10, 1e11, 3e11, 9e11)  # B/s


class Waiting(Sweep):
    """Modelled on the devices of the run, or on the default ones beside real ranks."""

    kind: Literal["waiting"] = knob("waiting", doc="exposed communication over link speed")

    plots: ClassVar = (PLOT,)

    def draw(self, config: "SequenceConfig", live: Live) -> None:
        place = config.place if isinstance(config.place, Devices) else Devices()
        wire = place.wire()
        for kind in KINDS:
            try:
                plain = update(config, {"attention": kind, "dropped": -1})
            except BadInput:  # heads that do not divide by the ranks
                continue
            live.poll(live.log.duration)
            wires = [wire.model_copy(update={"bandwidth": speed}) for speed in POINTS]
            found = [share(events) for events in place.over(plain, wires)]
            points = list(zip(POINTS, found, strict=True))
            live.curve(live.log.duration, PLOT, kind, points, modelled=True)


def share(events: list[AnyEvent]) -> float:
    """The longest wait of any rank, as a part of all the time."""
    end = max(event.time for event in events)
    return max(exposed(Log(events)).values()) / end
