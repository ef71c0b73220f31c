"""Real execution: tensors on this machine, wall clock."""

from typing import Literal

from engine.core.config import knob
from engine.inference.executors.executor import Built, Execution
from engine.inference.executors.settings import Settings


class Real(Execution):
    """Run the model's tensors on this machine, under the wall clock."""

    kind: Literal["real"] = "real"
    kv_cache_dtype: Literal["auto", "fp8_e4m3"] = knob(
        "auto", "Numbers of the KV cache; auto: those of the weights", group="cache"
    )
    activations: Literal["auto", "int8"] = knob(
        "auto",
        "Activations beside weights in codes; auto: floats; int8: quantised as they come, by token "
        "and group, and multiplied as integers on a processor",
    )
    device: Literal["cpu", "cuda"] = knob("cpu", "What computes; cuda: a GPU that torch sees")
    exact: bool = knob(
        False,
        "Recurrent states and indices of tokens computed token by token, so that an answer is the "
        "same bits in any batch, as of other layers on a processor anyway; prompts take long",
        called="Same bits in any batch",
    )

    def build(self, config: Settings) -> Built:
        from engine.inference.executors.tensors.real_executor import build  # brings torch

        return build(config, self.kv_cache_dtype, self.device, self.activations, self.exact)
