"""Communication that work does not hide, over the speed of a link, for each way to split."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine.core.config import knob, update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.run import Live
from engine.distributed.exposed import exposed
from engine.training.sequence.places.devices import Devices
from engine.training.sequence.sweep import Sweep, curve

if TYPE_CHECKING:
    from engine.training.sequence.config import SequenceConfig

PANEL = "time spent waiting"
KINDS = ("ring", "token_ring", "all_to_all")
POINTS = (3e9, 1e10, 3e10, 1e11, 3e11, 9e11)  # B/s


class Waiting(Sweep):
    """Modelled on the devices of the run, or on the default ones beside real ranks."""

    kind: Literal["waiting"] = knob("waiting", doc="exposed communication over link speed")

    def axes(self) -> dict[str, Any]:
        return {PANEL: {"x": "link bandwidth (B/s)", "y": "longest wait (s)", "log_x": True,
                        "log_y": True}}  # fmt: skip

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
            logs = [Log(events) for events in place.over(plain, wires)]
            found = [max(exposed(log).values()) for log in logs]
            low = float(np.finfo(np.float32).tiny)
            curve(live, PANEL, f"{kind} (modelled)", list(POINTS), [max(low, t) for t in found])
