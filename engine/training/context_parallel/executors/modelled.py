"""Ranks are described devices joined by described links, on the virtual clock."""

from typing import ClassVar, Literal

import torch

from engine.core.config import Choice, knob
from engine.core.run import Live
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.program import Compute
from engine.distributed.virtual import Network, Seconds, play
from engine.distributed.wiring import Wiring
from engine.distributed.wirings.mesh import Mesh
from engine.hardware import device, link
from engine.hardware.cost.constants import DEFAULT, constants
from engine.hardware.cost.model import CostModel
from engine.hardware.link import Link
from engine.training.context_parallel.executor import AttentionExecutor, Done
from engine.training.context_parallel.piece import FORWARD
from engine.training.context_parallel.problem import deal, program, shaped
from engine.training.context_parallel.split_attention import SplitAttention


class Modelled(AttentionExecutor):
    """Shapes travel, not numbers, unless `numbers` asks for them (float32 on this machine)."""

    real: ClassVar[bool] = False
    formerly: ClassVar = ("devices",)
    kind: Literal["modelled"] = knob("modelled", doc="described devices and links, virtual clock")
    device: str = knob("a100-sxm-80gb", "device, by the name of its data sheet")
    link: str = knob("pcie4-x16", "link, by the name of its data sheet; the speed of one wire")
    wiring: Choice[Wiring] = knob(make=Mesh, doc="how ranks are joined")
    dtype: Literal["bfloat16", "float16", "float32"] = knob("bfloat16", "of what travels")
    constants: str = knob(
        DEFAULT, "of its cost model: own (the device's), a name in datasets/cost, a file"
    )
    numbers: bool = knob(False, "compute with real numbers, to hold them to the truth")

    def wire(self) -> Link:
        """One direction of one wire. Raises BadInput where there is no such link."""
        return link(self.link)

    def attend(self, asked: SplitAttention, live: Live) -> Done:
        pieces = asked.pieces()
        dtype = getattr(torch, self.dtype)
        owned = [deal(asked, piece) if self.numbers else shaped(asked, dtype) for piece in pieces]
        memory = [MemoryTracker() for _ in pieces]
        for each, own in zip(memory, owned, strict=True):
            each.note(own)
        programs = [program(asked, p, own) for p, own in zip(pieces, owned, strict=True)]
        network = Network(self.wiring, self.wire(), asked.ranks)
        ran = play(programs, memory, self.seconds(asked), network)
        arrays = []
        if self.numbers:
            arrays = [{n: t.numpy() for n, t in result.items()} for result in ran.results]
        return Done(ran.events, ran.peaks, arrays)

    def seconds(self, asked: SplitAttention) -> Seconds:
        """Of a computation: products at the rate the cost model gives attention of a rank's size,
        everything else at the device's memory; and a launch."""
        described = device(self.device)
        tokens = max(1, asked.tokens // asked.ranks)
        told = CostModel(described, constants(self.constants, self.device)).prefill(
            asked.batch, tokens, asked.heads, asked.kv_heads, asked.dim, self.dtype
        )
        flops = FORWARD * asked.dim * asked.heads * asked.batch * tokens * (tokens + 1) / 2
        rate = flops / told.seconds

        def seconds(step: Compute) -> float:
            memory = step.bytes / described.reached("bandwidth")
            return described.launch + max(step.flops / rate, memory)

        return seconds
