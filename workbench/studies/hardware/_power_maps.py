"""POLCA's maps: its claims with a knob at some value."""

from collections.abc import Callable

from engine.core.config import update
from engine.fleet.config import FleetConfig
from workbench.studies.hardware._polca import (
    PEAK,
    filled,
    fitted,
    peaks,
    roomy,
    ruled,
    said,
    sparing,
    thirty_more,
)
from workbench.study import Outcome, RunConfig


def peaks_with(config: FleetConfig, memory: float, run: RunConfig, fast: bool) -> Outcome:
    """The same where reading memory draws so much of what computing does."""
    figure = peaks(ruled(config, config.power.kind, memory=memory), run, fast)
    told = f"{said(figure)}, n = {figure.n}"
    return Outcome(f"at most {PEAK:.0%}", told, figure.high <= PEAK, figure=figure, needed=PEAK)


def peaks_at(config: FleetConfig, share: float, run: RunConfig, fast: bool) -> Outcome:
    """The same at a share of the load, whatever reading memory draws."""
    rate = config.engine.workload.rate  # type: ignore[attr-defined]
    return filled(update(config, {"engine.workload.rate": share * rate}), run, fast)


def over(knob: str) -> Callable[[FleetConfig, float, RunConfig, bool], Outcome]:
    """30% or none, of one draw of either load, with a knob at some value."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return thirty_more(update(config, {knob: value}), run, True)

    return judged


def spared_over(knob: str) -> Callable[[FleetConfig, float, RunConfig, bool], Outcome]:
    """`sparing` with a knob at some value, of one draw in small and five in full; `load` is a share
    of the load's requests a second."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        rate = config.engine.workload.rate  # type: ignore[attr-defined]
        asked = {"engine.workload.rate": value * rate} if knob == "load" else {knob: value}
        return sparing(update(config, asked), run, fast)

    return judged


def room_with(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """The replicas that fit in more, where reading memory draws so much of what computing does; in
    small 30% or none."""
    one = update(config, {"power.memory": value})
    return roomy(fitted(one, run, fast), run, fast)


def room_at(config: FleetConfig, share: float, run: RunConfig, fast: bool) -> Outcome:
    """The same where the row's highest readings are that share of its power."""
    return roomy(fitted(config, run, fast, share), run, fast)


def at_share(config: FleetConfig, share: float, run: RunConfig, fast: bool) -> Outcome:
    """The same at a share of the load."""
    rate = config.engine.workload.rate  # type: ignore[attr-defined]
    return over("engine.workload.rate")(config, share * rate, run, fast)
