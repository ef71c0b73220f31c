"""A device as facts: how fast it multiplies, how fast it reads, how much it holds.

Facts come from a data sheet (`datasets/hardware/*.toml`, each with its source) or from measuring
this machine (`engine.hardware.measure`). Rates are per second, in bytes and flops; peaks are dense.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainSerializer, model_validator

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.sheet import named, sheets

Positive = Annotated[float, Field(ge=1e-12)]
Fraction = Annotated[float, Field(gt=0, le=1.25)]  # a measured rate may pass the one it is held to


def _frozen(table: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(table))


Freeze = AfterValidator(_frozen)
Plain = PlainSerializer(dict)
Rates = Annotated[Mapping[str, Positive], Freeze, Plain]
Fractions = Annotated[Mapping[str, Fraction], Freeze, Plain]
Texts = Annotated[Mapping[str, str], Freeze, Plain]


class Spread(Config):
    """Repeated measurements of one quantity: lowest, median, highest, and of how many."""

    low: float = knob(doc="lowest", low=0)
    median: float = knob(doc="median", low=0)
    high: float = knob(doc="highest", low=0)
    count: int = knob(doc="measurements", low=1)


Spreads = Annotated[Mapping[str, Spread], Freeze, Plain]


class Device(Config):
    """What one device can do at best, and the part of that which real work reaches.

    `peaks`: flops per second by dtype. `efficiency`: reached fraction of a roof, by the roof's name
    ("bandwidth" or a dtype); a roof without one counts as reached in full. `spread`: for measured
    devices, every measured quantity with its scatter.
    """

    slug: str = knob("", "file name of the sheet")
    name: str = knob(doc="as its vendor calls it")
    vendor: str = knob("", "who makes it")
    kind: Literal["gpu", "cpu", "tpu", "npu"] = knob(doc="sort of processor")
    grade: Literal["A", "B", "measured"] = knob(
        doc="A: from a source that cites the vendor; B: second hand; measured: on this machine"
    )
    caution: str = knob("", "what to know before trusting a figure")
    disturbed: float = knob(
        0.0, "share of the processors that other work took while this was measured", low=0, high=1
    )
    peaks: Rates = knob(doc="dense flops per second by dtype")
    bandwidth: float = knob(doc="memory reads", low=1.0, unit="B/s")
    capacity: float = knob(doc="memory", low=1.0, unit="B")
    memory: str = knob("", "sort of main memory, such as HBM3")
    caches: Rates = knob(make=dict, doc="bytes by cache level")
    cache_bandwidth: Rates = knob(make=dict, doc="reads per second by cache level, in bytes")
    exponentials: float | None = knob(None, "exponentials per second", low=1.0, unit="/s")
    units: int = knob(0, "processors that work apart (multiprocessors); 0: not known", low=0)
    clock: float = knob(0.0, "cycles of those a second; 0: not known", low=0, unit="Hz")
    asynchronous: bool = knob(False, "matrix units go on while a processor does other work")
    launch: float = knob(0.0, "seconds to start one operation", low=0.0, unit="s")
    host_link: str = knob("", "link to host memory, by its sheet's name")
    scale_up: str = knob("", "link to other devices of its kind, by its sheet's name")
    domain: int = knob(8, "devices that this link joins", low=1, high=1 << 14)
    tdp: float | None = knob(None, "highest sustained power", low=0.1, unit="W")
    efficiency: Fractions = knob(make=dict, doc="reached fraction of each roof")
    sources: Texts = knob(make=dict, doc="where each fact comes from, by field")
    threads: int = knob(0, "threads measured with, for measured devices", low=0, high=1 << 16)
    measured: str = knob("", "date of measurement, for measured devices")
    spread: Spreads = knob(make=dict, doc="measured quantities with their scatter")

    @model_validator(mode="after")
    def _has_a_peak(self) -> "Device":
        if not self.peaks:
            raise ValueError("needs a peak for at least one dtype")
        return self

    def peak(self, dtype: str) -> float:
        """Dense flops per second of `dtype`. Raises BadInput where the device has none."""
        if dtype not in self.peaks:
            raise BadInput(
                f"device {self.name}: no {dtype} peak known; one of: {', '.join(self.peaks)}"
            )
        return self.peaks[dtype]

    def reached(self, roof: str) -> float:
        """Flops or bytes per second that real work reaches under the roof of that name."""
        best = self.bandwidth if roof == "bandwidth" else self.peak(roof)
        return best * self.efficiency.get(roof, 1.0)

    def at_best(self) -> "Device":
        """The same device with every roof reached in full: the limit, not the expectation."""
        return self.model_copy(update={"efficiency": MappingProxyType({})})


def devices() -> list[str]:
    """Names of all devices with a data sheet."""
    return sheets(dataset("hardware"))


def device(name: str) -> Device:
    """The device of that name, such as `h100-sxm`. Raises BadInput listing the known ones."""
    return named(Device, dataset("hardware"), name)
