"""Nano-batches (NanoFlow, arXiv 2408.12757): a step's tokens in two parts, of which one computes
while the other reads its cache or sends."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from engine.core.config import knob
from engine.inference.executors.executor import Built, Execution
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.settings import Settings


class NanoBatches(Modelled):
    """A described device whose units products, attention of answers and collectives share.

    The published code sends with 8, 16 or 32 of an A100's 108 multiprocessors; with how many of
    them attention reaches memory's rate is assumed.
    """

    kind: Literal["nano_batches"] = "nano_batches"  # type: ignore[assignment]
    split: float = knob(
        0.0, "Tokens of a step in the first part; 0: what a search finds quickest", low=0.0,
        high=0.9, group="nano-batches",
    )  # fmt: skip
    memory_units: float = knob(
        0.4, "Part of the units with which attention reaches memory's rate", low=0.05, high=1.0,
        group="nano-batches",
    )  # fmt: skip
    network_units: float = knob(
        0.15, "Part of the units that a collective takes", low=0.0, high=0.9, group="nano-batches"
    )
    overlap: Literal["beside", "in_turn", "none"] = knob(
        "beside", "Whether operations of both parts run beside one another, in turn, or all of a "
        "step is one part", group="nano-batches",
    )  # fmt: skip

    def build(self, config: Settings) -> Built:
        from engine.inference.executors.costs.modelled_executor import build
        from engine.inference.executors.costs.nano_batches import (
            LanedExecutor,
            NanoBatchedCost,
        )
        from engine.inference.executors.costs.unit_lanes import LANES

        built = build(config, self)
        plain: Any = built.executor
        cost = NanoBatchedCost(plain.cost, self)
        facts = replace(plain.facts, lanes=LANES)
        executor = LanedExecutor(facts, cost, self, plain.host, plain.drafting)
        return replace(built, executor=executor)


class NanoBatchesHere(Execution):
    """Two workers of this machine, each with a part of a step's sequences: while one computes
    products the other attends."""

    real: ClassVar[bool] = True
    kind: Literal["nano_batches_here"] = "nano_batches_here"
    units: bool = knob(True, "Products of one part at a time, and attention of one")
    fault: Literal["none", "swapped", "in_turn"] = knob(
        "none", "What goes wrong: the parts' rows are put back in the wrong order, or one part "
        "waits for the other throughout", group="faults",
    )  # fmt: skip

    def build(self, config: Settings) -> Built:
        from engine.inference.executors.tensors.nano_batches import build  # brings torch

        return build(config, self)
