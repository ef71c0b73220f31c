"""Judging marks: which roof binds, how close the mark comes to it, and what that costs.

After Williams, Waterman and Patterson, CACM 2009. In come sums and the roofs of the header; out go
the least time that the roofs allow and the roof that asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from widgets.views.roofline.marks import Mark

MAIN = ("HBM", "DRAM")
ABOVE = 1.05  # share of the main-memory roof beyond which the data cannot have come from there

Roof = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`least`: seconds that the binding roof asks for, 0 where no roof is known.

    `at`: flops per byte of the level that binds, where the gap is drawn. `launch`: seconds that
    starting the operations takes, where the device says.
    """

    least: float
    roof: str
    kind: str  # "bandwidth", "compute", "special" or ""
    at: float
    launch: float = 0.0

    def share(self, mark: Mark) -> float:
        """Achieved over limit; nan where no roof is known."""
        return self.least / mark.seconds if self.least else float("nan")

    def lost(self, mark: Mark) -> float:
        """Seconds beyond what the roof asks for: time × gap."""
        return max(0.0, mark.seconds - self.least) if self.least else 0.0


class Roofs:
    """The roofs of one device, ready to judge by."""

    def __init__(self, rows: Sequence[Roof]) -> None:
        self.rows = rows
        self.levels = {r["level"]: r for r in rows if r["kind"] == "bandwidth"}
        self.main = next((self.levels[name] for name in MAIN if name in self.levels), None)
        self.special = next((r for r in rows if r["kind"] == "special"), None)
        self.launch = next((r["value"] for r in rows if r["kind"] == "launch"), 0.0)

    def compute(self, dtype: str) -> Roof | None:
        """The highest compute roof of `dtype`; float32's, then any, where it has none."""
        for wanted in (dtype, "float32", ""):
            rows = [r for r in self.rows if r["kind"] == "compute" and wanted in (r["dtype"], "")]
            if rows:
                return max(rows, key=lambda r: float(r["value"]))
        return None

    def judge(self, mark: Mark) -> Verdict:
        """The roof that asks for the most time."""
        found: list[tuple[float, Roof, float]] = []
        compute = self.compute(mark.key.dtype)
        if compute is not None:
            found.append((mark.flops / compute["value"], compute, mark.intensity))
        memory = self.levels.get(mark.key.resident, self.main)
        if memory is not None:
            found.append((mark.bytes / memory["value"], memory, mark.intensity))
        for level, size in mark.levels.items():
            if level in self.levels and size:
                roof = self.levels[level]
                found.append((size / roof["value"], roof, mark.flops / size))
        if self.special is not None and mark.specials:
            found.append((mark.specials / self.special["value"], self.special, mark.intensity))
        if not found:
            return Verdict(0.0, "", "", mark.intensity)
        least, roof, at = max(found, key=lambda row: row[0])
        launch = mark.count / self.launch if self.launch else 0.0
        return Verdict(least, roof["name"], roof["kind"], at, launch)


def by_device(rows: Sequence[Roof]) -> dict[str, Roofs]:
    """Roofs by device, the first one's first."""
    devices = dict.fromkeys(str(row["device"]) for row in rows)
    return {name: Roofs([r for r in rows if r["device"] == name]) for name in devices}


def sentence(verdict: Verdict, mark: Mark) -> str:
    """Such as "memory-bound, 78% of DRAM read"."""
    if not verdict.least:
        return "no roof is known for it"
    share = verdict.share(mark)
    percent = f"{share * 100:.3g}" if share < 0.0995 else f"{share * 100:.0f}"
    if verdict.kind == "bandwidth" and share > ABOVE:
        return f"more than {verdict.roof} allows: its data comes from a nearer cache"
    if share > ABOVE:
        return f"more than {verdict.roof} allows: measured too low, or what moved is counted twice"
    if verdict.launch > verdict.least:
        return f"launch-bound, {percent}% of {verdict.roof}"
    words = {
        "bandwidth": "memory-bound",
        "compute": "compute-bound",
        "special": "exponential-bound",
    }
    return f"{words[verdict.kind]}, {percent}% of {verdict.roof}"
