"""Maps of CloudMatrix-Infer's claims: over width, bus, balance, objective, load and reuse."""

from collections.abc import Callable

from engine.core.config import update
from engine.fleet.config import FleetConfig
from workbench.studies.serving._supernode.claims import (
    decodes,
    microbatched,
    prefills,
    prompts_microbatched,
    strict,
    wide,
)
from workbench.studies.serving._supernode.pooled_prompts import anywhere, at_speed, planes, reuse
from workbench.study import Outcome, Regime, RunConfig

BANDWIDTH, PLANE, SKEW, SPEED = (
    "engine.executor.bandwidth", "pools.plane_bandwidth", "engine.executor.skew",
    "engine.workload.speed",
)  # fmt: skip
BUS, POOLED = 1.96e11, 1.51e11  # B/s of a die, to others and to pooled memory, by the sheets
MODELLED = "tokens a second and NPU, modelled"
WHAT = {  # of each claim's figure
    "prefill-rate": f"prompts' {MODELLED}",
    "decode-rate": f"answers' {MODELLED}",
    "strict-rate": f"answers' {MODELLED}, eight requests an NPU",
    "microbatches": "tokens a second with two microbatches over one (×)",
    "prompt-microbatches": "prompts' tokens a second with two microbatches over one (×)",
    "wide-experts": "tokens a second and NPU over the best of at most 64 dies that share experts "
    "(×)",
    "anywhere": "mean time to first token of the strongest rival over ours (×)",
    "reuse": "prompts' tokens a second over those without reuse (×)",
    "plane": "prompts' tokens a second over those with the pool behind Ethernet (×)",
}
LESS = {  # that of the small check
    "microbatches": "96 requests an NPU",
    "anywhere": "one draw",
    "wide-experts": "prompts of 4,096",
}
OVER_BUS = "bus of each die (B/s)"
BUSIEST = "tokens of the die that gets most over the mean (×)"
FOUND = "part of each prompt that the pool has"

Judged = Callable[[FleetConfig, float, RunConfig, bool], Outcome]
Check = Callable[[FleetConfig, RunConfig, bool], Outcome]


def at_width(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """The rate within 50 ms of so many devices that share experts."""
    return wide(update(config, {"pools.decode_dies": int(value)}), run, fast)


def with_knob(knob: str, check: Check) -> Judged:
    """A claim's small check with a knob at some value."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(update(config, {knob: value}), run, True)

    return judged


def at_reuse(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """How much sooner first tokens come where prefixes have so many tokens."""
    changes = {"engine.workload.prefix.median": int(value)}
    return anywhere(update(config, changes), run, True)


def at_share(check: Callable[..., Outcome]) -> Judged:
    """A check of prompts of which the pool has some part."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(config, run, fast, (value,))

    return judged


RATES: dict[str, Check] = {"prefill-rate": prefills, "decode-rate": decodes, "strict-rate": strict}
PROMPTS = {"reuse": reuse, "plane": planes}
PAPERS = ("prefill-rate", SKEW), ("reuse", "share")  # perfect balance; nine tenths
REGIMES = tuple(
    Regime(
        claim=claim,
        knob=knob,
        values=values,
        coarse=coarse,
        x=x,
        y=WHAT[claim],
        less="" if knob == SPEED else LESS.get(claim, ""),
        paper=default if (claim, knob) in PAPERS else None,
        default=default,
        judged=judged,
        log_x=knob != "share",
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
            (5e9, 1e10, 2e10, 5e10, 1e11, BUS, 4e11),
            (2e10, BUS),
            OVER_BUS,
            BUS,
            with_knob(BANDWIDTH, wide),
        ),
        (
            "wide-experts",
            SKEW,
            (1.0, 1.5, 2.0, 3.0, 4.0, 8.0),
            (1.0, 4.0),
            BUSIEST,
            1.0,
            with_knob(SKEW, wide),
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
            (2e10, 5e10, 1e11, BUS, 4e11),
            (5e10, BUS),
            OVER_BUS,
            BUS,
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
        (
            "anywhere",
            SPEED,
            (5.0, 10.0, 20.0, 40.0, 80.0),
            (10.0, 40.0),
            "times the trace's own speed; the trace alone, by which the finding goes",
            40.0,
            at_speed,
        ),
        *(
            (claim, SKEW, (1.0, 1.25, 1.5, 2.0, 3.0, 4.0), (1.0, 2.0), BUSIEST, 1.0,
             with_knob(SKEW, check))
            for claim, check in RATES.items()
        ),
        *(
            (claim, BANDWIDTH, (2e10, 5e10, 1e11, BUS, 4e11), (5e10, BUS), OVER_BUS, BUS,
             with_knob(BANDWIDTH, check))
            for claim, check in {**RATES, "prompt-microbatches": prompts_microbatched}.items()
        ),
        *(
            (claim, "share", (0.1, 0.25, 0.5, 0.75, 0.9, 0.95), (0.25, 0.9), FOUND, 0.9,
             at_share(check))
            for claim, check in PROMPTS.items()
        ),
        *(
            (claim, PLANE, (1e8, 1e9, 3.125e9, 1e10, 3e10, POOLED), (1e9, POOLED),
             "bus from each die to pooled memory (B/s)", POOLED, with_knob(PLANE, check))
            for claim, check in PROMPTS.items()
        ),
    )
)  # fmt: skip
