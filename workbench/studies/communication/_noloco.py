"""NoLoCo's claims: what each check runs, and the settings of its maps."""

from collections import defaultdict
from math import sqrt
from typing import Any

from engine.core.config import update
from engine.core.events import Move
from engine.core.tags import facts
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.described_curves import described, internet_of
from engine.training.low_communication.methods.noloco import NoLoCo
from engine.training.low_communication.sync_time import Net, by_best, by_pairs
from workbench.regime import At
from workbench.studies.communication._low_communication import (
    BRIEF,
    excess,
    interval,
    losses,
    run,
    trained,
)
from workbench.study import (
    Changes,
    Figure,
    Outcome,
    RunConfig,
)

MANY, DRAWS, FEW_TRIALS = 256, 5, 16  # replicas of the described internet; draws of its times
EVEN = 1.0  # a pair, changes and outer weights, moves the bytes of an all-reduce
SLOW: Changes = {"executor": "modelled"}
ALONE: Changes = {"method": "noloco", "method.group": 1, "method.fault": "none"}


def no_collective(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every message counted: in a round a replica exchanges with one other, and both ways."""
    met: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    pairs: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for move in run(config, run_config, BRIEF).of(Move):
        task = facts(move.tag)["task"]
        met[task].setdefault(move.source, set()).add(move.target)
        pairs[move.source, move.target] += move.bytes
    most = max((len(to) for by in met.values() for to in by.values()), default=0)
    even = all(size == pairs.get((b, a)) for (a, b), size in pairs.items())
    partners = len({frozenset(pair) for pair in pairs})
    return Outcome(
        "one partner a round and replica, the same bytes both ways, more than one pairing in all",
        f"{most} at most of {config.replicas - 1} others; {'the same' if even else 'other'} bytes "
        f"back; {partners} pairs met in {len(met)} exchanges",
        most == 1 and even and partners > config.replicas // 2,
        figure=Figure.exact(most, "partners"),
        needed=1.0,
    )


def converges(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Held-out loss of the replicas' own weights, against DiLoCo's of the same H; what replicas
    come to that never meet is told."""
    every = getattr(config.method, "every", 8)
    ours = losses(config, run_config, {}, fast)
    reduced = losses(config, run_config, {"method": "diloco", "method.every": every}, fast)
    same = update(config, ALONE) == config
    alone = excess(ours, ours if same else losses(config, run_config, ALONE, fast))
    figure = excess(ours, reduced)
    return Outcome(
        "held-out loss below DiLoCo's (95% interval)",
        f"against DiLoCo {interval(figure)}; against never meeting {interval(alone)}",
        figure.high < 0,
        figure=figure,
        needed=0.0,
    )


def spread_bounded(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How far replicas are apart at the end, over those that never met."""
    apart = [
        [metrics.spread(log) for log in trained(config, run_config, changes, fast)]
        for changes in ({}, {} if update(config, ALONE) == config else ALONE)
    ]
    figure = Figure.mean([ours / alone for ours, alone in zip(*apart, strict=True)], unit="×")
    # Two halves that each agree and never meet: of independent drifts this share is left.
    halves = sqrt((config.replicas - 2) / (2 * (config.replicas - 1)))
    return Outcome(
        f"less than {halves:.2f} of the distance of replicas that never meet: what two halves keep "
        "that never meet one another",
        f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f}, {figure.n} seeds)",
        figure.high < halves,
        figure=figure,
        needed=halves,
    )


def sync_over(config: LowCommunicationConfig, net: Net) -> Outcome:
    """Seconds that a replica waits, of the fastest all-reduce over those of pairs."""
    count = int(described("training")["parameters"])
    best, took = zip(*(by_best(net, 4.0 * count, draw) for draw in range(DRAWS)), strict=True)
    method = config.method
    pairs, alone = took, took
    if isinstance(method, NoLoCo):
        barrier, sent = method.fault == "barrier", method.traffic(count, net.replicas)
        pairs, alone = (
            tuple(by_pairs(net, size, draw, barrier) for draw in range(DRAWS))
            for size in (sent.bytes + sent.beside, sent.bytes)
        )
    figure, beside = Figure.ratio(took, pairs), Figure.ratio(took, alone)
    return Outcome(
        "faster than the best all-reduce, which moves as many bytes: outer weights are counted",
        f"{sum(pairs) / DRAWS:.0f} s against {sum(took) / DRAWS:.0f} s of {best[0]}: "
        f"{figure.value:.1f} times ({figure.low:.1f} to {figure.high:.1f}); {beside.value:.1f} "
        "where the outer weights travel beside the inner steps",
        figure.low > EVEN,
        figure=figure,
        needed=EVEN,
    )


def sync_time(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """256 replicas over a described internet on which some are slow at each synchronisation."""
    return sync_over(config, internet_of(MANY, **({"trials": FEW_TRIALS} if fast else {})))


def sync_at(name: str, **changes: Any) -> At:
    """The same with another number of replicas, or other jitter."""

    def judged(config: LowCommunicationConfig, value: float, run_config: RunConfig,
               fast: bool) -> Outcome:  # fmt: skip
        turned = {"replicas": MANY, "trials": FEW_TRIALS, **changes, name: value}
        return sync_over(config, internet_of(**{**turned, "replicas": int(turned["replicas"])}))

    return judged
