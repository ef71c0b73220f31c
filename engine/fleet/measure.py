"""Figures of a fleet's run, from its log alone: latencies, goodput, hit rate, power and cost."""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.measure import Latency, latency
from engine.fleet.config import FleetConfig
from engine.fleet.life import COLUMNS, FINISHED, REFUSED
from engine.fleet.run import OF_REPLICA, PAID, REPLICAS, REQUESTS
from engine.hardware import device
from engine.hardware.power import watts
from engine.inference.executors.modelled import Modelled


@dataclass(frozen=True)
class Served:
    """What a fleet's run came to. Seconds, watts and dollars; rates a second."""

    requests: int
    finished: int
    refused: int
    tokens: int  # of answers
    seconds: float  # from the first arrival to the last end
    ttft: Latency
    tpot: Latency
    end_to_end: Latency
    queueing: Latency
    good: float  # share of requests that kept the objective
    goodput: float  # of them, a second
    late: int  # finished, but the first token came after the objective
    late_queueing: float  # share of those requests' time to first token before they began to run
    slow: int  # finished, but the next tokens took longer than the objective
    tokens_per_second: float
    hit_rate: float  # of prompt tokens, those found in a cache
    utilisation: tuple[float, ...]  # of each replica: share of the seconds with a step under way
    watts: float  # of all devices, mean
    cost: float  # of a million answer tokens; 0 where no price is told
    retries: int
    replicas: float  # paid for, in the mean
    balance: float  # most prompt tokens that a replica computed over the mean


def columns(log: Log) -> dict[str, np.ndarray]:
    """The table of requests by column. Raises BadInput for a log of something else."""
    if REQUESTS not in log.blobs:
        raise BadInput("this run holds no table of requests: it is no finished run of a fleet")
    return dict(zip(COLUMNS, log.blobs[REQUESTS], strict=True))


def served(log: Log, config: FleetConfig) -> Served:
    """The figures of a finished run under `config`."""
    told = columns(log)
    per = dict(zip(OF_REPLICA, log.blobs[REPLICAS], strict=True))
    done = told["state"] == FINISHED
    count = len(done)
    answer, arrival = told["answer"], told["arrival"]
    ttft, whole = told["first"] - arrival, told["ended"] - arrival
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = np.where(answer > 1, (told["ended"] - told["first"]) / (answer - 1), np.nan)
    kept = done & (ttft <= config.objective.ttft) & ~(tpot > config.objective.tpot)
    late = done & (ttft > config.objective.ttft)
    queued = told["started"] - arrival
    seconds = max(float(np.nanmax(told["ended"], initial=0.0) - arrival.min(initial=0.0)), 1e-12)
    tokens = int(answer[done].sum())
    busy = per["busy"] / seconds
    paid = np.ones(config.replicas)  # share of the seconds that each is paid for
    if PAID in log.blobs:
        paid = np.clip(log.blobs[PAID] / seconds, 0.0, 1.0)
    prompts = float(told["prompt"][done].sum())
    computed = float(np.minimum(told["computed"], told["prompt"])[done].sum())
    return Served(
        requests=count,
        finished=int(done.sum()),
        refused=int((told["state"] == REFUSED).sum()),
        tokens=tokens,
        seconds=seconds,
        ttft=latency(ttft[done].tolist()),
        tpot=latency(tpot[done & ~np.isnan(tpot)].tolist()),
        end_to_end=latency(whole[done].tolist()),
        queueing=latency(queued[done].tolist()),
        good=float(kept.sum()) / max(1, count),
        goodput=float(kept.sum()) / seconds,
        late=int(late.sum()),
        late_queueing=float(queued[late].sum() / max(ttft[late].sum(), 1e-12)),
        slow=int((done & (tpot > config.objective.tpot)).sum()),
        tokens_per_second=tokens / seconds,
        hit_rate=1 - computed / prompts if prompts else 0.0,
        utilisation=tuple(busy.tolist()),
        watts=_watts(config, busy, paid),
        cost=_cost(config, seconds, tokens, paid),
        replicas=float(paid.sum()),
        retries=int(told["retries"].sum()),
        balance=float(per["prefilled"].max() / max(per["prefilled"].mean(), 1e-12)),
    )


def _devices(config: FleetConfig) -> list[tuple[str, bool]]:
    """Of each replica: its device, and whether it decodes alone."""
    assert isinstance(config.engine.executor, Modelled)
    own, found = config.engine.executor.device, []
    for number in range(config.replicas):
        role = config.pools.role(number, config.replicas)
        found.append((config.pools.device(role) or own, role == "decode"))
    return found


def _ranks(config: FleetConfig) -> int:
    assert isinstance(config.engine.executor, Modelled)
    return config.engine.executor.ranks.count


def _watts(config: FleetConfig, busy: np.ndarray, paid: np.ndarray) -> float:
    """Mean power of all devices; one that is off, or whose sheet tells none, counts nothing."""
    total = 0.0
    each = zip(_devices(config), busy.tolist(), paid.tolist(), strict=True)
    for (name, _), share, on in each:
        sheet = device(name)
        if sheet.tdp is not None:
            idle = config.idle_power * sheet.tdp
            total += watts(sheet, share, idle) - (1 - on) * idle
    return total * _ranks(config)


def hourly(config: FleetConfig, paid: np.ndarray | None = None) -> float:
    """Dollars for an hour of all devices; 0 where no price is told. `paid`: for which share of it
    each replica is there (none: all of it)."""
    shares = np.ones(config.replicas) if paid is None else paid
    hour = sum(
        ((config.decode_price or config.price) if decodes else config.price) * share
        for (_, decodes), share in zip(_devices(config), shares.tolist(), strict=True)
    )
    return hour * _ranks(config)


def _cost(config: FleetConfig, seconds: float, tokens: int, paid: np.ndarray) -> float:
    """Dollars for a million tokens of answers."""
    return hourly(config, paid) * seconds / 3600 / tokens * 1e6 if tokens else 0.0
