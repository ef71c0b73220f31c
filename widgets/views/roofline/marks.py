"""Marks: spans that did counted work, summed up by what they have in common.

In come spans with flops and bytes, and what their tags say; out go totals, one mark for each
operator, variant, shape, dtype, phase and device.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from engine.core.events import Span
from engine.core.tags import facts

MOST = 2000  # marks kept apart; what comes later joins one mark for each lane
LEVELS = ("L1", "shared", "L2", "L3")
COUNTS = ("decode", "prefill")  # tokens of an engine's step: they tell its steps apart
OWN = ("phase", "dtype", "shape", "variant", "device", "grade", "resident", "of")


class Key(NamedTuple):
    """What tells marks apart. `counts`: tokens of a step, prefill in powers of two."""

    lane: str
    name: str
    phase: str = ""
    dtype: str = ""
    shape: str = ""
    variant: str = ""
    device: str = ""
    grade: str = ""
    resident: str = ""  # the level that main-memory bytes really came from
    of: str = ""  # the span this one is a part of
    counts: str = ""


@dataclass(slots=True)
class Mark:
    """Sums over the spans of one key: seconds, flops, bytes by level, exponentials."""

    key: Key
    place: int  # in order of appearance
    count: int = 0
    seconds: float = 0.0
    best: float = float("inf")  # seconds of the quickest
    flops: float = 0.0
    bytes: float = 0.0
    specials: float = 0.0
    misses: float = 0.0  # counted by hardware
    levels: dict[str, float] = field(default_factory=dict)
    said: str = ""  # what the tag says that no other field holds

    def add(self, span: Span, told: dict[str, str]) -> None:
        """One more span of this key."""
        seconds = max(span.time - span.start, 1e-12)
        self.count += 1
        self.seconds += seconds
        self.best = min(self.best, seconds)
        self.flops += span.flops
        self.bytes += span.bytes
        self.specials += number(told.get("specials", ""))
        self.misses += number(told.get("misses", ""))
        for level in LEVELS:
            if level in told:
                self.levels[level] = self.levels.get(level, 0.0) + number(told[level])

    @property
    def intensity(self) -> float:
        """Flops for each byte of main memory."""
        return self.flops / max(self.bytes, 1.0)

    @property
    def rate(self) -> float:
        """Flops a second."""
        return self.flops / max(self.seconds, 1e-12)

    def copy(self) -> "Mark":
        """An independent mark with the same sums."""
        sums = self.count, self.seconds, self.best, self.flops, self.bytes, self.specials
        return Mark(self.key, self.place, *sums, self.misses, dict(self.levels), self.said)


def number(text: str) -> float:
    """A tag's number; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def key_of(span: Span, told: dict[str, str], dtype: str = "") -> Key:
    """What the span has in common with others; `dtype` where its tag names none."""
    own = {name: told.get(name, "") for name in OWN}
    own["dtype"] = own["dtype"] or dtype
    if not own["phase"]:
        present = [name for name in COUNTS if number(told.get(name, ""))]
        own["phase"] = "mixed" if len(present) > 1 else "".join(present)
    counts = []
    for name in COUNTS:
        tokens = int(number(told.get(name, "")))
        if tokens and name == "prefill":
            tokens = 1 << (tokens - 1).bit_length()  # close enough to be one point
        if tokens:
            counts.append(f"{name} {tokens}" if name == "decode" else f"{name} ≤ {tokens}")
    return Key(span.lane, span.name, **own, counts=", ".join(counts))


def read(tag: str) -> dict[str, str]:
    """What a span's tag says."""
    return facts(tag)


def rest(told: dict[str, str]) -> str:
    """The facts of a tag that no field of a mark holds, as words."""
    known = (*OWN, *LEVELS, *COUNTS, "specials", "misses")
    return ", ".join(f"{name} {value}" for name, value in told.items() if name not in known)
