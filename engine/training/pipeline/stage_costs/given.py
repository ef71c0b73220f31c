"""Pass times and bytes as a person states or has measured them."""

from typing import Literal

from engine.core.config import knob
from engine.training.pipeline.stage_cost import Share, StageCost


class Given(StageCost):
    """Every cost of one rank and one microbatch, outright."""

    kind: Literal["given"] = "given"
    forward: float = knob(0.010, "forward of one microbatch on one rank", low=1e-9, high=1e3,
                          unit="s", log=True)  # fmt: skip
    backward_input: float = knob(0.010, "backward for the input", low=1e-9, high=1e3, unit="s",
                                 log=True)  # fmt: skip
    backward_weight: float = knob(0.010, "backward for the weights", low=1e-9, high=1e3, unit="s",
                                  log=True)  # fmt: skip
    kept: float = knob(
        1.0, "share of the activations that waits for the backward for the weights", low=0.0,
        high=1.0, group="memory",
    )  # fmt: skip
    activations: float = knob(
        1e9, "activations of one microbatch on one rank", low=0.0, high=1e13, unit="B",
        group="memory",
    )  # fmt: skip
    weights: float = knob(2e9, "weights of one rank", low=0.0, high=1e13, unit="B", group="memory")
    gradients: float = knob(
        2e9, "gradients of one rank", low=0.0, high=1e13, unit="B", group="memory"
    )
    optimiser: float = knob(
        0.0, "optimiser states of one rank", low=0.0, high=1e13, unit="B", group="memory"
    )
    boundary: float = knob(
        0.0, "what a microbatch sends to the next stage", low=0.0, high=1e12, unit="B",
        group="transfers",
    )  # fmt: skip
    reduce: float = knob(
        0.0, "all-reduce of a rank's gradients", low=0.0, high=1e3, unit="s", group="end of step"
    )
    update: float = knob(
        0.0, "optimiser of a rank", low=0.0, high=1e3, unit="s", group="end of step"
    )

    def share(self, ranks: int, chunks: int) -> Share:
        facts = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        return Share(**facts)
