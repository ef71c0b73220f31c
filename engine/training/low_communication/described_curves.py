"""What a method's traffic means for models and networks that are only described here.

Compute utilisation by bandwidth, and the time of one synchronisation by number of replicas. All of
it is modelled, and its curves say so.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from engine.core.paths import dataset
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.toml import load
from engine.distributed.collectives.halving_doubling import HalvingDoubling
from engine.distributed.collectives.tree import Tree
from engine.hardware.link import Link
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.methods.noloco import NoLoCo
from engine.training.low_communication.methods.synchronous import Synchronous
from engine.training.low_communication.sync_time import Net, by_collective, by_pairs

UTILISATION = Plot(
    "compute utilisation", "bandwidth of a replica (B/s)", "share of time computing", log_x=True
)
SYNC = Plot("time of one synchronisation", "replicas", "time (s)", log_x=True, log_y=True)
PLOTS = (UTILISATION, SYNC)
BANDWIDTHS = np.geomspace(1e6, 1e12, 61)  # B/s
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)

BESIDE = "synchronous AdamW"  # what every method is compared with, measured and modelled


def utilisation(traffic: Traffic, step: float, link: Link) -> float:
    """Share of time that is not spent waiting, for steps of `step` seconds."""
    busy = traffic.messages * link.latency + traffic.bytes / link.bandwidth
    exposed = max(0.0, busy - traffic.hidden * step)
    # Exchanges share one port: they cannot overlap one another for ever.
    port = (traffic.bytes + traffic.beside) / link.bandwidth
    queued = max(0.0, port - traffic.every * step)
    return traffic.every * step / (traffic.every * step + max(exposed, queued))


def needed_bandwidth(traffic: Traffic, step: float, latency: float, share: float) -> float:
    """Least bandwidth in B/s at which `share` of the time is spent computing; inf for none."""
    low, high = 1.0, 1e18
    if utilisation(traffic, step, Link(name="most", bandwidth=high, latency=latency)) < share:
        return float("inf")
    for _ in range(80):
        middle = (low * high) ** 0.5
        link = Link(name="asked", bandwidth=middle, latency=latency)
        low, high = (low, middle) if utilisation(traffic, step, link) >= share else (middle, high)
    return high


def described(name: str) -> dict[str, float]:
    """A described model or network of datasets/low_communication.toml."""
    table = load(dataset("low_communication.toml"))[name]
    return {key: float(value) for key, value in table.items() if not isinstance(value, (str, dict))}


def internet_of(replicas: int, **changes: Any) -> Net:
    """The described internet between so many replicas, some of them slow; `changes` of a Net."""
    facts = described("internet")
    link = Link(name="internet", bandwidth=facts["bandwidth"], latency=facts["latency"])
    return Net(**{
        "link": link, "replicas": replicas, "jitter": facts["jitter"], "stragglers": True, **changes
    })  # fmt: skip


def described_curves(method: Method, live: Live) -> None:
    """Emit both panels for `method` at the run's opening."""
    setting, internet = described("training"), described("internet")
    parameters, replicas = int(setting["parameters"]), int(setting["replicas"])
    for each in {shown.kind: shown for shown in (Synchronous(), method)}.values():
        traffic = each.traffic(parameters, replicas)
        shares = [
            utilisation(traffic, setting["step"],
                        Link(name="x", bandwidth=float(b), latency=internet["latency"]))
            for b in BANDWIDTHS
        ]  # fmt: skip
        points = np.stack([BANDWIDTHS, np.array(shares)])
        name = each.kind if each is method else BESIDE
        live.curve(0.0, UTILISATION, name, points, modelled=True)
    for name, took in sync_times(parameters, replicas, live.seed).items():
        live.curve(0.0, SYNC, name, list(zip(COUNTS, took, strict=True)), modelled=True)


@cache
def sync_times(parameters: int, replicas: int, seed: int) -> Mapping[str, list[float]]:
    """Seconds of one synchronisation by number of replicas, by algorithm; the same of every run
    with this seed, whatever its method."""
    size, swapped = 4.0 * parameters, NoLoCo().traffic(parameters, replicas)
    nets = [internet_of(ranks) for ranks in COUNTS]
    return {
        "all-reduce by tree": [by_collective(Tree(), net, size, seed) for net in nets],
        "all-reduce by halving and doubling": [
            by_collective(HalvingDoubling(), net, size, seed) for net in nets
        ],
        "random pairs": [by_pairs(net, swapped.bytes + swapped.beside, seed) for net in nets],
    }
