"""Colours, fonts and units: the only place that formats a number or picks a hue.

Owners get one of eight colour-blind-safe hues, stable for an id through a run and across views;
beyond eight owners hues repeat with a second texture. State is lightness and outline. Red is only
for something wrong; grey is idle, free or rejected.
"""

import math
import zlib
from dataclasses import dataclass

# Eight hues that stay apart, from one another and from a fault's red and the grey of what is idle,
# for eyes without red, green or blue cones as well: CIEDE2000 of ten or more, and a test says so.
# The first five are of Okabe and Ito (2008), the indigo of Paul Tol's "muted" scheme.
HUES = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#A18B40",
    "#332288",
    "#691F50",
)
# Kin of the same in the same order, light enough to stand out from the dark paper (5:1 or more).
DARK_HUES = (
    "#7EA6E8",
    "#E5C315",
    "#3AC28C",
    "#EF9DBD",
    "#8FD4FC",
    "#A48C27",
    "#8578EE",
    "#C47BB3",
)
# A second tone of each, darker or paler, for pieces of work that follow one another (microbatches):
# ten or more from every hue and from one another, to the same eyes.
TONES = (
    "#23587B",
    "#FFD37B",
    "#093E2C",
    "#6A4F58",
    "#A7DCFF",
    "#C1B072",
    "#9572F6",
    "#A76184",
)
DARK_TONES = (
    "#2C4F8D",
    "#847212",
    "#234635",
    "#A76172",
    "#46728D",
    "#615823",
    "#6A61C1",
    "#F6DCED",
)
WRONG = "#C62828"
DARK_WRONG = "#FF7A70"
SPREAD = 543439  # of a name's checksum: alice to heidi, whom threads are called after, differ
LEAST = 1e-4  # a figure below it is written with its power of ten
# Inter where a person has it; the Latin letters of Roboto come with the page (`page_head.html`).
FONT = "Inter, 'Roboto Latin', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Scheme:
    """The neutral colours of one theme."""

    paper: str
    ink: str
    faint: str  # secondary text
    line: str  # grid and borders
    idle: str  # idle, free, rejected
    raised: str  # cards


LIGHT = Scheme("#FFFFFF", "#1B1F24", "#59636E", "#DDE2E8", "#C9CFD6", "#F6F8FA")
DARK = Scheme("#14181D", "#E8ECF0", "#9AA5B1", "#2E363F", "#48525D", "#1C2229")


def scheme(dark: bool) -> Scheme:
    """The neutrals of the dark or light theme."""
    return DARK if dark else LIGHT


def place(owner: str) -> int:
    """A small stable number for an owner id: its trailing number, forks beside it; or a hue by its
    name's checksum, and its forks' the same hue with another texture.

    What goes on under a number of its own ("p0-1" after "p0") is the same owner still.
    """
    root, *forks = owner.split(".")
    turn = sum(int(f) if f.isdigit() else 1 for f in forks)
    before, _, part = root.rpartition("-")
    if part.isdigit() and before[-1:].isdigit():
        root = before
    digits = root[len(root.rstrip("0123456789")) :]
    if digits:
        return int(digits[-9:]) + turn
    return (zlib.crc32(root.encode()) * SPREAD >> 24) % len(HUES) + len(HUES) * turn


def hues(dark: bool = False) -> tuple[str, ...]:
    """The eight owner hues of the dark or light theme, in the same order."""
    return DARK_HUES if dark else HUES


def tones(dark: bool = False) -> tuple[str, ...]:
    """The second tone of each of those hues."""
    return DARK_TONES if dark else TONES


def hue(owner: str, dark: bool = False) -> str:
    """The owner's colour."""
    return hues(dark)[place(owner) % len(HUES)]


def wrong(dark: bool = False) -> str:
    """The one colour of a fault."""
    return DARK_WRONG if dark else WRONG


def texture(owner: str) -> int:
    """0 for the first eight owners, then 1, 2 …: drawn as dots where hues repeat."""
    return place(owner) // len(HUES)


def figure(value: float, unit: str = "") -> str:
    """At most three significant digits and a unit that fits.

    `unit`: "s", "B", "B/s", "FLOP", "FLOP/s", "W", "J", "%" (value is a share of 1) or any noun.
    """
    if value is None or not math.isfinite(value):
        return "–"
    if unit == "%":
        return f"{_three(value * 100)} %"
    if unit == "s":
        return _scaled(value, ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min")))
    if unit == "B":
        steps = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"), (2.0**40, "TiB"))
        return _scaled(value, steps)
    if unit in ("B/s", "FLOP", "FLOP/s", "W", "J"):
        names = ("", "k", "M", "G", "T", "P", "E")
        return _scaled(value, tuple((1e3**i, f"{n}{unit}") for i, n in enumerate(names)))
    if abs(value) >= 1e4:
        scaled = _scaled(value, ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P")))
        return f"{scaled} {unit}".strip()
    return f"{_three(value)} {unit}".strip()


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    if value == 0:
        base = next((name for size, name in steps if size == 1.0), steps[0][1])
        return f"0 {base}"
    size, name = steps[0]
    for size_, name_ in steps:
        if abs(value) >= size_ * 0.9995:
            size, name = size_, name_
    return f"{_three(value / size)} {name}"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) < LEAST:
        digits, power = f"{value:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
