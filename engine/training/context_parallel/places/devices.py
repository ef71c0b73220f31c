"""Ranks are described devices joined by described links, on the virtual clock."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import torch

from engine.core.clock import Clock, VirtualClock
from engine.core.config import Choice, knob
from engine.core.events import AnyEvent
from engine.core.run import Live
from engine.distributed.again import again, noted
from engine.distributed.held import Held
from engine.distributed.program import Compute, Step
from engine.distributed.virtual import Network, Seconds, play
from engine.distributed.wiring import Wiring
from engine.distributed.wirings.mesh import Mesh
from engine.hardware import device, link
from engine.hardware.cost import CostModel
from engine.hardware.link import Link
from engine.training.context_parallel.piece import FORWARD
from engine.training.context_parallel.place import Done, Place
from engine.training.context_parallel.problem import deal, program, shaped

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig


class Devices(Place):
    """Shapes travel, not numbers, unless `numbers` asks for them (float32 on this machine)."""

    kind: Literal["devices"] = knob("devices", doc="described devices and links, virtual clock")
    device: str = knob("a100-sxm-80gb", "device, by the name of its data sheet")
    link: str = knob("pcie4-x16", "link, by the name of its data sheet; the speed of one wire")
    wiring: Choice[Wiring] = knob(make=Mesh, doc="how ranks are joined")
    dtype: Literal["bfloat16", "float16", "float32"] = knob("bfloat16", "of what travels")
    numbers: bool = knob(False, "compute with real numbers, to hold them to the truth")
    real: ClassVar[bool] = False

    def clock(self) -> Clock:
        return VirtualClock()

    def wire(self) -> Link:
        """One direction of one wire. Raises BadInput where there is no such link."""
        return link(self.link)

    def attend(self, config: "SequenceConfig", live: Live) -> Done:
        pieces = config.pieces()
        dtype = getattr(torch, self.dtype)
        owned = [deal(config, piece) if self.numbers else shaped(config, dtype) for piece in pieces]
        held = [Held() for _ in pieces]
        for each, own in zip(held, owned, strict=True):
            each.note(own)
        programs = [program(config, p, own) for p, own in zip(pieces, owned, strict=True)]
        network = Network(self.wiring, self.wire(), config.ranks)
        ran = play(programs, held, self.seconds(config), network)
        arrays = []
        if self.numbers:
            arrays = [{n: t.numpy() for n, t in result.items()} for result in ran.results]
        return Done(ran.events, ran.peaks, arrays)

    def over(self, config: "SequenceConfig", wires: Sequence[Link]) -> list[list[AnyEvent]]:
        """The events of the same steps over wires of other speeds: shapes travel once."""
        pieces = config.pieces()
        noting: list[list[Step]] = [[] for _ in pieces]
        dtype, seconds = getattr(torch, self.dtype), self.seconds(config)

        def network(wire: Link) -> Network:
            return Network(self.wiring, wire, config.ranks)

        def held() -> list[Held]:
            return [Held() for _ in pieces]

        programs = [
            noted(program(config, piece, shaped(config, dtype)), steps)
            for piece, steps in zip(pieces, noting, strict=True)
        ]
        play(programs, held(), seconds, network(self.wire()))
        return [
            play([again(steps) for steps in noting], held(), seconds, network(wire)).events
            for wire in wires
        ]

    def seconds(self, config: "SequenceConfig") -> Seconds:
        """Of a computation: products at the rate the cost model gives attention of a rank's size,
        everything else at the device's memory; and a launch."""
        described = device(self.device)
        tokens = max(1, config.tokens // config.ranks)
        told = CostModel(described).prefill(
            config.batch, tokens, config.heads, config.kv_heads, config.dim, self.dtype
        )
        flops = FORWARD * config.dim * config.heads * config.batch * tokens * (tokens + 1) / 2
        rate = flops / told.seconds

        def seconds(step: Compute) -> float:
            memory = step.bytes / described.reached("bandwidth")
            return described.launch + max(step.flops / rate, memory)

        return seconds
