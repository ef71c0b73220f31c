"""The driver of a fleet: builds workload and replicas, lets requests arrive, and tells the figures.

The table of requests lies beside the log as the blob `requests` (`engine.fleet.life`), what each
replica did as `replicas`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.run import Live
from engine.fleet.built import Built
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import COLUMNS, DECODE, ENDED, table
from engine.fleet.pooled_cache import PooledCache
from engine.fleet.pools.pools import Role
from engine.fleet.power_row import POWER, Metered, Row
from engine.hardware import device, devices
from engine.hardware.link import Link, link
from engine.inference.executors.costs.modelled_executor import ModelledExecutor
from engine.inference.executors.executor import Executor
from engine.inference.executors.modelled import Modelled
from engine.inference.requests.request import Request
from engine.inference.workloads.workload import Source, Stream

REQUESTS, REPLICAS = "requests", "replicas"
PAID = "paid"  # blob: seconds of each replica, where a fleet is scaled
OF_REPLICA = ("busy", "steps", "prefilled", "decoded", "requests")
POLLED = 512  # things that happen between looks at the inbox


def build(config: FleetConfig) -> Built:
    """Executors, link and facts of a fleet. Raises BadInput."""
    config.check()
    engine = config.engine
    assert isinstance(engine.executor, Modelled)
    made: dict[Role, Executor] = {}

    def executor(number: int) -> Executor:
        role = config.pools.role(number, config.replicas)
        if role not in made:
            assert isinstance(engine.executor, Modelled)
            one = made[role] = config.pools.serving(role, engine.executor).build(engine).executor
            assert isinstance(one, ModelledExecutor)
            one.tells_work = config.tokens
        if not config.power.budget:
            return made[role]
        return metered(made[role], config.pools.device(role))

    def metered(inner: Executor, name: str) -> Executor:
        assert isinstance(engine.executor, Modelled) and isinstance(inner, ModelledExecutor)
        sheet = device(name or engine.executor.device)
        return Metered(inner, config.power, sheet, engine.executor.ranks.count, config.idle_power)

    facts = executor(0).facts
    roles = {config.pools.role(number, config.replicas) for number in range(config.replicas)}
    if facts.bytes_per_state and roles != {"mixed"}:
        raise BadInput(
            f"pools: {facts.model} keeps a recurrent state, which is not sent between replicas; "
            "let every replica prefill and decode (pools=together)"
        )
    if facts.mask:
        raise BadInput(
            f"engine.model: {facts.model} fills in masks, and a fleet counts tokens that come one "
            "after another; take a model that writes so"
        )
    between = _link(config)
    pool = _pooled(config)
    return Built(executor, between, facts.bytes_per_page, facts.layers, facts.context, pool)


def _pooled(config: FleetConfig) -> Callable[[], PooledCache] | None:
    """What makes the cache that all replicas reach, if there is one."""
    asked, engine = config.pools.pooled(), config.engine
    if asked is None:
        return None
    pages, plane, bandwidth, reach = asked
    by, devices = link(plane), max(1, getattr(engine.executor, "own", 1))
    rate = devices * (bandwidth or by.bandwidth)
    return lambda: PooledCache(pages, engine.page_size, by, rate, reach, config.faults)


def _link(config: FleetConfig) -> Link:
    if config.link:
        return link(config.link)
    assert isinstance(config.engine.executor, Modelled)
    sheet = device(config.engine.executor.device)
    return link(sheet.scale_up or sheet.host_link)


def requests_of(config: FleetConfig, built: Built) -> list[Request]:
    """What is asked of the fleet, in order of arrival. Raises BadInput."""
    return list(streamed(config, built).requests)


def streamed(config: FleetConfig, built: Built) -> Stream:
    """The same, made as they come where the workload can."""
    return config.engine.workload.stream(_source(config, built), config.engine.seed)


def _source(config: FleetConfig, built: Built) -> Source:
    facts = built.executor(0).facts
    return Source(facts.vocab, facts.context, config.engine.sampling)


def header(config: FleetConfig, built: Built, requests: int) -> dict[str, Any]:
    """What views need to know."""
    facts, engine = built.executor(0).facts, config.engine
    roles = [config.pools.role(number, config.replicas) for number in range(config.replicas)]
    return {
        **replace(facts, roofs=()).header(),
        "pages": engine.pages,
        "page_size": engine.page_size,
        "host_pages": engine.host_pages,
        "requests": requests,
        "max_running": engine.max_running,
        "fleet": [f"replica {number}" for number in range(config.replicas)],
        "roles": roles,
        "power": _power(config),
        "columns": list(COLUMNS),
        "replica_columns": list(OF_REPLICA),
        "thinned": not config.tokens,
        "record_every": config.record_every,
    }


def _power(config: FleetConfig) -> list[list[float]]:
    """Watts of each replica, idle and at most; nothing where a sheet tells none."""
    found = []
    assert isinstance(config.engine.executor, Modelled)
    own, ranks = config.engine.executor.device, config.engine.executor.ranks.count
    for number in range(config.replicas):
        name = config.pools.device(config.pools.role(number, config.replicas)) or own
        most = (device(name).tdp if name in devices() else None) or 0.0
        found.append([config.idle_power * most * ranks, most * ranks])
    return found if all(most for _, most in found) else []


def run(config: FleetConfig, live: Live) -> None:
    """Serve the engine's workload by the fleet. Raises BadInput."""
    live.report(f"building {config.replicas} replicas", 0, 0)
    built = build(config)
    stream = streamed(config, built)
    fleet = Fleet(config, built, live.emit)
    live.open(config, fleet.timeline.clock, **header(config, built, stream.total))
    row = None
    if config.power.budget:
        row = Row(config, fleet.replicas, fleet.timeline, live.emit)
    serve(fleet, stream.requests, live, stream.total)
    tell(fleet, live)
    if row is not None:
        live.keep(fleet.timeline.now, POWER, np.array(row.told, np.float64).reshape(-1, 4).T)


def serve(fleet: Fleet, requests: Iterable[Request], live: Live, total: int = 0) -> None:
    """Let every request arrive in its time, until all are over; `total` of them, if known."""
    timeline, coming = fleet.timeline, enumerate(requests)

    def come(number: int, request: Request) -> None:
        expect()
        fleet.arrive(request, number)

    def expect() -> None:
        for number, request in coming:
            timeline.at(request.arrival, come, number, request)
            return

    expect()
    done = 0
    while fleet.advance():
        done += 1
        if done % POLLED == 0:
            live.poll(timeline.now)
            live.report("serving requests", fleet.finished + fleet.refused, total)


def tell(fleet: Fleet, live: Live) -> None:
    """The tables beside the log, at the end."""
    now = fleet.timeline.now
    lives = table(fleet.rows)
    live.keep(now, REQUESTS, lives)
    decoding = lives[DECODE]
    given = np.bincount(decoding[decoding >= 0].astype(int), minlength=len(fleet.replicas))
    rows = [
        (each.busy, each.steps, each.prefilled, each.decoded, float(given[each.number]))
        for each in fleet.replicas
    ]
    live.keep(now, REPLICAS, np.array(rows, np.float64).T)
    if fleet.config.scaling.scales:
        last = float(np.nanmax(lives[ENDED], initial=0.0))
        live.keep(now, PAID, np.array(fleet.scaler.seconds(last), np.float64))
