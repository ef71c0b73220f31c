"""The knobs of a backward in pieces: a small model, a batch, what to train for, and how."""

from pydantic import model_validator

from engine.core.config import Choice, Config, knob
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.training.streamed.method import Method
from engine.training.streamed.methods.streamed import Streamed
from engine.training.streamed.objectives import Objective, Sft


class StreamedConfig(Config):
    """One step's gradients of a Qwen3-shaped model with random weights on random tokens.

    In the default shape logits weigh against the kept inputs of layers about as in Qwen3-8B.
    """

    gone = ("sweep",)
    method: Choice[Method] = knob(make=Streamed, doc="how gradients are got")
    objective: Choice[Objective] = knob(make=Sft, doc="what the model is trained for")
    tokens: int = knob(256, "of each sequence", low=2, high=1 << 20, unit="tokens", log=True)
    batch: int = knob(2, "sequences", low=1, high=64)
    beside: bool = knob(True, "run the other ways too, one after the other")
    hidden: int = knob(64, "width", low=8, high=8192, group="model", log=True)
    layers: int = knob(8, "layers", low=1, high=128, group="model")
    heads: int = knob(4, "query heads", low=1, high=128, group="model")
    kv_heads: int = knob(1, "key/value heads", low=1, high=128, group="model")
    width: int = knob(192, "of the feed-forward", low=8, high=65536, group="model", log=True)
    vocabulary: int = knob(1024, "tokens it can say", low=8, high=1 << 18, group="model", log=True)
    tile: int = knob(
        128, "attention's tile", low=8, high=4096, unit="tokens", group="more", log=True
    )
    room: float = knob(
        2.0**28, "bytes of activations that may be alive", low=2.0**16, high=2.0**44, unit="B",
        log=True, group="more",
    )  # fmt: skip
    exact: bool = knob(
        True, "hold gradients to plain autograd of the dense forward, up to 1,024 tokens in all",
        group="more",
    )  # fmt: skip
    watch: bool = knob(
        True, "one step of each way with its bytes counted, which takes several times as long",
        group="more",
    )  # fmt: skip
    rounds: int = knob(0, "timed rounds of each way, in turns", low=0, high=100, group="more")
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group="more")

    @model_validator(mode="after")
    def _fits(self) -> "StreamedConfig":
        if self.hidden % self.heads or self.hidden // self.heads % 2:
            raise ValueError(f"heads must cut hidden = {self.hidden} into even sizes")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads must divide {self.heads} heads")
        if self.objective.kind == "dpo" and self.batch % 2:
            raise ValueError(f"batch must be even for DPO's pairs (given {self.batch})")
        return self

    def model(self) -> ModelConfig:
        """The model's shape."""
        return parse(
            {
                "architectures": ["Qwen3ForCausalLM"],
                "vocab_size": self.vocabulary,
                "hidden_size": self.hidden,
                "num_hidden_layers": self.layers,
                "num_attention_heads": self.heads,
                "num_key_value_heads": self.kv_heads,
                "head_dim": self.hidden // self.heads,
                "intermediate_size": self.width,
            },
            "streamed",
        )
