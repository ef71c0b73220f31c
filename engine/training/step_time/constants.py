"""Constants of the step-time model: what a training step adds to its operators' own times.

They lie in `datasets/step_time.toml` with the runs they were fitted on; operators' own constants
are those of `engine.hardware.cost`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.core.config import Config, knob
from engine.core.paths import dataset
from engine.hardware.device import Freeze, Plain
from engine.hardware.sheet import read

FILE = "step_time.toml"
Factors = Annotated[Mapping[str, Annotated[float, Field(ge=0)]], Freeze, Plain]


class StepConstants(Config):
    """Shares are of a data sheet's figure, factors are of an operator's time alone."""

    slug: str = knob("", "file name")
    source: str = knob(doc="runs fitted on, with their licence")
    rows: float = knob(doc="share of memory bandwidth that row operators reach", low=0.01, high=2.0)
    eager: float = knob(doc="traffic of row operators that no compiler fused, over fused ones",
                        low=0.1, high=20.0)  # fmt: skip
    apart: float = knob(doc="traffic of a root-mean-square norm and of a rotation in many kernels, "
                        "over that of one", low=1.0, high=20.0)  # fmt: skip
    backward: float = knob(doc="attention: a backward's flop over a forward's", low=0.1, high=10.0)
    flash: float = knob(doc="FlashAttention-2: flops of a processor's clock, of endless heads and "
                        "sequences", low=1.0)  # fmt: skip
    flash_share: float = knob(doc="the same, as a share of peak at most", low=0.01, high=1.0)
    flash_tail: float = knob(doc="tokens of a sequence that its diagonal and edges cost", low=0.0)
    flash_head: float = knob(doc="numbers of a head that its softmax costs", low=0.0)
    flash_1: float = knob(doc="FlashAttention's first version over the second", low=0.1, high=10.0)
    grouped: float = knob(doc="experts' grouped products over one product of as many rows", low=0.1,
                          high=10.0)  # fmt: skip
    scores: float = knob(doc="traffic of scores in memory, over each read and write once", low=0.1,
                         high=10.0)  # fmt: skip
    products: float = knob(doc="backward products' time over what their shapes say", low=0.1,
                           high=10.0)  # fmt: skip
    overlap: float = knob(doc="of the shorter of passes and traffic: what is not hidden", low=0.0,
                          high=1.0)  # fmt: skip
    hidden: float = knob(0.45, "of experts' messages beside another microbatch's passes: what is "
                         "hidden", low=0.0, high=1.0)  # fmt: skip
    network: float = knob(doc="share of adapters' rate that collectives reach", low=0.01, high=1.5)
    host: float = knob(doc="a layer's launches, forward; backward twice that", low=0.0, unit="s")
    kernel: float = knob(0.0, "launch of one kernel more, as a layer of experts has them", low=0.0,
                         unit="s")  # fmt: skip
    update: float = knob(38.0, "bytes that an Adam update moves a parameter", low=1.0, high=1e3,
                         unit="B")  # fmt: skip
    steady: Factors = knob(
        make=dict, doc="how much longer products and attention take in a run of hours, by device"
    )
    fitted: tuple[str, ...] = knob((), "devices whose runs were fitted")
    spread: Factors = knob(
        make=dict, doc="standard deviation of ln(predicted / measured) that each part brings; "
        "`framework`: of a run as a whole; `device`: of a device that was not fitted",
    )  # fmt: skip

    def steadily(self, device: str, kin: str) -> float:
        """The device's own factor, else that of the device whose operators' constants it takes."""
        return self.steady.get(device, self.steady.get(kin, self.steady.get("other", 1.0)))


def step_constants(path: Path | None = None) -> StepConstants:
    """The shipped ones, or those of a file. Raises BadInput."""
    return read(StepConstants, path or dataset(FILE))
