"""Controls: what a person turns one knob with, whatever its type: label, unit, bounds and words.

A `Control` is made from a `Knob`; it says what the browser shows for a value, and what value a
person meant by what they typed or slid. `widgets.knobs.knobs` puts controls on a page.
"""

import math
import sys
from typing import Any

from engine.core.config import Knob

WIDE = 200.0  # a range that spans more than this factor, from above nought, gets a log slider
HUGE = 1e8  # a range wider than this is typed: seeds, counts without an end
CALLED = {"kv": "KV", "gemm": "GEMM", "slo": "SLO", "gpu": "GPU", "mlp": "MLP"}  # in capitals
BRIEF = {"ns": 1e9, "µs": 1e6, "ms": 1e3}  # of a second, for knobs that never reach a millisecond
STEPS = 200  # positions of a slider over real numbers
LARGEST = sys.float_info.max  # of JSON's numbers there are larger ones


def label(knob: Knob) -> str:
    """The last part of the path in words, with the unit where the words do not hold it.

    Inside a value of a policy (`workload.prompt.median`) its name comes along: prompt median. A
    field with a label of its own keeps it.
    """
    if knob.called:
        return _with_unit(knob.called, knob)
    parts = knob.path.split(".")
    words = " ".join(parts[-2:] if len(parts) > 2 else parts[-1:]).replace("_", " ")
    words = " ".join(CALLED.get(word, word) for word in words.split(" "))
    return _with_unit(words[:1].upper() + words[1:], knob)


def _with_unit(words: str, knob: Knob) -> str:
    unit = "" if is_brief(knob) else knob.unit
    return f"{words}, {unit}" if unit and unit.lower() not in words.lower().split() else words


def is_brief(knob: Knob) -> bool:
    """Whether its values are shown with a unit of their own: seconds far below one."""
    return knob.unit == "s" and knob.high is not None and knob.high <= 1 / BRIEF["ms"]


def brief(value: float) -> str:
    """Seconds far below one as a person says them: 50 ns."""
    fits = [unit for unit, parts in BRIEF.items() if abs(value) * parts >= 1]
    unit = fits[-1] if fits else "ns"
    return f"{value * BRIEF[unit]:.12g} {unit}" if value else "0"


def spell(value: Any) -> str:
    """A value as a person would type it; nothing for None."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


class Control:
    """How one knob is shown and read.

    A typed value is taken as it is, out of bounds or not a number at all: validation answers it.
    """

    def __init__(self, knob: Knob) -> None:
        self.knob = knob

    def facts(self, depth: int = 0) -> dict[str, Any]:
        """What the browser has to know to make the control; `depth`: under how many policies."""
        knob = self.knob
        kinds = {"bool": "switch", "choice": "choice"}
        found = {
            "path": knob.path,
            "kind": "slider" if self.slides else kinds.get(knob.type, "text"),
            "label": label(knob),
            "doc": knob.doc,
            "help": self.help(),
            "depth": depth,
        }
        if knob.type == "choice":
            found["choices"] = list(knob.choices)
        _, empty, meaning = knob.doc.partition("empty: ")
        if empty:
            found["empty"] = meaning.replace("`", "")
        if self.slides:
            whole = knob.type == "int" and not self.is_log
            low, high = self.ends
            found |= {"low": low, "high": high, "step": 1 if whole else (high - low) / STEPS}
        return found

    def help(self) -> list[str]:
        """Lines that say what the knob is, how far it goes and how a command line calls it."""
        knob = self.knob
        unit = f" {knob.unit}" if knob.unit else ""
        reach = ""
        if knob.low is not None and knob.high is not None:
            reach = f"from {knob.low:,.12g} to {knob.high:,.12g}{unit}"
            if is_brief(knob):
                reach = f"from {brief(knob.low)} to {brief(knob.high)}"
        choices = "one of: " + ", ".join(knob.choices) if knob.choices else ""
        lines = (knob.doc, reach, choices, f"--set {knob.path}=…")
        return [line for line in lines if line]

    def shown(self, value: Any) -> dict[str, Any]:
        """What the field (and the slider) stand at for `value`."""
        number = self.knob.type in ("int", "float")
        field = spell(value) if number else "" if value is None else value
        if is_brief(self.knob) and isinstance(value, int | float):
            field = brief(value)
        if not self.slides or not isinstance(value, int | float):
            return {"field": field}
        low, high = self.ends
        return {"field": field, "place": min(max(self.place(value), low), high)}

    def stands(self) -> dict[str, Any]:
        """`shown` for where the knob stands."""
        value = self.knob.value
        return self.shown(str(value) if self.knob.type == "choice" else value)

    def read(self, turned: dict[str, Any]) -> Any:
        """The value a person meant: `field` as left, or `place` as slid to."""
        if "place" in turned:
            place = turned["place"]
            fits = isinstance(place, int | float) and abs(place) <= LARGEST and self.slides
            return self.at(float(place)) if fits else self.knob.value
        return self._typed(turned.get("field"))

    def _typed(self, shown: Any) -> Any:
        """What the field says, in the knob's type; text that is no number stays text."""
        if self.knob.type not in ("int", "float") or not isinstance(shown, str):
            return shown
        text = shown.strip().replace(",", "").replace("\N{THIN SPACE}", "")
        if not text:
            return None
        number, unit = text[:-2].rstrip(), text[-2:].replace("us", "µs")
        try:
            timed = self.knob.unit == "s" and unit in BRIEF
            value = float(number) / BRIEF[unit] if timed else float(text)
        except ValueError:
            return text
        whole = self.knob.type == "int" and value.is_integer()
        return int(value) if whole else value

    @property
    def slides(self) -> bool:
        """Whether there are two bounds to slide between, and a value to start from."""
        knob = self.knob
        if knob.type not in ("int", "float") or knob.low is None or knob.high is None:
            return False
        return 0 < knob.high - knob.low <= HUGE and knob.value is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Where the slider begins and ends."""
        return self.place(self.knob.low), self.place(self.knob.high)

    @property
    def is_log(self) -> bool:
        """Whether the slider goes by powers: asked for, or a range too wide to hit anything."""
        low, high = self.knob.low or 0.0, self.knob.high or 0.0
        return low >= 0 and (self.knob.log or high / max(low, 1.0) > WIDE)

    @property
    def _floor(self) -> float:
        """Where a log slider begins to rise: nought itself has no logarithm."""
        low, high = float(self.knob.low or 0), float(self.knob.high or 0)
        if low > 0:
            return low
        return 1.0 if self.knob.type == "int" else min(1.0, high * 1e-4)

    def place(self, value: Any) -> Any:
        """Where on the slider a value is."""
        if self.is_log:
            return math.log10(max(float(value), self._floor))
        return int(value) if self.knob.type == "int" else float(value)

    def at(self, place: float) -> Any:
        """A round value at a place of the slider; both bounds are reached exactly."""
        knob, (first, last) = self.knob, self.ends
        reach = (last - first) * 1e-6
        if place <= first + reach:
            return knob.low if knob.type == "float" else int(knob.low or 0)
        if place >= last - reach:
            return knob.high if knob.type == "float" else int(knob.high or 0)
        value = float(f"{10.0**place:.2g}") if self.is_log else float(f"{place:.4g}")
        value = min(max(value, float(knob.low or 0)), float(knob.high or value))
        return round(value) if knob.type == "int" else value
