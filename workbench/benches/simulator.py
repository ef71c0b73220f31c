"""What simulating serving costs: requests a second of one core, on one replica and on sixteen.

Lengths are those of Azure's conversations (means 1,155 in and 211 out), arrivals near what the
fleet can serve. At full size also a million requests on one replica and 100,000 on a thousand
(asked within a minute), made as they come, below what these can serve, with what memory the second
half of them adds for each (pages of caches that fill included) and what there is at most. Where
node and `@doublewordai/inference-lab` are installed, that simulator plays as many requests of the
same rate and distributions as the first row in the same run; where not, that is said.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import ANSWER, PROMPT
from engine.fleet.life import table as table_of
from engine.fleet.run import build, requests_of, serve, streamed
from engine.inference.requests.request import Request
from workbench.benches import _inference_lab as inference_lab

NAME = "simulator"
ABOUT = "simulated requests a second of one core, for one replica and sixteen, beside a peer"
LIMIT, MINUTE = 5000.0, 60.0  # requests a second asked for near saturation; seconds for many
RATE = 30.0  # requests a second that one replica is given
QUICK = (1, 800), (16, 1600)  # replicas, and requests in all
FULL = (1, 4000), (16, 8000), (1, 1_000_000), (1000, 100_000)
MANY = 50_000  # requests from which on events of one in a thousand are recorded, below saturation
LOOKS = 20  # times at which memory is looked at, of many requests
BELOW = 0.6  # of RATE, which a replica keeps up with however long it lasts
LENGTHS = {
    "engine.workload.prompt": {"median": 820, "spread": 0.83, "longest": 8000},
    "engine.workload.output": {"median": 165, "spread": 0.7, "longest": 1500},
}


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each fleet, then one for the peer where it is there."""
    rows = []
    for replicas, count in FULL if full else QUICK:
        say(f"{count:,} requests on {replicas:,} {'replicas' if replicas > 1 else 'replica'}")
        rows.append(_measure(replicas, count))
    return [*rows, *_peer(rows[0]["requests"], say)]


def _peer(count: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row of the peer's, where it is there."""
    lacks = inference_lab.missing()
    if lacks:
        say(lacks)
        return []
    say(f"{count:,} requests on one replica by {inference_lab.PACKAGE}")
    lengths = LENGTHS["engine.workload.prompt"], LENGTHS["engine.workload.output"]
    row = inference_lab.measure(count, RATE, *lengths)
    if "error" in row:
        say(row["error"])
        return []
    return [row]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    limit = f"{row['asked']:,.0f}" if row.get("asked") else ""
    steps = f"{row['microseconds']:.0f} µs" if "microseconds" in row else ""
    lengths = f"{row['prompt']:.0f} in, {row['answer']:.0f} out"
    held = f"{row['held']:,.0f} B" if row.get("held") is not None else ""
    peak = f"{row['peak'] / 1e6:,.0f} MB" if "peak" in row else ""
    told = f"{row['per_second']:,.0f}", limit, f"{row['requests']:,}", lengths, steps, held, peak
    return (row["name"], *told)


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    head = (
        "simulated",
        "requests a second",
        "asked",
        "requests",
        "mean lengths",
        "a step",
        "kept of each",
        "memory at most",
    )
    return [head, *map(_cells, rows)]


def _measure(replicas: int, count: int) -> dict[str, Any]:
    many = count >= MANY
    changes = {
        "replicas": replicas,
        "tokens": False,
        "router": "round_robin",
        "engine.workload.count": count,
        "engine.workload.rate": RATE * replicas * (BELOW if many else 1.0),
        "record_every": 1000 if many else 1,
        **LENGTHS,
    }
    config = update(FleetConfig(), changes)
    built = build(config)
    stream, log = streamed(config, built), Log()
    requests: Iterable[Request] = stream.requests if many else list(stream.requests)
    memory: list[float] = []
    _warm(update(config, {"engine.workload.count": 40}))
    fleet = Fleet(config, built, log.emit)
    gc.collect()
    begin = process_time()
    serve(fleet, _noted(requests, count // LOOKS, memory) if many else requests, Live(log))
    seconds = process_time() - begin
    memory.append(_memory())
    told = table_of(fleet.rows)
    steps = sum(each.steps for each in fleet.replicas)
    return {
        "name": f"{replicas} {'replicas' if replicas > 1 else 'replica'}",
        "replicas": replicas,
        "requests": count,
        "seconds": seconds,
        "per_second": count / seconds,
        "prompt": float(told[PROMPT].mean()),
        "answer": float(told[ANSWER].mean()),
        "steps": steps,
        "microseconds": seconds / steps * 1e6,
        "held": (memory[-1] - memory[LOOKS // 2]) / (count / 2) if many else None,
        "busy": max(each.busy for each in fleet.replicas) / fleet.timeline.now,
        "asked": _asked(replicas, count),
        "peak": max(memory),
        "holds": count / seconds >= _asked(replicas, count),
    }


def _asked(replicas: int, count: int) -> float:
    """Requests a second: many on many replicas within a minute, many on one without a limit."""
    if count < MANY:
        return LIMIT
    return count / MINUTE if replicas > 1 else 0.0


def _noted(requests: Iterable[Request], every: int, memory: list[float]) -> Iterator[Request]:
    """The requests; at each whose number is a multiple of `every` the memory in use is noted."""
    for number, request in enumerate(requests):
        if number % every == 0:
            memory.append(_memory())
        yield request


def _memory() -> float:
    """Bytes of memory that this process has now; where no file says so, that it had at most."""
    import resource

    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return float(int(pages) * resource.getpagesize())


def _warm(config: FleetConfig) -> None:
    """What is compiled or looked up once is no cost of a request."""
    built = build(config)
    log = Log()
    serve(Fleet(config, built, log.emit), requests_of(config, built), Live(log))
