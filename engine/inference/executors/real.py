"""Real execution: tensors on this machine, wall clock."""

from typing import TYPE_CHECKING, Literal

from engine.inference.executor import Built, Execution

if TYPE_CHECKING:
    from engine.inference.config import InferenceConfig


class Real(Execution):
    """Run the model's tensors on this machine, under the wall clock."""

    kind: Literal["real"] = "real"

    def build(self, config: "InferenceConfig") -> Built:
        from engine.inference.executor_real import build  # brings torch

        return build(config)
