"""Constants of the operator cost model: how much of a device's roofs real kernels reach.

They are fitted to measured tables (`workbench cost fit`) and lie in `datasets/cost/*.toml`, a file
for each device that was measured; a device that was not takes those of its nearest kin. What a
field leaves out at its default adds nothing to an operator's time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.paths import dataset
from engine.hardware.device import Device, Freeze, Plain
from engine.hardware.sheet import read, sheets

FOLDER = "cost"
DEFAULT = "operators"
OWN = "own"  # as a knob names a device's own
ALIKE = {
    "narrow": "matmul",
    "narrow_experts": "experts",
    "chunk": "prefill",
    "mixed": "prefill",
}
LATENCIES = (
    "launch",
    "wave",
    "spill",
    "tile",
    "merge",
    "block",
    "number",
    "softmax",
    "step",
    "begin",
    "pairs",
    "expert",
)
PARTS = ("matmul", "narrow", "experts", "narrow_experts", "prefill", "decode", "collective")
PartT = TypeVar("PartT", bound=Config)


class Cached(Config):
    """An operator whose tables are taken warm: a call finds what the last cache kept of the one
    before it."""

    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)
    holds: float = knob(0.0, "part of the last cache that keeps what a call reads", low=0)
    cache: float = knob(8.0, "of what it kept, a cycle and processor", low=0.01, unit="B")


class Heated(Config):
    """An operator that work on the matrix units heats, so that clocks fall."""

    heat: float = knob(0.0, "by how much longer work takes at last", low=0)
    warm: float = knob(1e-3, "work after which half of that has come", low=0, unit="s")


class Matmul(Cached, Heated):
    """A product on matrix units."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    rate: float = knob(doc="rate in a tile of 128 x 128, over the sheet's best", low=0.01)
    edge: float = knob(doc="a tile's loads, as rows of flops along its edges", low=0)
    wave: float = knob(doc="begin and end of a wave", low=0, unit="s")
    overlap: float = knob(doc="part of the shorter roof that is not hidden", low=0, high=1)
    store: float = knob(
        0.0,
        "writing of outputs after a tile's products, over their bytes at memory bandwidth; hidden "
        "where products are asynchronous",
        low=0,
    )
    narrow: float = knob(
        0.0, "cycles of a processor for narrowing a number of x to 8 bits; 0: no such step", low=0
    )
    spill: float = knob(
        0.0,
        "a tile of 256 rows of an 8-bit product, whose sums fill the registers",
        low=0,
        unit="s",
    )
    cuts: int = knob(16, "parts at most that the sum over k is cut into", low=1)
    merge: float = knob(0.0, "summing of those parts", low=0, unit="s")


class Prefill(Heated):
    """Causal attention of whole prompts."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    rate: float = knob(
        doc="reached rate, over the sheet's best; of products beside `softmax`, over its peak",
        low=0.01,
    )
    softmax: float = knob(
        0.0,
        "exponentials, sums and scales of a block, after its products (FlashAttention-2) or, where "
        "those are asynchronous, beside them; 0: hidden behind them",
        low=0,
        unit="s",
    )
    tile: float = knob(doc="begin and end of a tile of queries", low=0, unit="s")
    tail: float = knob(doc="part of the longest tile that runs alone", low=0)
    bandwidth: float = knob(
        0.0, "reached fraction of memory bandwidth; 0: reads as answers do", low=0
    )


class Decode(Cached):
    """Attention of one new token a sequence over its cache."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    merge: float = knob(doc="merging of a context cut into parts", low=0, unit="s")
    beside: bool = knob(False, "merging begins beside the parts where copies are asynchronous")
    block: float = knob(doc="a block of keys in one program", low=0, unit="s")
    tile: float = knob(0.0, "begin and end of a program", low=0, unit="s")
    row: float = knob(
        0.0,
        "queries of a tile over keys of a block where prompts and answers share a call, whose "
        "contexts are not cut; 0: as many, and such calls are two",
        low=0,
    )
    overlap: float = knob(doc="part of the shorter roof that is not hidden", low=0, high=1)


class Experts(Heated):
    """A fused mixture-of-experts layer."""

    launch: float = knob(
        doc="sorting, products, activation and sum: before and after", low=0, unit="s"
    )
    expert: float = knob(doc="one expert more", low=0, unit="s")
    rate: float = knob(doc="reached rate of an endless tile, over the sheet's best", low=0.01)
    edge: float = knob(doc="rows that a tile's loads are worth", low=0)
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)
    again: float = knob(doc="part of an expert's weights that a further tile reads again", low=0)
    passes: float = knob(doc="how often activations are moved, over once each", low=0)
    others: float = knob(
        1.0,
        "part of the rows of other ranks' experts that a rank moves too: one kernel for all writes "
        "zeros for them and adds those up, kernels that sort rows by expert leave them out",
        low=0,
        high=1,
    )
    overlap: float = knob(doc="part of the shorter roof that is not hidden", low=0, high=1)


class Rows(Config):
    """An operator that goes along rows: norm, rotation, gate, sum, embedding."""

    launch: float = knob(doc="before and after the work", low=0, unit="s")
    number: float = knob(doc="one number of a row in its program", low=0, unit="s")
    bandwidth: float = knob(doc="reached fraction of memory bandwidth", low=0.01)


class Collective(Config):
    """A collective among devices of one node: the better of two protocols, as libraries choose.

    The first sends at once and uses little of the link, the second begins late and uses most.
    """

    launch: float = knob(doc="before the first message", low=0, unit="s")
    step: float = knob(doc="one message of the ring", low=0, unit="s")
    at_once: float = knob(doc="part of the link that sending at once reaches", low=0.01)
    begin: float = knob(doc="before the second protocol's first message", low=0, unit="s")
    bandwidth: float = knob(doc="part of the link that it then reaches", low=0.01)
    in_switch: float = knob(0.0, "the same of sums made in the switch; 0: not made there", low=0)
    passes: float = knob(0.0, "how often the tensor is read or written beside the wire", low=0)
    pairs: float = knob(0.0, "all-to-all alone, whose messages go at once", low=0, unit="s")
    crowd: float = knob(0.0, "power of ranks / 2 by which ranks under one host slow it", low=0)


class Interval(Config):
    """Quantiles of ln(predicted / measured) over held-out rows of an operator."""

    low: float = knob(doc="5% of rows are below", low=-20, high=20)
    median: float = knob(doc="half of the rows are below", low=-20, high=20)
    high: float = knob(doc="95% of rows are below", low=-20, high=20)
    rows: int = knob(doc="held-out rows", low=1)


class Constants(Config):
    """Every constant of the cost model, with where it comes from."""

    slug: str = knob("", "file name")
    device: str = knob("", "whose they are, by its data sheet")
    lent: str = knob("", "the device whose constants operators without own tables have")
    source: str = knob(doc="tables fitted on, with their licences")
    split: str = knob(doc="which rows were fitted and which were held out")
    clock: float = knob(
        0.0,
        "of the device they are of; others' latencies go with their clocks; 0: do not",
        low=0,
        unit="Hz",
    )
    power: float = knob(
        0.0, "watts of their device for a 16-bit flop a second; 0: not known", low=0, unit="W s"
    )
    best: float = knob(doc="assumed best rate over the peak, for sheets that give none", low=0.1)
    matmul: Matmul = knob(doc="products")
    narrow: Matmul | None = knob(None, "products of 8-bit numbers; none: as others")
    experts: Experts | None = knob(None, "fused experts; none: not known")
    narrow_experts: Experts | None = knob(None, "the same of 8-bit numbers")
    prefill: Prefill = knob(doc="attention of prompts")
    decode: Decode = knob(doc="attention of new tokens")
    collective: Collective = knob(doc="collectives")
    rows: Annotated[Mapping[str, Rows], Freeze, Plain] = knob(doc="row operators by name")
    intervals: Annotated[Mapping[str, Interval], Freeze, Plain] = knob(
        make=dict, doc="held-out errors by operator"
    )
    elsewhere: Annotated[Mapping[str, Interval], Freeze, Plain] = knob(
        make=dict, doc="errors by operator on devices that were not fitted"
    )
    kin: tuple[str, ...] = knob((), "devices without constants of their own that take these")

    def elsewhere_than(self, device: Device) -> bool:
        """Whether they were fitted on another device, known by name."""
        return bool(self.device) and self.device != device.slug

    def slower(self, device: Device) -> float:
        """How much longer a number of cycles takes on `device` than where they were fitted."""
        return self.clock / device.clock if self.clock and device.clock else 1.0

    def cold(self) -> "Constants":
        """The same for a call that finds nothing in the last cache: a step's layers drive each
        other's weights and keys out, which a table that repeats one call does not show."""
        parts = {"matmul": self.matmul, "narrow": self.narrow, "decode": self.decode}
        away = {k: v.model_copy(update={"holds": 0.0}) for k, v in parts.items() if v is not None}
        return self.model_copy(update=away)

    def at_clock(self, clock: float) -> "Constants":
        """The same constants, told of a device of that clock."""
        scale = self.clock / clock if self.clock and clock else 1.0

        def told(part: PartT) -> PartT:
            state = part.model_dump()
            return part.model_copy(
                update={k: v * scale for k, v in state.items() if k in LATENCIES}
            )

        parts = {name: told(part) for name in PARTS if (part := getattr(self, name)) is not None}
        rows = {name: told(each) for name, each in self.rows.items()}
        return self.model_copy(update={**parts, "rows": rows, "clock": clock})

    def product(self, size: float) -> Matmul:
        """Of products of numbers of `size` bytes: 8-bit ones have kernels of their own."""
        return self.narrow if size < 2 and self.narrow is not None else self.matmul

    def expert(self, size: float) -> Experts | None:
        """Of experts whose numbers have `size` bytes."""
        return self.narrow_experts or self.experts if size < 2 else self.experts

    def interval(self, operator: str) -> Interval | None:
        """Held-out errors of an operator; of 8-bit products without own ones, those of others."""
        return self.intervals.get(operator) or self.intervals.get(ALIKE.get(operator, ""))


def of_device(sheet: str) -> Constants:
    """The shipped constants of a device; without own ones, those of its kin, with the interval that
    devices left out of a fit have shown."""
    names = [name for name in shipped() if name != DEFAULT]
    if sheet in names:
        return constants(sheet)
    nearest = next((name for name in names if sheet in constants(name).kin), DEFAULT)
    found = constants(nearest)
    return found.model_copy(update={"intervals": found.elsewhere}) if found.elsewhere else found


def shipped() -> list[str]:
    """Names of the constants that the project ships."""
    return sheets(dataset(FOLDER))


def constants(name: str, sheet: str = "") -> Constants:
    """The constants of that name in datasets/cost, in a file (`….toml`), or, as `own`, those of the
    device with that `sheet`. Raises BadInput."""
    if name == OWN and sheet:
        return of_device(sheet)
    if name in shipped():
        return read(Constants, dataset(f"{FOLDER}/{name}.toml"))
    if name.endswith(".toml"):
        return read(Constants, Path(name))
    raise BadInput(f"constants {name!r}: none of that name; {suggest(name, [OWN, *shipped()])}")
