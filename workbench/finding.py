"""A finding: what a measured figure with its interval says of the figure that a paper reports.

`finding` is a pure function of the two. A claim's check says whether the mechanism does what it
should; the finding beside it says whether the paper's own figure came out here.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from engine.core.intervals import of_mean, student, wilson

Finding: TypeAlias = Literal["reproduced", "weaker", "undecided", "contrary", "not tried"]
FINDINGS: dict[str, str] = {
    "reproduced": "the interval reaches the paper's figure, or its stated tolerance",
    "weaker": "an effect in the paper's direction, short of the paper's figure",
    "undecided": "the interval includes no effect, both sides of the margin, or too much to say",
    "contrary": "the interval excludes the paper's direction",
    "not tried": "no figure of the paper was held against one of ours",
}
Reach: TypeAlias = Literal["figure", "interval", "direction"]
IN_DIRECTION = "reproduced in direction only"
Better: TypeAlias = Literal["more", "less", "equal"]
SHARE = 0.5  # of the paper's effect, below which an interval that reproduces it may not come
FEW = 30  # independent values, below which Student's interval is used


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a check came to, with its 95% interval: `low` and `high` equal `value` where
    nothing is drawn at random. `n`: independent repetitions behind it. `unit` as in
    `widgets.theme.figure` ("s", "B", "%" for a share of 1), or a noun."""

    value: float
    low: float
    high: float
    unit: str = ""
    n: int = 1

    @classmethod
    def exact(cls, value: float, unit: str = "") -> "Figure":
        """A number without an interval: counted, or computed without chance."""
        return cls(float(value), float(value), float(value), unit)

    @classmethod
    def share(cls, right: float, n: int, unit: str = "%") -> "Figure":
        """`right` of `n` independent trials, with Wilson's interval."""
        low, high = wilson(right, n)
        return cls(right / n if n else math.nan, low, high, unit, n)

    @classmethod
    def mean(cls, values: Sequence[float] | np.ndarray, unit: str = "") -> "Figure":
        """The mean of independent values: Student's interval of a few, a bootstrap's of many; of
        shares where all are true or false. Of one value the interval has no ends."""
        array = np.asarray(values)
        if array.dtype == bool:
            return cls.share(float(array.sum()), array.size, unit)
        array = array.astype(float).ravel()
        low, high = student(array.tolist()) if array.size < FEW else _bootstrap(array)
        return cls(float(array.mean()), low, high, unit, array.size)

    @classmethod
    def ratio(cls, ours: Sequence[float], theirs: Sequence[float], unit: str = "×") -> "Figure":
        """Ours over theirs, of pairs run beside one another: the mean of the logarithms, which
        treats twice and half alike, and its interval."""
        logs = cls.mean([math.log(a / b) for a, b in zip(ours, theirs, strict=True)])
        low, high = (_exp(end) for end in (logs.low, logs.high))
        return cls(math.exp(logs.value), low, high, unit, logs.n)

    def row(self) -> dict[str, Any]:
        """As JSON has it; ends that are not there are None."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Figure":
        """What `row` gave."""
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        value = math.nan if row["value"] is None else row["value"]
        return cls(value, low, high, row["unit"], row["n"])


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    low, high = of_mean(values[:, None])
    return float(low[0]), float(high[0])


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Reported:
    """The figure a paper reports: `better` says in which direction its effect goes.

    `none`: the figure where there is no effect (1 for a ratio, 0 for a difference); None where the
    paper states a bound alone; the same as `value` where any effect in the paper's direction
    counts. `tolerance`: how far from `value` still counts as reached, in the figure's unit; with
    `equal` the margin within which two things count as equal. It comes from the paper, or its
    reason stands in the claim's `why`.
    """

    value: float
    better: Better = "more"
    none: float | None = None
    tolerance: float = 0.0
    unit: str = ""

    @property
    def reached_at(self) -> float:
        """The nearest figure that counts as the paper's."""
        return self.value - self.tolerance if self.better == "more" else self.value + self.tolerance

    @property
    def direction(self) -> bool:
        """Whether any effect reaches it, however small: it has a sign and no size."""
        return self.better != "equal" and self.none == self.value

    def row(self) -> dict[str, Any]:
        return asdict(self)


def finding(figure: Figure | None, reported: Reported | None) -> Finding:
    """What `figure` says of `reported`; "not tried" where one of them is missing.

    The rule is that the interval reaches the paper's figure or its stated tolerance. Three guards
    keep a wide interval from being rewarded by it. One that holds both no effect and the paper's
    figure is undecided. So is one that holds both the paper's figure and less than `SHARE` of the
    paper's effect (from `none` to `value`): it cannot tell that effect from a far smaller one. The
    half is ours. And where the paper states a bound alone, or that two things are equal, all of the
    interval must lie within it. What is reproduced though its value falls short says so: `reach`.
    """
    if figure is None or reported is None or math.isnan(figure.value):
        return "not tried"
    if reported.better == "equal":
        return _equal(figure, reported)
    # Turned so that more is better.
    sign = 1.0 if reported.better == "more" else -1.0
    low, high = sorted((sign * figure.low, sign * figure.high))
    reached = sign * reported.reached_at
    if reported.none is None:
        return "reproduced" if low >= reached else "contrary" if high < reached else "undecided"
    none = sign * reported.none
    if low <= none:
        return "contrary" if high < none else "undecided"
    if high < reached:
        return "weaker"
    least = none + SHARE * (sign * reported.value - none)
    return "reproduced" if low >= min(least, reached) else "undecided"


def reach(figure: Figure | None, reported: Reported | None) -> Reach | None:
    """How a reproduced figure reaches the paper's; None where the finding is another.

    "figure": its value is the paper's or better, or within the stated tolerance. "interval": its
    value falls short, and the interval around it reaches. "direction": it goes the paper's way, and
    the paper states no figure of how far.
    """
    if figure is None or reported is None or finding(figure, reported) != "reproduced":
        return None
    if reported.direction:
        return "direction"
    sign = -1.0 if reported.better == "less" else 1.0
    short = reported.better != "equal" and sign * figure.value < sign * reported.reached_at
    return "interval" if short else "figure"


def told(found: Finding, reached: Reach | None) -> str:
    """A finding in words, with how a reproduced one reaches the paper's figure."""
    if reached == "direction":
        return IN_DIRECTION
    if reached == "interval":
        return f"{found} by its interval's end, its value falls short"
    return found


def _equal(figure: Figure, reported: Reported) -> Finding:
    below, above = reported.value - reported.tolerance, reported.value + reported.tolerance
    if below <= figure.low and figure.high <= above:
        return "reproduced"
    return "contrary" if figure.high < below or figure.low > above else "undecided"
