"""Work of wide expert parallelism: what one device does of a step, operation by operation, in
flops, bytes of its memory and seconds on the bus (CloudMatrix-Infer, arXiv 2506.12708).

Attention is that of a device's own tokens over latents; a token goes to the devices of its experts
and what they say comes back.
"""

from collections.abc import Iterator
from math import log2
from typing import NamedTuple, Protocol

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.device import Device
from engine.hardware.link import link
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.models.config import ModelConfig

WIDE = 2  # bytes of a bfloat16
SCALE = 512  # bytes beside a token in 8 bits: 7.5 KB of 7,168 numbers, as public notes have it
NEAR = 8  # devices among which the operators that send reach what the config says


class How(Protocol):
    """What `engine.inference.executors.wide_experts.WideExperts` says."""

    device: str
    dies: int
    own: int
    redundant: int
    shared: int
    skew: float
    int8: bool
    bus: str
    bandwidth: float
    dispatch_reach: float
    combine_reach: float
    fall: float
    attention_units: float
    memory_units: float
    drafting_layers: int

    @property
    def exchange(self) -> str:
        """dispatch or gather."""

    @property
    def overlap(self) -> str:
        """beside, in_turn or none."""


class Load(NamedTuple):
    """What one device does of a step, or of a microbatch. Pairs of a new and a visible token;
    `latent`: tokens that attend to latents as they are kept; `raised`: tokens whose keys and
    values are raised from theirs; `read`: latents that are read."""

    tokens: float
    rows: float
    latent: float
    latent_pairs: float
    read: float
    raised: float
    raised_pairs: float

    def part(self, count: int) -> "Load":
        return Load(*(each / count for each in self))


class Work(NamedTuple):
    """One operation in one layer: flops by number type, bytes of memory, seconds on the bus."""

    name: str
    dtype: str
    flops: float
    bytes: float
    sent: float = 0.0


class WideExpertWork(ForwardWork):
    """What steps of one model are to one of the devices that share its experts."""

    def __init__(self, config: ModelConfig, machine: Device, how: How) -> None:
        super().__init__(config, "bfloat16")
        if config.latent is None or config.experts is None:
            raise BadInput(
                f"executor wide_experts: {config.architecture} has no latent attention with "
                "experts; take a DeepSeek-V2 or V3, or executor=modelled"
            )
        self.device, self.how, self.latent, self.moe = machine, how, config.latent, config.experts
        if how.own > how.dies:
            raise BadInput(f"executor.own: {how.own}, of {how.dies} dies")
        self.memory, self.kind = machine.reached("bandwidth"), "int8" if how.int8 else "bfloat16"
        self.size = 1 if how.int8 else WIDE
        by = link(how.bus or machine.scale_up)
        far = how.fall ** max(0.0, log2(how.dies / NEAR))
        rate = how.bandwidth or by.bandwidth
        self.late, self.bulk = by.latency, rate * how.combine_reach
        self.sending = {"dispatch": rate * how.dispatch_reach * far, "combine": self.bulk * far}
        self.routed = sum(config.expert_layers) + how.drafting_layers
        self.dense = config.layers - sum(config.expert_layers)

    def load(self, shape: Shape) -> Load:
        """What one device does of a step. Prompts' keys are raised from latents where that is
        cheaper than attending to the latents themselves."""
        a, heads = self.latent, self.config.heads
        pair = 2 * a.rank + a.rope, a.nope + a.rope + a.value
        mix = a.rank * (a.nope + a.value)
        new, before = np.array(shape.chunks, np.float64).reshape(-1, 2).T
        pairs = new * (2 * before + new + 1) / 2
        near = heads * (pairs * pair[0] + new * mix) <= heads * (
            pairs * pair[1] + (before + new) * mix
        )
        asked = (
            shape.tokens, shape.rows, shape.singles + new[near].sum(),
            shape.seen + pairs[near].sum(), shape.seen + (before + new)[near].sum(),
            (before + new)[~near].sum(), pairs[~near].sum(),
        )  # fmt: skip
        return Load(*map(float, asked)).part(self.how.own)

    def layer(self, load: Load) -> Iterator[Work]:
        """Of a layer with experts."""
        yield from self._attention(load)
        moe, hidden, t = self.moe, self.config.hidden, load.tokens
        gate = 2 * t * hidden * moe.count, WIDE * hidden * (moe.count + t)
        yield Work("gate", "bfloat16", *gate)
        here, away, copies = self.spread(t)
        message = hidden + SCALE if self.how.int8 else WIDE * hidden
        each = (self.how.dies - 1) * t if self.how.exchange == "gather" else away
        yield Work(
            "dispatch", self.kind, 0, 0, self.late + each * message / self.sending["dispatch"]
        )
        one = 3 * hidden * moe.width
        reached = copies * (1 - (1 - 1 / max(copies, 1.0)) ** here)
        moved = reached * one * self.size + here * (hidden + 3 * moe.width) * self.size
        yield Work("experts", self.kind, 2 * one * here, moved)
        back = each * WIDE * hidden / self.sending["combine"]
        yield Work("combine", self.kind, 0, 0, self.late + back)

    def spread(self, tokens: float) -> tuple[float, float, float]:
        """Tokens that the busiest device computes where each has `tokens` of its own, those that
        come to it over the bus, and copies of experts that it has."""
        how, moe = self.how, self.moe
        each = tokens * moe.per_token * how.skew
        if how.shared >= how.dies:  # every device has a shared expert
            copies = (moe.count + how.redundant) / how.dies
            return each + tokens, each * (1 - 1 / how.dies), copies + 1
        rest = how.dies - how.shared
        busiest = max(each * how.dies / rest, tokens * how.dies / how.shared)
        return busiest, busiest, (moe.count + how.redundant) / rest

    def _attention(self, load: Load) -> Iterator[Work]:
        a, heads, hidden, size = self.latent, self.config.heads, self.config.hidden, self.size
        t, wide = load.tokens, heads * (a.nope + a.rope)
        first = self.query + hidden * (a.rank + a.rope)
        flops = 2 * (t * first + load.latent * a.rank * heads * a.nope + load.raised * self.mix)
        moved = (first + self.mix) * size + t * WIDE * (2 * hidden + wide)
        yield Work("prolog", self.kind, flops, moved)
        if load.raised > load.latent and self.how.own > 1:  # the tokens of all, for own heads
            apart = (self.how.own - 1) * t * self.size * (a.query_rank + a.rank + a.rope)
            yield Work("gather", self.kind, 0, 0, self.late + apart / self.bulk)
        pairs = load.latent_pairs * (2 * a.rank + a.rope)
        pairs += load.raised_pairs * (a.nope + a.rope + a.value)
        moved = WIDE * (load.read * (a.rank + a.rope) + t * (wide + heads * a.value))
        yield Work("attend", "bfloat16", 2 * heads * pairs, moved)
        if load.raised > load.latent and self.how.own > 1:
            back = t * WIDE * heads * a.value * (1 - 1 / self.how.own)
            yield Work("heads", self.kind, 0, 0, self.late + back / self.bulk)
        out = heads * a.value * hidden
        flops = 2 * (t * out + load.latent * a.rank * heads * a.value)
        yield Work("out", self.kind, flops, out * size + t * WIDE * (heads * a.value + hidden))

    @property
    def query(self) -> int:
        """Weights of a layer's queries."""
        a, wide = self.latent, self.config.heads * (self.latent.nope + self.latent.rope)
        if not a.query_rank:
            return self.config.hidden * wide
        return a.query_rank * (self.config.hidden + wide)

    @property
    def mix(self) -> int:
        """Weights between a layer's latents and its heads' keys and values."""
        return self.latent.rank * self.config.heads * (self.latent.nope + self.latent.value)

    def dense_layer(self, load: Load) -> Iterator[Work]:
        """Of a layer without experts."""
        yield from self._attention(load)
        weights, t = 3 * self.config.hidden * self.config.width, load.tokens
        moved = weights * self.size + t * WIDE * (self.config.hidden + self.config.width)
        yield Work("mlp", self.kind, 2 * t * weights, moved)

    def once(self, load: Load) -> Iterator[Work]:
        """What a step does but once."""
        table = self.config.vocab * self.config.hidden
        yield Work("head", "bfloat16", 2 * load.rows * table, WIDE * table)

    @property
    def weights(self) -> float:
        """Bytes of weights on one device."""
        a, config, moe, how = self.latent, self.config, self.moe, self.how
        attention = self.query + config.hidden * (a.rank + a.rope) + self.mix
        attention += config.heads * a.value * config.hidden
        copies = (moe.count + how.redundant + min(how.shared, how.dies)) / how.dies
        each = copies * 3 * config.hidden * moe.width
        found = (self.dense + self.routed) * attention + self.routed * each
        found += self.dense * 3 * config.hidden * config.width
        gates = self.routed * config.hidden * moe.count + 2 * config.vocab * config.hidden
        return found * self.size + gates * WIDE
