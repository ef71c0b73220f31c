"""Items done by threads of this machine, on the wall clock."""

import os
import threading
from collections import deque
from typing import Any, ClassVar, Literal

from engine.core.clock import Clock
from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.events import Span
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.hardware.roofs import THIS_MACHINE
from engine.kernels.attention.policy import Phase, Workers, lane


class Real(Workers):
    """Each takes the next item when it is done with its last."""

    formerly: ClassVar = ("threads",)
    kind: Literal["real"] = knob("real", doc="Threads of this machine, wall clock")
    count: int = knob(2, "Threads", low=1, high=64)

    def number(self) -> int:
        cores = os.cpu_count() or 1
        if self.count > 4 * cores:
            raise BadInput(
                f"workers.count: {self.count} threads on {cores} cores; give at most {4 * cores}, "
                "or workers=modelled"
            )
        return self.count

    @property
    def place(self) -> tuple[str, str]:
        return THIS_MACHINE, "float32"

    def work(self, phase: Phase, clock: Clock, live: Live) -> float:
        do, ready = phase.open(), threading.Barrier(self.number() + 1)
        waiting, lock, faults = deque(phase.items), threading.Lock(), deque[Exception]()

        def take_turns(worker: int) -> None:
            ready.wait()
            while not faults:
                try:
                    item = waiting.popleft()
                except IndexError:
                    return
                start = clock.now()
                try:
                    do(item, worker)
                except Exception as fault:  # raised where the run is driven, below
                    faults.append(fault)
                    return
                said = tag(task=item.label, pairs=item.pairs)
                with lock:  # emission order is time order
                    live.emit(Span(clock.now(), lane(worker), phase.name, start, tag=said))

        threads = [
            threading.Thread(target=take_turns, args=(worker,), daemon=True)
            for worker in range(self.number())
        ]
        for thread in threads:
            thread.start()
        begun = clock.now()
        ready.wait()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]
        return begun

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "roofs": known_roofs(self.count)}
