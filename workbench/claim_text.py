"""Figures and findings of claims in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from widgets import theme
from workbench.claim import Claim, Comparison, Outcome
from workbench.finding import Figure
from workbench.study import Verdict


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


def over_line(claim: Claim, over: Mapping[str, Any] | None) -> str:
    """What the interval of a claim about taught models is over, and where no other training is
    recorded in `over` that it says nothing of others; "" where it rests on none."""
    if claim.taught is None:
        return ""
    alone = "over problems, of one training of each model"
    return alone if _several(over) else f"{alone}: of another training it says nothing"


def several_line(claim: Claim, over: Mapping[str, Any] | None) -> str:
    """What `over`, the record of several trainings, says of the claim; "" where there are none."""
    if claim.taught is None or over is None or not _several(over):
        return ""
    count = len(over["trainings"])
    if not over["figure"]:
        return f"{count}, too few to judge; {_says(over)}; {each_line(over)}"
    of = f" of {', '.join(over['models'])} alone" if over["once"] else ""
    return f"of {count}{of}: {trainings_line(claim, over)}"


def machines_line(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> str:
    """What a timed claim came to on each machine, from rows of the record; "" without any."""
    said = []
    for row in rows:
        figure = Figure.of_row(row["figure"]) if row["figure"] else None
        found = claim.told(Outcome("", "", bool(row["holds"]), figure=figure, needed=row["needed"]))
        size = f", {in_words(figure)}" if figure else ""
        said.append(f"{found}{size} on {row['machine']}{', in small' if row['fast'] else ''}")
    return "; ".join(said)


def _several(over: Mapping[str, Any] | None) -> bool:
    return over is not None and len(over["trainings"]) > 1


def trainings_line(claim: Claim, over: Mapping[str, Any]) -> str:
    """The finding over trainings with its figure, what the check says of them, and the figure of
    each training."""
    whole, size = _outcome(over, over), "small" if over["fast"] else "full"
    assert whole.figure is not None
    checked = _says(over)
    if claim.lacks_besides(whole):
        checked = (
            "yet no yes: the check asks for more than this figure, and the rest of it held of "
            f"{kept_besides(claim, over)} of {len(over['trainings'])} trainings"
        )
    figure = in_words(whole.figure)
    return f"{claim.told(whole)}, {figure}; {checked}; {each_line(over)}; at {size} size"


def kept_besides(claim: Claim, over: Mapping[str, Any]) -> int:
    """Of how many trainings what the check asks for besides its figure held."""
    return sum(not claim.lacks_besides(_outcome(over, each)) for each in over["trainings"])


def _outcome(over: Mapping[str, Any], row: Mapping[str, Any]) -> Outcome:
    """What a row came to, of all trainings or of one."""
    figure = Figure.of_row(row["figure"]) if row["figure"] else None
    return Outcome("", "", bool(row["holds"]), figure=figure, needed=over["needed"])


def _says(over: Mapping[str, Any]) -> str:
    """Of how many trainings the check says yes."""
    said = [bool(each["holds"]) for each in over["trainings"]]
    if len(set(said)) == 1:
        return f"the check says {'yes' if said[0] else 'no'} of each training"
    return f"the check says yes of {sum(said)} of {len(said)} trainings"


def each_line(over: Mapping[str, Any]) -> str:
    """Each training's own figure, the shipped one's first."""
    own = [Figure.of_row(each["figure"]) for each in over["trainings"] if each["figure"]]
    values = [written(figure.value, figure.unit) for figure in own]
    noun = f" {own[-1].unit}" if own else ""
    first = [value.removesuffix(noun) for value in values[:-1]]
    return f"each {' · '.join([*first, *values[-1:]])}"
