"""Items done by the processors of a described device, on the virtual clock.

A processor does an item's products, then its exponentials, then its other arithmetic, each at its
share of the device's rate; how much of the latter two is done while products go on is a knob.
"""

from typing import Any, ClassVar, Literal

from engine.core.clock import Clock
from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.events import Span
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware import Device, device, roofs_of
from engine.kernels.attention.policy import Phase, Workers, lane
from engine.kernels.work_queue import first_free


class Modelled(Workers):
    """The first free processor takes the next item, as a GPU hands out thread blocks."""

    kind: Literal["modelled"] = knob("modelled", doc="Processors of a described device")
    device: str = knob("a100-sxm-80gb", "Device, by the name of its data sheet")
    dtype: Literal["bfloat16", "float16", "float32"] = knob("bfloat16", "Dtype of the products")
    units: int = knob(0, "Processors that take part; 0: all of the device", low=0, high=1024)
    overlap: float = knob(
        0.0, "Part of exponentials and other arithmetic that is done behind the products", low=0.0,
        high=1.0, group="more",
    )  # fmt: skip
    real: ClassVar[bool] = False

    def number(self) -> int:
        return self.units or self.sheet().units

    def sheet(self) -> Device:
        """The device. Raises BadInput where its processors or exponentials are not known."""
        found = device(self.device)
        if not found.units or not found.exponentials:
            raise BadInput(
                f"workers.device {self.device!r}: its sheet has no units or no exponentials; "
                "choose another, such as a100-sxm-80gb"
            )
        return found

    @property
    def place(self) -> tuple[str, str]:
        return self.device, self.dtype

    def seconds(self, phase: Phase) -> float:
        """Of one query-key pair on one processor."""
        found = self.sheet()
        rest = phase.other_flops / max(phase.pairs, 1)
        products = phase.pair_flops / found.reached(self.dtype)
        beside = 1 / (found.exponentials or 1.0) + rest / found.peak("float32")
        return (products + (1 - self.overlap) * beside) * found.units

    def work(self, phase: Phase, clock: Clock, live: Live) -> float:
        begun, pair = clock.now(), self.seconds(phase)
        runs = ([item.pairs * pair] for item in phase.items)
        dealt = first_free(runs, self.number())
        spans = []
        for item, (worker, start, stop) in zip(phase.items, dealt, strict=True):
            said = tag(task=item.label, pairs=item.pairs, grade="modelled")
            spans.append(Span(begun + stop, lane(worker), phase.name, begun + start, tag=said))
        for span in sorted(spans, key=lambda span: span.time):
            live.emit(span)
        clock.wait_until(max((span.time for span in spans), default=begun))
        return begun

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "roofs": roofs_of(self.sheet()), "device": self.device}
