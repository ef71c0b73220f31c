"""Step cost by an operator profile: a forward pass as the sum of measured operators' times.

What the profile does not hold keeps the roofline of `step_cost`. Work in flops and bytes is the
roofline's. The times are of one device that holds the whole layer.
"""

from engine.hardware.cost.profile import Profile
from engine.hardware.device import Device
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.measured_step_cost import MeasuredCost
from engine.models.config import ModelConfig

# Operations of a forward pass as the profiler calls them; the first two are done once a step.
ONCE = {"embedding": ("embedding",), "head": ("final_layernorm", "lm_head", "sampler")}
EACH = {
    "norms": ("layernorm", "layernorm"),
    "qkv": ("qkv_proj", "rotary_emb"),
    "out": ("o_proj",),
    "mlp": ("gate_up_proj", "act_fn", "down_proj"),
}


class ProfiledCost(MeasuredCost):
    """Costs of steps of one model on the device of a profile."""

    def __init__(self, config: ModelConfig, device: Device, dtype: str, profile: Profile) -> None:
        super().__init__(config, device, dtype)
        self.profile = profile
        self.known: dict[tuple[str, int], float | None] = {}

    def _seconds(self, name: str, flops: float, size: float, shape: Shape) -> float | None:
        if name == "attention":
            return self._attention(shape)
        count = shape.rows if name == "head" else shape.tokens
        if (name, count) not in self.known:
            self.known[name, count] = self._sum(name, count)
        return self.known[name, count]

    def _interval(self, name: str, seconds: float, shape: Shape) -> None:
        """A profile holds one time of each operator."""

    def _sum(self, name: str, count: int) -> float | None:
        """Of the operators that an operation is made of; None where the profile lacks one."""
        if name not in EACH and name not in ONCE:
            return None
        if not count:
            return 0.0
        parts = [self.profile.operator(each, count) for each in EACH.get(name) or ONCE[name]]
        if None in parts:
            return None
        dense = self.config.layers - sum(self.config.expert_layers)
        times = 1 if name in ONCE else dense if name == "mlp" else self.config.layers
        return times * sum(part for part in parts if part is not None)

    def _attention(self, shape: Shape) -> float:
        """A call in each layer: the longest chunk beside the answers, and what each further one
        takes alone more than the shortest call."""
        layers, ones = self.config.layers, shape.singles
        context = shape.seen / max(1, ones)
        if not shape.chunks:
            return layers * self.profile.call(0, 0, ones, context)
        first, *others = sorted(shape.chunks, reverse=True)
        shortest = float(self.profile.attention.seconds.min())
        more = sum(self.profile.call(*each, 0, 0) - shortest for each in others)
        return layers * (self.profile.call(*first, ones, context) + more)
