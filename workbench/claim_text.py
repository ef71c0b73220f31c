"""Figures and findings of claims in words."""

from widgets import theme
from workbench.finding import Figure
from workbench.study import Comparison, Verdict


def written(value: float, unit: str = "") -> str:
    """A value with its unit, or plain with thousands apart."""
    if unit:
        return theme.figure(value, unit)
    if value == round(value):
        return f"{value or 0.0:,.0f}"  # nought has no sign
    return f"{value:,.4g}" if abs(value) >= theme.LEAST else f"{value:.3g}"


def in_words(figure: Figure) -> str:
    """A figure with its interval, where it has one."""
    text = written(figure.value, figure.unit)
    if figure.low == figure.high:
        return text
    ends = (written(end, figure.unit) for end in (figure.low, figure.high))
    return f"{text} ({' to '.join(ends)}, n={figure.n})"


def finding_line(verdict: Verdict, reason: bool = True) -> str:
    """The finding with its two figures and, where asked, its reason."""
    parts: list[str] = [verdict.claim.told(verdict.outcome)]
    figure, reported = verdict.outcome.figure, verdict.claim.reported
    if figure is not None and reported is not None:
        paper = f"has {written(reported.value, figure.unit)}"
        if reported.direction:
            paper = "gives a direction, no figure"
        parts.append(f"{in_words(figure)} where the paper {paper}")
    if verdict.why and reason:
        parts.append(verdict.why)
    return "; ".join(parts)


def held_line(held: Comparison) -> str:
    """What a claim is held against: its rivals, its workloads, and why there are no more."""
    parts = [" · ".join(held.rivals)] if held.rivals else []
    if held.workloads:
        parts.append(f"on {' · '.join(held.workloads)}")
    return "; ".join([*parts, *([held.why] if held.why else [])])


def over_line(trainings: int) -> str:
    """What the interval of a claim about taught models is over; "" where it rests on none."""
    if trainings == 0:
        return ""
    if trainings == 1:
        return "over problems, of one training of each model: of another training it says nothing"
    return f"over {trainings} trainings of each model"
