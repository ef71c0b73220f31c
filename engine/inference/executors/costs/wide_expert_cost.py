"""Step cost of wide expert parallelism: attention of each device's own tokens, experts spread over
all devices, tokens sent to them and back over a bus (CloudMatrix-Infer, arXiv 2506.12708).

With two microbatches, answers' attention of one runs on some cores beside the experts and the
messages of the other on the rest; of prompts, messages run beside all cores.
"""

from collections.abc import Iterator
from math import log2
from typing import Any, Protocol, cast

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.hardware import roofs_of
from engine.hardware.device import Device, device
from engine.inference.executors.costs.device_cost import Choice
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.mirrored_drafts import drafting_of
from engine.inference.executors.costs.nano_batches import LanedExecutor, in_layers
from engine.inference.executors.costs.prompt_reader import prompt_reader
from engine.inference.executors.costs.step_cost import OpTime
from engine.inference.executors.costs.unit_lanes import Operation, Placed, in_lanes
from engine.inference.executors.costs.wide_expert_work import How, Load, WideExpertWork, Work
from engine.inference.executors.executor import Built, Facts
from engine.inference.executors.settings import Settings
from engine.models.config import ModelConfig
from engine.models.kv import cache_spec
from engine.models.loading.find import find

CORES, ATTENTION, EXPERTS, BUS = "cores", "attention path", "expert path", "bus"
LANES = CORES, ATTENTION, EXPERTS, BUS
PATH = "prolog", "attend", "out"  # of attention; the others are the experts'
SENT = "gather", "heads", "dispatch", "combine"
ALIKE = 4  # kinds of steps told apart for each doubling of their tokens
MOST = 20_000  # shapes whose times are kept


class Chosen(How, Choice, Protocol):
    """How an instance is made, and what all modelled execution says."""


class WideExpertCost(WideExpertWork):
    """Costs of steps of one replica; the same questions as `StepCost` answers."""

    def __init__(self, config: ModelConfig, machine: Device, how: How) -> None:
        super().__init__(config, machine, how)
        self.layers = self.routed
        self.known: dict[Shape, tuple[float, float, float]] = {}
        self.parts: dict[tuple[int, int, bool], int] = {}  # microbatches of steps alike

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds of a step, and flops and bytes of one device in it."""
        if shape not in self.known:
            if len(self.known) > MOST:
                self.known.clear()
            ops = self.describe(shape)
            seconds = self.seconds(shape, self.pipeline(shape))
            self.known[shape] = seconds, sum(o.flops for o in ops), sum(o.bytes for o in ops)
        return self.known[shape]

    def describe(self, shape: Shape) -> list[OpTime]:
        """Each operation of a device, as if it ran alone in one microbatch."""
        load, found = self.load(shape), []
        for times, works in (
            (self.routed, self.layer(load)), (self.dense, self.dense_layer(load)),
            (1 + self.how.drafting_layers, self.once(load)),
        ):  # fmt: skip
            for one in works:
                roof = "link" if one.sent else "bandwidth"
                if one.flops / self.device.reached(one.dtype) > one.bytes / self.memory:
                    roof = one.dtype
                each = self._alone(one), one.flops, one.bytes
                seconds, flops, moved = (times * value for value in each)
                found.append(OpTime(one.name, seconds, flops, moved, roof))
        return found

    def pipeline(self, shape: Shape) -> int:
        """How many microbatches a step has: two where they are beside one another and quicker, as
        the first step like it says."""
        if self.how.overlap != "beside" or shape.tokens < 2:
            return 1 if self.how.overlap == "none" else 2
        seen = shape.touched // shape.tokens
        key = round(ALIKE * log2(shape.tokens)), seen.bit_length(), len(shape.chunks) > 0
        if key not in self.parts:
            self.parts[key] = min((1, 2), key=lambda count: self.seconds(shape, count))
        return self.parts[key]

    def seconds(self, shape: Shape, count: int) -> float:
        """Of a step in `count` microbatches; each layer after the first takes as long as the
        second."""
        load = self.load(shape)
        once = sum(map(self._alone, self.once(load))) * (1 + self.how.drafting_layers)
        once += self.dense * sum(map(self._alone, self.dense_layer(load)))
        if count == 1 or self.how.overlap == "in_turn":
            layer = sum(map(self._alone, self.layer(load.part(count))))
            return once + self.routed * count * layer
        first, second = (self._last(shape, layers) for layers in (1, 2))
        return once + first + (self.routed - 1) * (second - first)

    def _last(self, shape: Shape, layers: int) -> float:
        return max(one.stop for one in self.went(shape, 2, layers))

    def went(self, shape: Shape, count: int, layers: int) -> list[Placed]:
        """The operations of the first routed layers, as they go in `count` microbatches."""
        load = self.load(shape)
        prompts = load.raised > load.latent
        parts = [list(self._lanes(load.part(count), n, prompts, count)) for n in range(count)]
        beside = self.how.overlap == "beside"
        return in_lanes(list(in_layers(parts, layers)), LANES, _rates, beside)

    def _lanes(self, load: Load, n: int, prompts: bool, count: int) -> Iterator[Operation]:
        apart = count > 1 and self.how.overlap == "beside" and not prompts
        for place, one in enumerate(self.layer(load)):
            units = 1.0
            if prompts or not apart:
                lane = BUS if one.name in SENT else CORES
            else:
                lane = ATTENTION if one.name in PATH else EXPERTS
                share = self.how.attention_units
                units = share if lane == ATTENTION else 1 - share
            seconds = self._alone(one, units)
            reads = one.bytes / self.memory / seconds
            yield Operation(one.name, n, lane, seconds, reads, (place - 1,) if place else ())

    def _alone(self, one: Work, units: float = 1.0) -> float:
        """Seconds of an operation on a part of the cores."""
        if one.sent:
            return one.sent
        compute = one.flops / (self.device.reached(one.dtype) * units)
        moved = one.bytes / (self.memory * min(1.0, units / self.how.memory_units))
        return max(compute, moved) + self.device.launch


def _rates(running: dict[str, Operation]) -> dict[str, float]:
    """Lanes slow one another down by what they read of the memory's rate alone."""
    asked = sum(one.reads for one in running.values())
    return {lane: 1 / asked if one.reads and asked > 1 else 1.0 for lane, one in running.items()}


def build(config: Settings, how: Chosen) -> Built:
    """The executor for a config, under a virtual clock. Raises BadInput."""
    found, machine = find(config.model), device(how.device)
    model = found.config
    cost = WideExpertCost(model, machine, how)
    per_page = config.page_size * cache_spec(model, "bfloat16").bytes_per_token()
    pages = config.pages * per_page / how.own
    over = cost.weights + pages - machine.capacity
    if over > 0:
        raise BadInput(
            f"device {machine.name}: {cost.weights / 1e9:.3g} GB of weights and {pages / 1e9:.3g} "
            f"GB of pages do not fit its {machine.capacity / 1e9:.3g} GB by {over / 1e9:.3g} GB "
            f"({over:,.0f} bytes); spread experts over more dies, or choose fewer pages or copies"
        )
    facts = Facts(
        model=found.name, device=machine.name, vocab=model.vocab, context=model.max_positions,
        layers=model.layers, heads=model.heads, bytes_per_page=per_page, dtype="bfloat16",
        roofs=tuple(roofs_of(machine)), lanes=LANES,
    )  # fmt: skip
    drafting = None
    if config.speculation.drafts:
        drafting = drafting_of(config.speculation, model.vocab, None, how.per_step)
    executor = LanedExecutor(facts, cast(Any, cost), how, None, drafting)
    return Built(executor, VirtualClock(), prompt_reader(config, found.folder))
