"""FleetSearch: a model, devices, a workload and an objective that a fleet's design is sought for.

model = "llama-3.1-8b"
device = "h100-sxm"
devices = 8                       # at most; budget = 20 with price = 2.5 says as much
[slo]
ttft = 0.5
tpot = 0.03
[workload]
kind = "poisson"                  # or "trace" with file = "azure-like.csv"
rate = 40
"""

from typing import Literal

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.hardware.cost.constants import OWN
from engine.inference.serving_time.described import Limits
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from engine.inference.workloads.workload import Workload


class Objective(Config):
    """[slo]: what the named quantiles of all requests must keep."""

    ttft: float = knob(1.0, "Time to first token at most", low=1e-4, high=1e6, unit="s")
    ttft_at: float = knob(0.99, "Share of requests that keep it", low=0.01, high=1.0)
    tpot: float = knob(0.05, "Time per output token at most", low=1e-4, high=1e6, unit="s")
    tpot_at: float = knob(0.99, "Share of requests that keep it", low=0.01, high=1.0)


class Tried(Config):
    """[tried]: which designs are played."""

    tensor: int = knob(8, "Tensor-parallel ranks of a replica at most", low=1, high=64)
    pools: bool = knob(True, "Prefill and decode on replicas of their own, too")
    routers: bool = knob(True, "Other routers for the best shapes")
    chunks: bool = knob(True, "Other limits on a step's tokens for the best shapes")
    finalists: int = knob(
        3, "Shapes that are tried with every router and every limit", low=1, high=64
    )
    again: int = knob(2, "Other draws under which the winner is played again", low=0, high=16)


def crowd() -> Poisson:
    """Conversations, 20 begun a second."""
    return Poisson(
        count=300,
        rate=20.0,
        prompt=Lengths(median=900, spread=0.7, longest=8000),
        output=Lengths(median=160, spread=0.7, longest=1000),
    )


class FleetSearch(Config):
    """What is served on what, and how well."""

    model: str = knob("llama-3.1-8b", "A public architecture, or a folder")
    dtype: Literal["bfloat16", "float16", "float32"] = knob(
        "bfloat16", "Of weights and cache", called="Number format"
    )
    device: str = knob("h100-sxm", "Device of datasets/hardware")
    constants: str = knob(OWN, "Of the cost model: own (the device's), a name, a file")
    devices: int = knob(4, "Devices at most", low=1, high=4096, log=True)
    price: float = knob(
        0.0, "Of a device for an hour; 0: cost is told in device-hours", low=0.0, high=1e6, unit="$"
    )
    budget: float = knob(
        0.0, "For an hour of all devices at most; 0: none", low=0.0, high=1e9, unit="$"
    )
    link: str = knob("", "Link between replicas, by its sheet; none: the device's to its kind")
    slo: Objective = knob(make=Objective, doc="What requests must get")
    workload: Choice[Workload] = knob(make=crowd, doc="What is asked")
    engine: Limits = knob(make=Limits, doc="Of each replica")
    tried: Tried = knob(make=Tried, doc="Which designs are played", group="designs")
    seed: int = knob(0, "Of what is drawn, the same for every design", low=0, high=2**31 - 1)

    @property
    def most(self) -> int:
        """Devices at most, by number and by budget. Raises BadInput where a budget has none."""
        if not self.budget:
            return self.devices
        if not self.price:
            raise BadInput("budget: give a price of a device for an hour with it (price=2.5)")
        affordable = int(self.budget / self.price + 1e-9)
        if affordable < 1:
            raise BadInput(
                f"budget: {self.budget:g} an hour is below the price of one device, {self.price:g}"
            )
        return min(self.devices, affordable)
