"""Pass times and bytes of a GPT split over tensor, pipeline and data ranks, as Megatron-LM does it.

Matrix products run at one efficiency of the device's peak, fitted once; everything else moves its
bytes over the device's memory or links. Facts and fit lie in `datasets/megatron.toml`.
"""

from dataclasses import replace
from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.hardware.device import Device, device
from engine.hardware.link import link
from engine.training.pipeline import transformer_cost as cost
from engine.training.pipeline.stage_cost import Share, StageCost, Traffic
from engine.training.pipeline.transformer_cost import Shape

FITTED = 0.686  # of the peak; see datasets/megatron.toml
WEIGHT, GRADIENT = 2, 4  # bytes of a parameter and of its gradient
UPDATE = 38  # bytes an Adam update moves a parameter: read 20, write 14, and 4 for the norm
SIZE = "model"
AMONG = {"hidden units": "heads", "layers": "chunks", "heads": "tensor ranks",
         "tokens": "context ranks"}  # fmt: skip


class Transformer(StageCost):
    """A GPT's share of layers: b, s, h, a, V as in the papers; tensor, pipeline, data ranks."""

    kind: Literal["transformer"] = "transformer"
    hidden: int = knob(12288, "hidden size (h)", low=64, high=131072, group=SIZE)
    layers: int = knob(80, "layers (l)", low=1, high=1024, group=SIZE)
    heads: int = knob(96, "attention heads (a)", low=1, high=1024, group=SIZE)
    vocabulary: int = knob(51200, "entries of the vocabulary (V)", low=1, high=1_000_000,
                           group=SIZE)  # fmt: skip
    sequence: int = knob(2048, "sequence length (s)", low=1, high=1_000_000, unit="tokens",
                         group=SIZE)  # fmt: skip
    microbatch: int = knob(2, "sequences in a microbatch (b)", low=1, high=1024)
    tensor: int = knob(8, "tensor-parallel ranks (t), within a node", low=1, high=64)
    data: int = knob(
        24, "data-parallel replicas (d)", low=1, high=4096, called="Data-parallel replicas (d)"
    )
    context: int = knob(1, "context-parallel ranks (c): keys and values go round a ring", low=1,
                        high=256)  # fmt: skip
    recompute: Literal["none", "selective", "full"] = knob("full", "what the backward does again")
    sequence_parallel: bool = knob(False, "norms and dropouts split along the sequence")
    device: str = knob("a100-sxm-80gb", "a device with a data sheet", group="device")
    gemm_efficiency: float = knob(FITTED, "share of the peak that matrix products reach",
                                  low=0.01, high=1.0, group="device")  # fmt: skip
    node: int = knob(8, "devices in a node", low=1, high=1024, group="device")
    network: float = knob(2e10, "network of each device, one way, as reached", low=1e6, high=1e13,
                          unit="B/s", log=True, group="device")  # fmt: skip
    scale_up: float = knob(0.8, "share of the scale-up link that collectives reach", low=0.01,
                           high=1.0, group="device")  # fmt: skip
    sharded_optimiser: bool = knob(
        False, "optimiser states split over the replicas (ZeRO-1)", group="device"
    )
    state_bytes: int = knob(12, "optimiser states of a parameter (Adam with a 32-bit copy: 12)",
                            low=0, high=64, unit="B", group="device")  # fmt: skip

    fault: Literal["none", "not_again", "whole_shard"] = knob(
        "none", "What goes wrong: what is recomputed takes no time, or each tensor rank keeps all "
        "ranks' activations", group="faults",
    )  # fmt: skip

    def shape(self) -> Shape:
        names = ("hidden", "layers", "heads", "vocabulary", "sequence", "microbatch", "tensor",
                 "sequence_parallel", "recompute", "context")  # fmt: skip
        return Shape(**{name: getattr(self, name) for name in names})

    def replicas(self, ranks: int) -> int:
        return self.data

    @property
    def devices(self) -> tuple[int, int]:
        return self.context, self.tensor

    @property
    def capacity(self) -> float:
        return device(self.device).capacity

    def share(self, ranks: int, chunks: int) -> Share:
        shape, there = self.shape(), device(self.device)
        self._divides(ranks, chunks)
        layers = self.layers / ranks
        across, gathered = (each * chunks * (ranks > 1) for each in self._sent(shape, there))
        sent = across + gathered
        forward, backward, weights = self._layer(shape, there)
        held = cost.layer_parameters(shape) * layers / self.tensor
        counted = 12 * self.hidden**2 * layers / self.tensor  # matrices alone, as 2205.05198 does
        split = self.tensor * self.context
        head = cost.logits_flops(shape) / split / self._rate(there)
        owners = self.data * self.context if self.sharded_optimiser else 1
        kept = replace(shape, tensor=1) if self.fault == "whole_shard" else shape
        return Share(
            forward=layers * forward + sent,
            backward_input=layers * backward + sent,
            backward_weight=layers * weights,
            head=(head, head, head),
            reduce=self._reduce(held, there),
            update=held / owners * UPDATE / self._memory(there),
            boundary=cost.boundary_bytes(shape),
            sent=across,
            within=self._within(shape, there, layers, gathered),
            activations=layers * cost.activation_bytes(kept),
            kept=1.0,
            weights=counted * WEIGHT,
            gradients=counted * GRADIENT,
            optimiser=counted * self.state_bytes / owners,
            forward_flops=layers * cost.layer_flops(shape) / split,
            backward_flops=layers * (2 * cost.layer_flops(shape) + cost.again_flops(shape)) / split,
        )

    def _divides(self, ranks: int, chunks: int) -> None:
        for what, number, parts in (
            ("hidden units", self.hidden, self.heads),
            ("layers", self.layers, ranks * chunks),
            ("heads", self.heads, self.tensor),
            ("tokens", self.sequence, self.context),
        ):
            if number % parts:
                raise BadInput(
                    f"transformer: {number} {what} do not divide among {parts} "
                    f"{AMONG[what]}; take a multiple"
                )

    def _rate(self, there: Device) -> float:
        """Flops per second of matrix products."""
        return there.peaks["float16"] * self.gemm_efficiency

    def _memory(self, there: Device) -> float:
        """Bytes per second that reading and writing reach."""
        return there.bandwidth * there.efficiency.get("bandwidth", 1.0)

    def _near(self, there: Device) -> float:
        """Bytes per second within a node."""
        if not there.scale_up:
            raise BadInput(f"device {self.device}: its sheet names no scale-up link; take another")
        return link(there.scale_up).bandwidth * self.scale_up

    def _layer(self, shape: Shape, there: Device) -> tuple[float, float, float]:
        """Seconds of one layer and microbatch: F, I, W. The products of the weights' gradients
        are half the backward's and wait for nobody."""
        rate, memory, t = self._rate(there), self._memory(there), self.tensor
        forward, backward = cost.elementwise_bytes(shape)
        once, twice = cost.all_reduces(shape)
        reduce = self._summed(shape) / self._near(there) if t > 1 else 0.0
        split = t * self.context
        matrices = (cost.layer_flops(shape) - cost.scores_flops(shape)) / split / rate
        scores, again = (f(shape) / split / rate for f in (cost.scores_flops, cost.again_flops))
        if self.fault == "not_again":
            again = 0.0
        ring = cost.ring_bytes(shape) / self._around(there)
        # Each block is worked on while the next arrives; backwards, gradients travel with it.
        return (
            matrices + scores + max(0.0, ring - scores) + forward / memory + once * reduce,
            matrices + 2 * scores + max(0.0, 2 * ring - 2 * scores) + again + backward / memory
            + twice * reduce,
            matrices,
        )  # fmt: skip

    def _summed(self, shape: Shape) -> float:
        """Bytes that a tensor rank sends in a ring all-reduce of one layer's output."""
        t = self.tensor
        return 2 * (t - 1) / t * cost.boundary_bytes(shape)

    def _within(
        self, shape: Shape, there: Device, layers: float, gathered: float
    ) -> tuple[Traffic, Traffic]:
        """What of `_layer`'s times and of the boundary's gathering is traffic, forward and
        backward."""
        if self.tensor * self.context == 1:
            return Traffic(), Traffic()
        near = self._near(there)
        ring = layers * cost.ring_bytes(shape)
        rate = self._rate(there) * self.tensor * self.context
        scores = layers * cost.scores_flops(shape) / rate if ring else 0.0
        found = []
        for times, sums in zip((1, 2), cost.all_reduces(shape), strict=True):
            tensor = layers * sums * self._summed(shape) + gathered * near
            exposed = max(0.0, times * (ring / self._around(there) - scores))
            found.append(Traffic(tensor, times * ring, times * scores, tensor / near + exposed))
        return found[0], found[1]

    def _around(self, there: Device) -> float:
        """Bytes per second of the context ring: within a node where it fits beside the tensor
        ranks, else over each device's network."""
        inside = self.tensor * self.context <= self.node
        return self._near(there) if inside and self.context > 1 else self.network

    def _sent(self, shape: Shape, there: Device) -> tuple[float, float]:
        """A stage's tensor to the next: each tensor rank sends its part over its own network, then
        the node gathers it (scatter/gather, 2104.04473 section 4.1). The rank waits for both."""
        size = cost.boundary_bytes(shape)
        gather = size / self._near(there) if self.tensor > 1 and not self.sequence_parallel else 0.0
        return size / self.tensor / self.network, gather

    def _reduce(self, held: float, there: Device) -> float:
        """Ring all-reduce of the gradients; replicas within one node share its networks."""
        replicas = self.data * self.context
        if replicas == 1:
            return 0.0
        reached = min(self._near(there), self.network * max(1, self.node // self.tensor))
        return 2 * (replicas - 1) / replicas * held * GRADIENT / reached
