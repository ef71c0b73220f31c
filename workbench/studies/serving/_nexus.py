"""Nexus's claims: settings they are checked under and what each check runs."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.core.measure import served
from engine.inference.config import InferenceConfig
from workbench.regime import At
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
REQUESTS, MAPPED = 200, 40  # of a draw at full size, and in maps
FEWER, LONGER = 20, 60  # of the small check's one, and of that between tokens
# The rival: one step at a time, answers and a chunk of prompts together, first come first served.
CHUNKS = (256, 512, 1024, 2048, 4096, 8192)
FEW_CHUNKS = (512, 8192)  # of the small check, and of maps
# Chunks so small that tokens come closest and prompts wait longest.
SMALLER, SMALLEST = (32, 64, 128), (32,)
BOUNDED = (128, 256, 512, 2048)  # of maps of the load within bounds
PROMPTS_FIRST: Changes = {"batching": "prefill_first", "ordering": "fcfs", "step_tokens": 8192}
# Rivals that split the device too, each with what it is tuned over.
SHARES = 0.3, 0.4, 0.5, 0.6, 0.7
TARGETS = 0.015, 0.0175, 0.02, 0.0225, 0.025, 0.03  # seconds
FIXED = {f"fixed {share:g}": {"kind": "fixed_split", "share": share} for share in SHARES}
REACTIVE = {
    f"reactive {1e3 * target:g} ms": {"kind": "reactive_split", "target": target}
    for target in TARGETS
}
SWUNG: Changes = {"workload.swing": 0.8, "workload.period": 20.0}
# The shipped trace like Azure's: 5 requests a second, from each of `WINDOWS`.
TRACE: Changes = {"workload": {"kind": "trace", "file": "azure-like.csv", "count": 80}}
WORKS = DRAWN, TRACED = "of drawn requests", "of the trace"
WINDOWS = (0, 80, 160, 240, 320)
AT_ONCE: dict[str, Changes] = {DRAWN: {"workload.rate": 0.0}, TRACED: {"workload.speed": 1e6}}
WAIT = 2.0  # seconds to the first token that 9 of 10 keep to, in maps of the load within bounds
STEP = 1.4  # from one load tried to the next
LEAST = 0.03  # requests a second, of which hardly two are ever there at once
Measure = Callable[[Log], float]


def chunked(tokens: int) -> Changes:
    """Chunked prefill: up to so many tokens a step."""
    return {"batching": "decode_first", "ordering": "fcfs", "step_tokens": tokens}


def undivided(few: bool) -> dict[str, Changes]:
    """Rivals with one step at a time."""
    chunks = FEW_CHUNKS if few else CHUNKS
    rivals = {f"chunks of {tokens:,}": chunked(tokens) for tokens in chunks}
    return rivals if few else {**rivals, "prompts first": PROMPTS_FIRST}


def first_token(log: Log) -> float:
    """Mean seconds to the first token."""
    found = (one.time_to_first_token for one in served(log).values())
    return float(np.mean([each for each in found if each is not None]))


def between_tokens(log: Log) -> float:
    """Mean seconds from a token to the next of its request."""
    return float(np.concatenate([np.diff(one.tokens) for one in served(log).values()]).mean())


def makespan(log: Log) -> float:
    """Seconds until every request is answered."""
    return max(one.ended or 0.0 for one in served(log).values())


def end_to_end(log: Log) -> float:
    """Mean seconds from arrival to the last token."""
    found = (one.end_to_end for one in served(log).values())
    return float(np.mean([each for each in found if each is not None]))


def draws(config: InferenceConfig, fast: bool, mapped: bool = False) -> list[InferenceConfig]:
    """Draws of the requests; the small check has a short one."""
    count = FEWER if fast else MAPPED if mapped else REQUESTS
    sized = update(config, {"workload.count": count})
    return [update(sized, {"seed": config.seed + n}) for n in range(1 if fast else SEEDS)]


def over_rivals(
    configs: list[InferenceConfig], rivals: dict[str, Changes], run: RunConfig, measure: Measure
) -> dict[str, Figure]:
    """Each rival's measure over ours, of the same requests."""
    ours = [measure(run(one)) for one in configs]
    found = {}
    for name, changes in rivals.items():
        theirs = [measure(run(update(one, changes))) for one in configs]
        paired = len(configs) > 1
        found[name] = (
            Figure.ratio(theirs, ours) if paired else Figure.exact(theirs[0] / ours[0], "×")
        )
    return found


def works(
    config: InferenceConfig, fast: bool, mapped: bool = False
) -> dict[str, list[InferenceConfig]]:
    """Draws of the requests and, at full size, parts of the trace at its own pace."""
    drawn = draws(config, fast, mapped)
    if fast or mapped:
        return {DRAWN: drawn}
    trace = update(config, TRACE)
    return {DRAWN: drawn, TRACED: [update(trace, {"workload.first": first}) for first in WINDOWS]}


def over_works(
    works: dict[str, list[InferenceConfig]], rivals: dict[str, Changes], run: RunConfig,
    measure: Measure,
) -> dict[str, Figure]:  # fmt: skip
    """`over_rivals` of each workload."""
    return {
        f"{name} {work}": ratio
        for work, configs in works.items()
        for name, ratio in over_rivals(configs, rivals, run, measure).items()
    }


def over_strongest(found: dict[str, Figure], expected: str) -> Outcome:
    """The outcome beside the rival that comes nearest."""
    figure = min(found.values(), key=lambda ratio: ratio.value)
    told = ", ".join(
        f"{name} {ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}]"
        for name, ratio in found.items()
    )
    return Outcome(expected, f"{told}; n = {figure.n}", figure.low > 1, figure=figure, needed=1.0)


def sooner(config: InferenceConfig, run: RunConfig, fast: bool, mapped: bool = False) -> Outcome:
    """Mean time to first token of the strongest rival with one step at a time over ours."""
    found = over_works(works(config, fast, mapped), undivided(fast or mapped), run, first_token)
    return over_strongest(
        found, "first tokens come sooner than by chunked prefill, its chunk chosen for them"
    )


def closer(config: InferenceConfig, run: RunConfig, fast: bool, mapped: bool = False) -> Outcome:
    """Mean time between tokens of the strongest rival with one step at a time over ours."""
    few = fast or mapped
    chunks = SMALLEST if few else SMALLER
    rivals = {f"chunks of {tokens}": chunked(tokens) for tokens in chunks}
    asked = works(config, fast, mapped)
    if fast and not mapped:  # of more requests, as prompts wait by then, beside the nearest alone
        asked = {DRAWN: [update(config, {"workload.count": LONGER})]}
    else:
        rivals |= undivided(few)
    found = over_works(asked, rivals, run, between_tokens)
    return over_strongest(
        found, "tokens come closer together than by chunked prefill, its chunk chosen for that"
    )


def throughput(
    config: InferenceConfig, run: RunConfig, fast: bool, mapped: bool = False
) -> Outcome:
    """Requests a second over those of the strongest rival, all requests there at once; in maps all
    that are drawn."""
    asked = {DRAWN: draws(config, fast)} if mapped else works(config, fast)
    crowd = {
        work: [update(one, AT_ONCE[work]) for one in configs] for work, configs in asked.items()
    }
    rivals = undivided(fast or mapped)
    if mapped:
        rivals["prompts first"] = PROMPTS_FIRST
    found = over_works(crowd, rivals, run, makespan)
    return over_strongest(found, "more requests a second than chunked prefill, all there at once")


def foretold(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Mean time to the last token under a load that swings: of the strongest fixed or reactive
    split over ours. The trace's pace swings by itself."""
    swung = {
        work: configs if work == TRACED else [update(one, SWUNG) for one in configs]
        for work, configs in works(config, fast).items()
    }
    return over_splits(swung, run, fast)


def over_splits(swung: dict[str, list[InferenceConfig]], run: RunConfig, few: bool) -> Outcome:
    """The same of given draws, beside all rivals or a few."""
    splits = {**FIXED, **REACTIVE}
    if few:
        splits = {name: splits[name] for name in ("fixed 0.5", "reactive 20 ms")}
    rivals: dict[str, Changes] = {name: {"batching": how} for name, how in splits.items()}
    found = over_works(swung, rivals, run, end_to_end)
    return over_strongest(
        found, "answers end sooner than by any fixed split and any that follows the last step"
    )


def at(knob: str, check: Callable[[InferenceConfig, RunConfig, bool, bool], Outcome]) -> At:
    """A check with a knob at some value."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(update(config, {knob: value}), run, fast, True)

    return judged


def at_swing(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """`foretold` of a load that swings so far, beside all rivals."""
    swung = {**SWUNG, "workload.swing": value}
    return over_splits(
        {DRAWN: [update(one, swung) for one in draws(config, fast, True)]}, run, fast
    )


def at_period(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """`foretold` of a load that swings once in so many seconds, beside all rivals."""
    swung = {**SWUNG, "workload.period": value}
    return over_splits(
        {DRAWN: [update(one, swung) for one in draws(config, fast, True)]}, run, fast
    )


def at_chunk(measure: Measure) -> At:
    """A measure of chunked prefill over ours, with chunks of so many tokens."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        rivals = {f"chunks of {value:,.0f}": chunked(int(value))}
        found = over_rivals(draws(config, fast, True), rivals, run, measure)
        return over_strongest(found, "sooner than by chunks of that size")

    return judged


def load_within(bound: float, configs: Iterable[InferenceConfig], run: RunConfig) -> list[float]:
    """Of each draw the highest load in requests a second, up to which at every one tried 9 of 10
    first tokens come within `WAIT` and 9 of 10 requests' tokens are `bound` seconds apart; 0 where
    not even `LEAST` keeps to that."""
    return [_most(bound, one, run) for one in configs]


def _most(bound: float, config: InferenceConfig, run: RunConfig) -> float:
    rate = 0.5
    while not _kept(bound, config, rate, run):
        rate /= 2
        if rate < LEAST:
            return 0.0
    while rate < 16.0 and _kept(bound, config, rate * STEP, run):
        rate *= STEP
    return rate


def _kept(bound: float, config: InferenceConfig, rate: float, run: RunConfig) -> bool:
    requests = served(run(update(config, {"workload.rate": rate}))).values()
    first = np.quantile([one.time_to_first_token or 0.0 for one in requests], 0.9)
    apart = np.quantile([one.time_per_output_token or 0.0 for one in requests], 0.9)
    return bool(first <= WAIT and apart <= bound)


def within(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """The load within bounds, over that of the rival that bears most. Who keeps to them at no load
    in some draw is no rival; where we do not, or nobody else does, there is no figure."""
    configs = draws(config, fast, True)
    expected = f"more load than chunked prefill with tokens {value:g} ms apart at most"
    ours, found, never = load_within(value / 1e3, configs, run), {}, []
    for tokens in BOUNDED:
        rivals = [update(one, chunked(tokens)) for one in configs]
        theirs = load_within(value / 1e3, rivals, run)
        if not all(theirs):
            never.append(f"chunks of {tokens:,} at no load in {theirs.count(0.0)} draws")
        elif all(ours):
            one = Figure.exact(ours[0] / theirs[0], "×")
            found[f"chunks of {tokens:,}"] = one if fast else Figure.ratio(ours, theirs)
    if not all(ours) or not found:
        kept = f"ours at no load in {ours.count(0.0)} of {len(ours)} draws"
        return Outcome(expected, "; ".join([kept, *never]), all(ours))
    outcome = over_strongest(found, expected)
    return replace(outcome, measured="; ".join([outcome.measured, *never]))
