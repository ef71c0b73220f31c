"""Controls: what a person turns one knob with, whatever its type: label, unit, bounds and words.

A `Control` is made from a `Knob`, shows its value, and tells when a person turned it.
"""

import math
from collections.abc import Callable
from typing import Any

import panel_material_ui as material
from panel import Row

from engine.core.config import Knob
from widgets.together import together

WIDE = 200.0  # a range that spans more than this factor, from above nought, gets a log slider
HUGE = 1e8  # a range wider than this is typed: seeds, counts without an end
STEPS = 200  # positions of a slider over real numbers
FIELD = 84  # pixels of a number's field
LABEL = {
    "& label, & .MuiFormLabel-root, & ~ .MuiFormControlLabel-label, & .MuiTypography-root": {
        "fontSize": "14px"
    }
}
NUMBER = {
    "& .MuiInputBase-input": {
        "padding": "5px 8px",
        "fontSize": "13px",
        "textAlign": "right",
        "fontVariantNumeric": "tabular-nums",
    }
}
WORDS = {"& .MuiInputBase-input": {"fontSize": "14px"}}


def label(knob: Knob) -> str:
    """The last part of the path in words, with the unit where the words do not hold it.

    Inside a value of a policy (`workload.prompt.median`) its name comes along: prompt median.
    """
    parts = knob.path.split(".")
    words = " ".join(parts[-2:] if len(parts) > 2 else parts[-1:]).replace("_", " ")
    words = words[:1].upper() + words[1:]
    return f"{words}, {knob.unit}" if knob.unit and knob.unit not in words.lower() else words


def spell(value: Any) -> str:
    """A value as a person would type it; nothing for None."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


class Control:
    """A knob's widgets. `on_turn(path, value)` is called for every change a person makes.

    A typed value goes out as it is, out of bounds or not a number at all: validation answers it.
    """

    def __init__(self, knob: Knob, on_turn: Callable[[str, Any], None]) -> None:
        self.knob, self._on_turn = knob, on_turn
        self._silent = False
        self.field: Any = None  # where the value is typed, switched or selected
        self.slider: Any = None
        makes = {"bool": self._switch, "choice": self._select}
        self.panel = makes.get(knob.type, self._line)() if not self._slides else self._slide()
        self.field.param.watch(lambda event: self._turned(self._read(event.new)), "value")
        if self.slider is not None:
            self.slider.param.watch(lambda event: self._turned(self._at(event.new)), "value")

    def set(self, value: Any) -> None:
        """Show `value` without telling anyone."""
        self._silent = True
        try:
            shown = spell(value) if self.knob.type in ("int", "float") else value
            shown = "" if shown is None else shown
            if self.field.value != shown:
                self.field.value = shown
            if self.slider is not None and isinstance(value, int | float):
                place = min(max(self._place(value), self.slider.start), self.slider.end)
                if self.slider.value != place:
                    self.slider.value = place
        finally:
            self._silent = False

    def _turned(self, value: Any) -> None:
        if not self._silent:
            with together():
                self.set(value)
                self._on_turn(self.knob.path, value)

    def _read(self, shown: Any) -> Any:
        """What the field says, in the knob's type; text that is no number stays text."""
        if self.knob.type not in ("int", "float") or not isinstance(shown, str):
            return shown
        text = shown.strip().replace(",", "").replace("\N{THIN SPACE}", "")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            return text
        whole = self.knob.type == "int" and value.is_integer()
        return int(value) if whole else value

    def _switch(self) -> Any:
        self.field = material.Switch(
            label=label(self.knob), value=bool(self.knob.value), description=self.knob.doc,
            size="small", margin=(4, 0), sx=LABEL,
        )  # fmt: skip
        return self.field

    def _select(self) -> Any:
        self.field = material.Select(
            label=label(self.knob), options=list(self.knob.choices), value=str(self.knob.value),
            description=self.knob.doc, size="small", sizing_mode="stretch_width", sx=WORDS,
            margin=(10, 0, 4, 0),
        )  # fmt: skip
        return self.field

    def _line(self) -> Any:
        number = self.knob.type in ("int", "float")
        value = spell(self.knob.value) if number else self.knob.value or ""
        self.field = material.TextInput(
            label=label(self.knob), value=value,
            placeholder="none" if number else "", description=self.knob.doc, size="small",
            sizing_mode="stretch_width", sx=WORDS, margin=(10, 0, 4, 0),
        )  # fmt: skip
        return self.field

    def _slide(self) -> Any:
        self.field = material.TextInput(
            label="", value=spell(self.knob.value), size="small", width=FIELD, sx=NUMBER,
            margin=0, align="center",
        )  # fmt: skip
        whole = self.knob.type == "int" and not self._is_log
        low, high = self._place(self.knob.low), self._place(self.knob.high)
        step = 1 if whole else (high - low) / STEPS
        self.slider = (material.IntSlider if whole else material.FloatSlider)(
            label=label(self.knob), description=self.knob.doc, show_value=False, size="small",
            start=low, end=high, step=step, value=self._place(self.knob.value), sx=LABEL,
            margin=(0, 14, 0, 6), sizing_mode="stretch_width",
        )  # fmt: skip
        return Row(self.slider, self.field, sizing_mode="stretch_width", margin=(4, 0))

    @property
    def _slides(self) -> bool:
        """Whether there are two bounds to slide between, and a value to start from."""
        knob = self.knob
        if knob.type not in ("int", "float") or knob.low is None or knob.high is None:
            return False
        return 0 < knob.high - knob.low <= HUGE and knob.value is not None

    @property
    def _is_log(self) -> bool:
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

    def _place(self, value: Any) -> Any:
        """Where on the slider a value is."""
        if self._is_log:
            return math.log10(max(float(value), self._floor))
        return int(value) if self.knob.type == "int" else float(value)

    def _at(self, place: float) -> Any:
        """A round value at a place of the slider; both bounds are reached exactly."""
        knob, reach = self.knob, (self.slider.end - self.slider.start) * 1e-6
        if place <= self.slider.start + reach:
            return knob.low if knob.type == "float" else int(knob.low or 0)
        if place >= self.slider.end - reach:
            return knob.high if knob.type == "float" else int(knob.high or 0)
        value = float(f"{10.0**place:.2g}") if self._is_log else float(f"{place:.4g}")
        value = min(max(value, float(knob.low or 0)), float(knob.high or value))
        return round(value) if knob.type == "int" else value
