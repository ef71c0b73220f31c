"""Ranks of one replica: how a model is shared out among devices when it is served.

Tensor parallelism splits heads, feed-forwards and vocabulary; pipeline parallelism splits layers;
data parallelism repeats attention and splits requests, while experts are split over all of its
ranks (whole experts with expert parallelism, else their width), as vLLM and SGLang do.
"""

from dataclasses import dataclass, replace

from engine.core.errors import BadInput
from engine.models.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Ranks:
    """How many ranks along each axis; `experts`: whole experts on a rank, not parts of each."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False

    @property
    def count(self) -> int:
        """Devices in all."""
        return self.tensor * self.pipeline * self.data

    @property
    def sharing(self) -> int:
        """Ranks that share a layer's experts."""
        return self.tensor * self.data

    def check(self, config: ModelConfig) -> None:
        """Raises BadInput where the model does not divide."""
        parts = {"heads": config.heads, "numbers of a feed-forward": config.width}
        for name, size in parts.items():
            if size % self.tensor:
                raise BadInput(f"tensor_parallel {self.tensor}: {size} {name} do not divide")
        if config.kv_heads % self.tensor and self.tensor % config.kv_heads:
            raise BadInput(
                f"tensor_parallel {self.tensor}: {config.kv_heads} key and value heads do not "
                "divide, nor does it among them"
            )
        if self.pipeline > config.layers:
            raise BadInput(
                f"pipeline_parallel {self.pipeline}: the model has {config.layers} layers"
            )
        if self.experts and config.experts is None:
            raise BadInput("expert_parallel: the model has no experts")
        if self.experts and config.experts and config.experts.count % self.sharing:
            raise BadInput(
                f"expert_parallel: {config.experts.count} experts do not divide among "
                f"{self.sharing} ranks"
            )

    def shard(self, config: ModelConfig) -> ModelConfig:
        """What one tensor rank computes, as a model: all layers of it."""
        n, experts = self.tensor, config.experts
        if n == 1:
            return config
        if experts is not None:
            experts = replace(experts, width=-(-experts.width // n), shared=experts.shared // n)
        wide = config.wide_heads
        return replace(
            config,
            heads=config.heads // n,
            kv_heads=max(1, config.kv_heads // n),
            wide_heads=None if wide is None else (max(1, wide[0] // n), wide[1]),
            width=config.width // n,
            widths=tuple(width // n for width in config.widths),
            vocab=-(-config.vocab // n),
            experts=experts,
        )

    def layers(self, config: ModelConfig) -> float:
        """Part of the layers that the fullest pipeline stage holds."""
        return -(-config.layers // self.pipeline) / config.layers
