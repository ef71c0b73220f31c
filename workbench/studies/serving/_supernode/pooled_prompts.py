"""Prompts of fleets with a pooled cache and without: first tokens, and what reuse is worth."""

from collections.abc import Sequence

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import ENDED, table
from engine.fleet.measure import Served, served
from engine.fleet.run import build, serve
from engine.inference.requests.request import Request, Sampling
from engine.models.loading.find import find
from workbench.studies.serving._supernode.phase_rates import DIES, PROMPT, PROMPTS, executor_of
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
AWARE: Changes = {"router": "prefix_aware"}
# Replicas for prompts, of six: of three to five the number with which first tokens come soonest, in
# draws and parts of the trace by which nothing is judged, with a pooled cache and with own ones.
SPLIT: Changes = {"pools.prefill": 5}
MORE: Changes = {"engine.workload.groups": 40, "engine.workload.per_group": 10}
TRACE: Changes = {
    "engine.workload": {"kind": "trace", "file": "mooncake-like.jsonl", "count": 80, "speed": 40.0}
}
PARTS = 0, 80, 160, 240, 320  # of the trace: the request that each begins with
KNOWN, QUEUES = "own caches, a router that knows them", "own caches, by queues"
TOGETHER = "every replica does both, a router that knows"
WORKS = ALIKE, TRACED = "alike beginnings", "parts of a trace like Mooncake's"
POOL = 100_000  # pages of the pooled memory; rivals have as many more of their own


def rivals(config: FleetConfig) -> dict[str, FleetConfig]:
    """The same devices and memory without a pooled cache: each replica's share of that memory is
    its own and costs nothing to reach, and the router knows what each holds, or looks at queues."""
    more = config.engine.pages + POOL // config.replicas
    own: Changes = {"pools.cache_pages": 1, "engine.pages": more}
    together: Changes = {"pools": "together", "engine.pages": more, **AWARE}
    return {
        KNOWN: update(config, {**own, **AWARE}),
        QUEUES: update(config, own),
        TOGETHER: update(config, together),
    }


def anywhere(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """First tokens with a pooled cache and a router that looks at queues alone, beside the
    strongest rival."""
    config = update(config, SPLIT)
    loads = {ALIKE: [config]}
    if not fast:
        more, trace, seed = update(config, MORE), update(config, TRACE), config.engine.seed
        draws = [update(more, {"engine.seed": seed + turn}) for turn in range(SEEDS)]
        parts = [update(trace, {"engine.workload.first": first}) for first in PARTS]
        loads = {ALIKE: draws, TRACED: parts}
    gains, told = [], []
    for load, draws in loads.items():
        gain, text = first_tokens(draws, run)
        gains.append(gain)
        told.append(f"{load}: {text}")
    least = min(gains, key=lambda gain: gain.value)
    return sooner_than_all(least, ". ".join(told))


def at_speed(config: FleetConfig, speed: float, run: RunConfig, fast: bool) -> Outcome:
    """First tokens of parts of the trace that is so many times as fast; in small of one."""
    trace = update(config, {**SPLIT, **TRACE})
    trace = update(trace, {"engine.workload.speed": speed})
    parts = [update(trace, {"engine.workload.first": first}) for first in PARTS[: 1 if fast else 5]]
    gain, told = first_tokens(parts, run)
    return sooner_than_all(gain, told)


def sooner_than_all(gain: Figure, told: str) -> Outcome:
    """The outcome of a gain over the strongest rival."""
    return Outcome(
        "first tokens sooner than of the strongest rival, in the mean",
        told, gain.low > 1, figure=gain, needed=1.0,
    )  # fmt: skip


def first_tokens(draws: list[FleetConfig], run: RunConfig) -> tuple[Figure, str]:
    """The strongest rival's mean time to first token over ours."""
    found: dict[str, list[Served]] = {}
    for each in draws:
        one = update(each, {"tokens": False})
        asked = {"pooled": one, **rivals(one)}
        if len(draws) == 1:  # a small check asks the strongest
            asked.pop(QUEUES)
        for name, each in asked.items():
            found.setdefault(name, []).append(served(run(each), each))
    first = {name: [each.ttft.mean for each in runs] for name, runs in found.items()}
    _, *others = first
    best = min(others, key=lambda name: float(np.mean(first[name])))
    gain = over(first[best], first["pooled"])
    told = "; ".join(
        f"{name} {np.mean(each) * 1e3:.0f} ms, {np.mean([r.hit_rate for r in found[name]]):.0%} "
        f"of prompts found, {np.mean([r.tpot.mean for r in found[name]]) * 1e3:.0f} ms a token"
        for name, each in first.items()
    )
    return gain, f"{told}: {gain.value:.2f}× [{gain.low:.2f}, {gain.high:.2f}], n = {gain.n}"


def over(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """A ratio over paired draws; of one draw without an interval."""
    if len(ours) == 1:
        return Figure.exact(ours[0] / theirs[0], "×")
    return Figure.ratio(list(ours), list(theirs))


def reused(config: FleetConfig, share: float, plane: str = "") -> float:
    """Prompt tokens a second and NPU where the pool has so much of each prompt: three steps' worth
    of prompts come at once, after one that all begin like."""
    changes: Changes = {
        "replicas": 2,
        "pools.prefill": 1,
        "tokens": False,
        "engine.prefix_sharing": False,
        "engine.batching": "prefill_first",
        "engine.step_tokens": PROMPTS * PROMPT,
        "engine.pages": 4 * PROMPTS * -(-PROMPT // config.engine.page_size),
        "engine.max_running": 4 * PROMPTS,
        **({"pools.plane": plane, "pools.plane_bandwidth": 0.0} if plane else {}),
    }
    one = update(config, changes)
    random, vocab = np.random.default_rng(config.engine.seed), find(one.engine.model).config.vocab
    begin = random.integers(0, vocab, round(share * PROMPT), np.int32)
    built, log, late = build(one), Log(), 100.0
    fleet = Fleet(one, built, log.emit)

    def asked(arrival: float) -> Request:
        rest = random.integers(0, vocab, PROMPT - len(begin), np.int32)
        return Request(np.concatenate([begin, rest]), Sampling(max_tokens=1), arrival)

    serve(fleet, [asked(0.0), *(asked(late) for _ in range(3 * PROMPTS))], Live(log))
    seconds = float(np.nanmax(table(fleet.rows)[ENDED])) - late
    return 3 * PROMPTS * PROMPT / seconds / executor_of(one).own * DIES


def reuse(
    config: FleetConfig, run: RunConfig, fast: bool, shares: tuple[float, ...] = ()
) -> Outcome:
    """Prompts of which the pool has the last share, by default nine tenths, over prompts of which
    it has nothing."""
    asked = shares or ((0.9,) if fast else (0.25, 0.5, 0.75, 0.9))
    rates = {share: reused(config, share) for share in (0.0, *asked)}
    gain = Figure.exact(rates[asked[-1]] / rates[0.0], "×")
    told = ", ".join(f"{share:.0%} {rates[share]:,.0f}" for share in asked)
    return Outcome(
        "more prompt tokens a second than without reuse",
        f"tokens a second and NPU by what is reused, {told}, without reuse {rates[0.0]:,.0f}: "
        f"{gain.value:.2f}×",
        gain.value > 1, figure=gain, needed=1.0,
    )  # fmt: skip


def planes(
    config: FleetConfig, run: RunConfig, fast: bool, shares: tuple[float, ...] = ()
) -> Outcome:
    """The pool behind the bus beside the same behind nodes' Ethernet, by how much is reused."""
    asked = shares or ((0.9,) if fast else (0.25, 0.5, 0.75, 0.9))
    both = {share: (reused(config, share), reused(config, share, "vpc-400")) for share in asked}
    gains = {share: ours / theirs for share, (ours, theirs) in both.items()}
    most = Figure.exact(max(gains.values()), "×")
    told = ", ".join(f"{gain:.2f}× at {share:.0%}" for share, gain in gains.items())
    return Outcome(
        "more prompt tokens a second than over nodes' Ethernet",
        f"of those over nodes' Ethernet {told}", most.value > 1,
        figure=most, needed=1.0,
    )  # fmt: skip
