"""Splitwise's claims: settings they are checked under and what each check runs."""

from collections.abc import Callable

import numpy as np

from engine.core.config import update
from engine.core.events import Move
from engine.core.log import Log
from engine.fleet.config import FleetConfig
from engine.fleet.life import FIRST
from engine.fleet.measure import Served, columns, hourly, served
from engine.fleet.run import REQUESTS
from workbench.hardest import hardest
from workbench.studies.serving._capacity import most
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5  # of a claim at full size
REQUESTS_EACH = 100  # of a draw
MORE, FINER = 400, 6  # … of the claim at equal cost at full size, and steps in which it is told
UNSEEN = 1000  # seed of its first draw: of none of them anything was known when 400 was settled
# Slowdown at the 90th percentile over a machine that serves one request at a time (section 6).
TTFT, TPOT = 3.0, 1.5
# Lengths like those of Azure's conversations, the study's own, and of its code completions: half
# of the prompts have 1,500 tokens and half of the answers 13, as the paper says of them (recalled).
LOADS: dict[str, Changes] = {
    "conversations": {},
    "code": {
        "engine.workload.prompt": {"median": 1500, "spread": 0.8, "longest": 3500},
        "engine.workload.output": {"median": 13, "spread": 0.9, "longest": 500},
    },
}
SLOWEST, FASTEST = 1.0, 8.0  # requests a second of a machine, between which capacity is sought
LEAST = 0.1  # of the slower of two rates: below it none is sought
LASTING = 800  # requests that last for some of their lifetimes on the fastest machines
FLEETS = 12.0, 96.0  # requests a second, between which that of a fleet of four and more is
UNTRIED = 2000  # seed of the first draw that designs are judged by: they were chosen by others
CHUNKED: Changes = {"pools": "together", "router": "least_loaded"}
WHOLE: Changes = {**CHUNKED, "engine.batching": "prefill_first"}  # prompts go before answers
# Two H100 machines that prefill and four A100 machines that decode.
A100, H100 = 17.6 / 8, 38.0 / 8  # $ an hour of a device
MIXED: Changes = {
    "replicas": 6,
    "pools.prefill": 2,
    "pools.decode_device": "a100-sxm-80gb",
    "engine.executor.device": "h100-sxm",
    "price": H100,
    "decode_price": A100,
}
# Fleets that cost a fifth less than five H100 machines (190 $ an hour): new machines alone (152 $),
# both kinds (146 $), old ones alone (141 $). Of each three fleets or ways to part one were tried;
# these were the best in draws by which nothing is judged.
CHEAP: dict[str, Changes] = {
    "4 H100, 3 of them for prompts": {
        "replicas": 4, "pools.prefill": 3, "engine.executor.device": "h100-sxm", "price": H100,
    },
    "2 H100 and 4 A100": MIXED,
    "8 A100, 4 of them for prompts": {"replicas": 8, "pools.prefill": 4},
}  # fmt: skip
NEW: Changes = {**CHUNKED, "replicas": 5, "engine.executor.device": "h100-sxm", "price": H100}
# Of 256 to 8,192 tokens a step 512 serve most on five H100, 2,048 and more in pools.
DEAR: dict[str, Changes] = {
    "5 H100, chunks of 512": {**NEW, "engine.step_tokens": 512},
    "5 H100": NEW,
    "5 H100, whole prompts": {**NEW, **WHOLE},
}
CHEAPER = 0.8  # of the cost
LINK = 25e9  # B/s, one direction of the paper's InfiniBand, a network card to a GPU


def sized(config: FleetConfig) -> FleetConfig:
    """`config` for a check, without events of tokens: 100 requests on two machines, so that few
    last for several of their lifetimes."""
    changes = {"engine.workload.count": REQUESTS_EACH, "tokens": False, "replicas": 2}
    if config.pools.kind == "prefill_decode":
        changes |= {"pools.prefill": 1}
    return update(config, changes)


def seeds(config: FleetConfig, fast: bool) -> list[FleetConfig]:
    """The same requests, and at full size other draws of them."""
    first = config.engine.seed
    return [update(config, {"engine.seed": first + n}) for n in range(1 if fast else SEEDS)]


def alone(config: FleetConfig, run: RunConfig, device: str) -> Served:
    """What requests get of a machine that has one at a time."""
    changes = {
        **CHUNKED,
        "replicas": 1,
        "engine.executor.device": device,
        "engine.workload.rate": 0.02,
        "engine.workload.count": 40,
    }
    one = update(config, changes)
    return served(run(one), one)


def capacity(config: FleetConfig, run: RunConfig, base: Served, steps: int = 4) -> float:
    """Requests a second at which nine in ten keep the paper's slowdowns: of four steps to 14%."""
    return between(config, run, base, SLOWEST * config.replicas, FASTEST * config.replicas, steps)


def between(
    config: FleetConfig, run: RunConfig, base: Served, low: float, high: float, steps: int
) -> float:
    """The same, sought between two rates first and then below them."""

    def keeps(rate: float) -> bool:
        asked = update(config, {"engine.workload.rate": rate})
        found = served(run(asked), asked)
        return (
            found.finished == found.requests
            and found.ttft.p90 <= TTFT * base.ttft.p90
            and found.tpot.p90 <= TPOT * base.tpot.p90
        )

    return most(keeps, low, high, steps, LEAST * low)


def equal_cost(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The same machines in pools and doing both, against chunked and against whole prompts."""
    if fast:
        return at_cost(sized(config), run, fast, 4)
    drawn = {"engine.workload.count": MORE, "engine.seed": config.engine.seed + UNSEEN}
    one = update(sized(config), drawn)
    return hardest(loads(one), lambda each: at_cost(each, run, fast, FINER))


def loads(config: FleetConfig) -> dict[str, FleetConfig]:
    """The same fleet under both loads."""
    return {name: update(config, changes) for name, changes in LOADS.items()}


def at_cost(sized: FleetConfig, run: RunConfig, fast: bool, steps: int) -> Outcome:
    """The same of a fleet and load of that size, capacity told in so many steps."""
    ours, chunked, whole = [], [], []
    for each in seeds(sized, fast):
        base = alone(each, run, "a100-sxm-80gb")
        ours.append(capacity(each, run, base, steps))
        chunked.append(capacity(update(each, CHUNKED), run, base, steps))
        if not fast:
            whole.append(capacity(update(each, WHOLE), run, base, steps))
    best = max((chunked, whole or chunked), key=lambda rates: float(np.mean(rates)))
    ratio = gain(ours, best)
    return Outcome(
        "more requests a second within the slowdowns than the same machines doing both",
        f"{np.mean(ours):.3g}/s in pools, {np.mean(chunked):.3g}/s with chunked prompts"
        + (f", {np.mean(whole):.3g}/s with whole ones" if whole else "")
        + f": {ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}], n = {ratio.n}",
        ratio.low > 1,
        figure=ratio,
        needed=1.0,
    )


def gain(ours: list[float], theirs: list[float]) -> Figure:
    """Ours over theirs of each draw; of one draw a number without an interval."""
    if len(ours) == 1:
        return Figure.exact(ours[0] / theirs[0], "×")
    return Figure.ratio(ours, theirs)


def exposed(log: Log) -> float:
    """Mean seconds between a request's first token and its cache's arrival."""
    first = log.blobs[REQUESTS][FIRST]
    waits = [
        move.time - first[int(move.tag[1:])] for move in log.of(Move) if move.source != "router"
    ]
    return float(np.mean(waits)) if waits else float("inf")


def hidden(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The wait for a cache that is sent layer by layer over that of one sent at the end; at full
    size under both loads, by the one where more of it is left."""
    if fast:
        return wait(config, run, fast)
    return hardest(loads(config), lambda one: wait(one, run, fast), better="less")


def wait(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The same under one load."""
    ours, theirs = [], []
    for each in seeds(sized(config), fast):
        ours.append(exposed(run(each)))
        theirs.append(exposed(run(update(each, {"pools.layer_by_layer": False}))))
    ratio = gain(ours, theirs) if np.isfinite(ours + theirs).all() else Figure.exact(1.0, "×")
    return Outcome(
        "at most half of the wait of a cache that is sent at the end",
        f"{np.mean(ours) * 1e3:.3g} ms after the first token, {np.mean(theirs) * 1e3:.3g} ms where "
        f"it is sent at the end: {ratio.value:.2f}×, n = {ratio.n}",
        ratio.high <= 0.5,
        figure=ratio,
        needed=0.5,
    )


def undisturbed(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """First tokens with answers as they are, and with answers a quarter as long."""
    each = sized(config)
    short = update(each, {"engine.workload.output": {"median": 41}})
    one, other = (columns(run(which))["first"] for which in (each, short))
    worst = float(np.abs(one - other).max())
    return Outcome(
        "first tokens at the same moments, however long answers are",
        f"at most {worst:.3g} s apart over {len(one)} requests",
        worst <= 1e-9,
        figure=Figure.exact(worst, "s"),
        needed=1e-9,
    )


def cheaper(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The design that serves most of those that cost a fifth less than five H100 machines, against
    these doing both: with chunked prompts, or whole ones where that serves more. The small check
    asks the first of each alone, of few requests."""
    if fast:
        return at_less(config, run, fast, fast, REQUESTS_EACH, 3)
    one = update(config, {"engine.seed": config.engine.seed + UNTRIED})
    return hardest(loads(one), lambda each: at_less(each, run, fast, fast, LASTING, 4))


def at_less(
    config: FleetConfig, run: RunConfig, few: bool, one_draw: bool, count: int, steps: int
) -> Outcome:
    """The same of `few` or all designs and rivals, of one draw of `count` requests or of five,
    capacity told in so many steps."""
    one = update(config, {"engine.workload.count": count, "tokens": False})
    designs = CHEAP if config.pools.kind == "prefill_decode" else {"8 A100": {"replicas": 8}}
    rivals = DEAR
    if few:
        designs, rivals = (dict(list(of.items())[:1]) for of in (designs, rivals))
    asked = {name: update(one, changes) for name, changes in {**designs, **rivals}.items()}
    rates: dict[str, list[float]] = {name: [] for name in asked}
    for turn, each in enumerate(seeds(one, one_draw)):
        base = alone(each, run, "a100-sxm-80gb")
        for name, fleet in asked.items():
            drawn = update(fleet, {"engine.seed": config.engine.seed + turn})
            rates[name].append(between(drawn, run, base, *FLEETS, steps))
    ours, theirs = (max(of, key=lambda name: np.mean(rates[name])) for of in (designs, rivals))
    ratio = gain(rates[ours], rates[theirs])
    cost = hourly(asked[ours]) / hourly(asked[theirs])
    told = "; ".join(f"{name} {np.mean(found):.3g}/s" for name, found in rates.items())
    return Outcome(
        f"more requests a second within the slowdowns, at {CHEAPER:.0%} of the cost at most",
        f"{told}: {ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}] at {cost:.0%} of the "
        f"cost, n = {ratio.n}",
        ratio.low > 1 and cost <= CHEAPER,
        figure=ratio,
        needed=1.0,
    )


def over(knob: str) -> Callable[[FleetConfig, float, RunConfig, bool], Outcome]:
    """The gain at equal cost with a knob at some value, of draws of a hundred requests."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        given = int(value) if "workload" in knob else value
        return at_cost(sized(update(config, {knob: given})), run, fast, 4)

    return judged


def cheaper_over(knob: str) -> Callable[[FleetConfig, float, RunConfig, bool], Outcome]:
    """The first design beside five H100 machines in chunks of 512 tokens, of the draws that the
    claim is judged by, with a knob at some value."""

    def judged(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        given = int(value) if "workload" in knob else value
        asked = {knob: given, "engine.seed": config.engine.seed + UNTRIED}
        return at_less(update(config, asked), run, True, fast, LASTING, 4)

    return judged


def wait_over(config: FleetConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
    """`wait` over a link of so many bytes a second."""
    return wait(update(config, {"bandwidth": value}), run, fast)


def at_load(config: FleetConfig, rate: float, run: RunConfig, fast: bool) -> Outcome:
    """At a load: the slowest tenth's time per token in pools over that of chunked prompts."""
    draws = seeds(update(sized(config), {"engine.workload.rate": rate}), fast)
    ours, theirs = (
        [served(run(which), which) for which in (update(each, changes) for each in draws)]
        for changes in ({}, CHUNKED)
    )
    ratio = gain([one.tpot.p90 for one in theirs], [one.tpot.p90 for one in ours])
    later = gain([one.ttft.p90 for one in ours], [one.ttft.p90 for one in theirs])
    return Outcome(
        "answers go on sooner than where machines do both (95% interval)",
        f"{ratio.value:.2f}× as fast at the 90th percentile, first tokens after {later.value:.2f}× "
        "the time",
        ratio.low > 1,
        figure=ratio,
        needed=1.0,
    )
