"""Maps of CloudMatrix-Infer's claims: over width, bus, balance, objective, load and reuse."""

from collections.abc import Callable

from engine.core.config import update
from engine.fleet.config import FleetConfig
from workbench.studies.serving._supernode.claims import microbatched, wide
from workbench.studies.serving._supernode.pooled_prompts import anywhere
from workbench.study import Outcome, Regime, RunConfig

BANDWIDTH = "engine.executor.bandwidth"
RATE = "tokens a second and NPU over the best of at most 64 dies that share experts (×)"
GAIN = "tokens a second with two microbatches over one (×)"
SOONER = "mean time to first token of the strongest rival over ours (×)"

Judged = Callable[[FleetConfig, float, RunConfig, bool], Outcome]


def at_width(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """The rate within 50 ms of so many devices that share experts."""
    return wide(update(config, {"pools.decode_dies": int(value)}), run, fast)


def with_knob(knob: str, check: Callable[[FleetConfig, RunConfig, bool], Outcome]) -> Judged:
    """A claim's small check with a knob at some value."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(update(config, {knob: value}), run, True)

    return judged


def at_reuse(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """How much sooner first tokens come where prefixes have so many tokens."""
    changes = {"engine.workload.prefix.median": int(value)}
    return anywhere(update(config, changes), run, True)


REGIMES = tuple(
    Regime(
        claim=claim,
        knob=knob,
        values=values,
        coarse=coarse,
        x=x,
        y=RATE if claim == "wide-experts" else GAIN if claim == "microbatches" else SOONER,
        default=default,
        judged=judged,
        log_x=True,
    )
    for claim, knob, values, coarse, x, default, judged in (
        (
            "wide-experts",
            "pools.decode_dies",
            (32, 64, 96, 128, 160, 256, 320, 640),
            (64, 320),
            "dies that share a layer's experts",
            320,
            at_width,
        ),
        (
            "wide-experts",
            BANDWIDTH,
            (5e9, 1e10, 2e10, 5e10, 1e11, 1.96e11, 4e11),
            (2e10, 1.96e11),
            "bus of each die (B/s)",
            1.96e11,
            with_knob(BANDWIDTH, wide),
        ),
        (
            "wide-experts",
            "engine.executor.skew",
            (1.0, 1.5, 2.0, 3.0, 4.0, 8.0),
            (1.0, 4.0),
            "tokens of the die that gets most over the mean (×)",
            1.0,
            with_knob("engine.executor.skew", wide),
        ),
        (
            "wide-experts",
            "objective.tpot",
            (0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.1),
            (0.02, 0.05),
            "seconds a token at most",
            0.05,
            with_knob("objective.tpot", wide),
        ),
        (
            "microbatches",
            BANDWIDTH,
            (2e10, 5e10, 1e11, 1.96e11, 4e11),
            (5e10, 1.96e11),
            "bus of each die (B/s)",
            1.96e11,
            with_knob(BANDWIDTH, microbatched),
        ),
        (
            "anywhere",
            "engine.workload.rate",
            (5.0, 10.0, 20.0, 40.0, 80.0),
            (10.0, 40.0),
            "requests a second",
            40.0,
            with_knob("engine.workload.rate", anywhere),
        ),
        (
            "anywhere",
            "engine.workload.prefix.median",
            (256, 1000, 4000, 12_000, 24_000),
            (1000, 12_000),
            "tokens that requests of a group begin with alike; 800 follow",
            12_000,
            at_reuse,
        ),
    )
)  # fmt: skip
