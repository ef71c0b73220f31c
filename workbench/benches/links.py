"""The clock on which transfers share links: messages per second, beside its plain form.

An event is a task's beginning or end. Cases are collectives on described clusters, from flows that
hardly meet to hundreds through one port, and a pipeline's replicas with their gradients' sum.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from engine.cluster import contended
from engine.core.config import update
from engine.distributed.flows import reference
from engine.distributed.flows.collective_work import algorithm, carry
from engine.distributed.flows.work import Work
from engine.hardware.cluster import cluster
from engine.training.pipeline.config import PipelineConfig

NAME = "links"
ABOUT = "messages that share links of a described cluster: events per second, beside the plain form"
PLAIN = 600  # tasks that the plain form is asked for


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row a case; medians of several rounds that take turns."""
    cases = {
        "ring, 64 devices, own adapters": lambda: _collective("selene", "ring", 64),
        "ring, 64 devices, two adapters a node": lambda: _collective("ethernet-pods", "ring", 64),
        "hierarchical, 128 devices": lambda: _collective("selene", "hierarchical", 128),
        "star, 256 devices": lambda: _collective("selene", "star", 256),
        "two phases, 64 devices": lambda: _collective("selene", "two_phase", 64),
        "ring, 8 devices": lambda: _collective("ethernet-pods", "ring", 8),
    }
    works = {name: make() for name, make in cases.items()}
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(9 if full else 3):
        say(f"round {turn + 1}")
        for name, work in works.items():
            begun = perf_counter()
            work.played()
            found[name].append(perf_counter() - begun)
    rows = [_row(name, works[name], took) for name, took in found.items()]
    return [*rows, _pipeline(full)]


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows."""
    head = ("what", "tasks", "time", "events per second", "beside the plain form")
    return [head, *(
        (row["name"], f"{row['tasks']:,}", f"{1e3 * row['seconds']:.1f} ms",
         f"{row['events_per_second']:,.0f}", f"{row['ratio']:.0f}×" if row["ratio"] else "")
        for row in rows
    )]  # fmt: skip


def _collective(name: str, kind: str, ranks: int) -> Work:
    here = cluster(name)
    work = Work(here.topology(ranks))
    begun = work.compute(0.0)
    node = min(ranks, here.node)
    plan = algorithm(kind).transfers(ranks, node)
    carry(work, plan, range(ranks), 1e8, [begun] * ranks)
    return work


def _row(name: str, work: Work, took: list[float]) -> dict[str, Any]:
    seconds = float(np.median(took[1:]))
    ratio = 0.0
    if len(work) <= PLAIN:
        begun = perf_counter()
        reference.play(work.graph())
        ratio = (perf_counter() - begun) / seconds
    events = 2 * len(work) / seconds
    return {"name": name, "tasks": len(work), "seconds": seconds, "events_per_second": events,
            "ratio": ratio}  # fmt: skip


def _pipeline(full: bool) -> dict[str, Any]:
    """From a config to every moment: the graph is built anew each time."""
    turned = {
        "cluster.name": "selene", "cluster.replicas": 16, "ranks": 8, "microbatches": 32,
        "passes.boundary": 1e8, "cluster.all_reduce": "hierarchical",
    }  # fmt: skip
    config = update(PipelineConfig(), turned)
    job, took, tasks = config.job(), [], 0
    for _ in range(5 if full else 3):
        begun = perf_counter()
        done = contended.play(config, job)
        took.append(perf_counter() - begun)
        tasks = len(done.played.start)
    seconds = float(np.median(took[1:]))
    return {"name": "16 replicas of 8 stages, 32 microbatches: config to moments", "tasks": tasks,
            "seconds": seconds, "events_per_second": 2 * tasks / seconds, "ratio": 0.0}  # fmt: skip
