"""Real execution: tensors on this machine, wall clock."""

from typing import Literal

from engine.inference.executors.executor import Built, Execution
from engine.inference.executors.settings import Settings


class Real(Execution):
    """Run the model's tensors on this machine, under the wall clock."""

    kind: Literal["real"] = "real"

    def build(self, config: Settings) -> Built:
        from engine.inference.executors.tensors.real_executor import build  # brings torch

        return build(config)
