"""A link as two facts: how long a message takes to begin, and how fast it then goes."""

from collections.abc import Mapping
from typing import Annotated

from engine.core.config import Config, knob
from engine.core.paths import dataset
from engine.hardware.device import Freeze, Plain
from engine.hardware.sheet import named, sheets


class Link(Config):
    """The alpha-beta model of one direction of a link (Hockney, Parallel Computing 1994)."""

    slug: str = knob("", "file name of the sheet")
    name: str = knob(doc="as its standard calls it")
    bandwidth: float = knob(doc="one direction", low=1.0, unit="B/s")
    latency: float = knob(doc="time before the first byte arrives", low=0.0, unit="s")
    shared: bool = knob(False, "devices share the host's lanes, so that more of them are slower")
    sums: bool = knob(False, "its switch adds up what ranks send")
    sources: Annotated[Mapping[str, str], Freeze, Plain] = knob(
        make=dict, doc="where each fact comes from, by field"
    )

    def seconds(self, size: float) -> float:
        """Time to send `size` bytes; nothing sent takes no time."""
        return self.latency + size / self.bandwidth if size > 0 else 0.0


def links() -> list[str]:
    """Names of all links with a data sheet."""
    return sheets(dataset("hardware/links"))


def link(name: str) -> Link:
    """The link of that name, such as `nvlink4`. Raises BadInput listing the known ones."""
    return named(Link, dataset("hardware/links"), name)
