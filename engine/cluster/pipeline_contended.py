"""A plan on a shared cluster as events: every replica's ranks, what travelled, each link's use.

A link's use is a level `link use` in the link's lane, in bytes per second; the header's `links`
names links with their bandwidths. Where there are many changes each link tells its average over
small pieces of the time, which keeps the bytes.
"""

from typing import Any

import numpy as np

from engine.cluster.contended import Contended
from engine.cluster.pipeline_events import fixed, lane, levels, spans
from engine.core.events import AnyEvent, Level, Mark, Move
from engine.training.pipeline.job import Job
from engine.training.plan.bubble import Bubble, bubble
from engine.training.plan.columns import B, F, I, W

USE = "link use"
MANY = 60_000  # changes told one by one
FEWEST, PIECES = 24, 400  # of the time, where there are more


def header(done: Contended) -> dict[str, Any]:
    """Facts: lanes of all replicas' ranks, links that carried anything, with their bandwidths."""
    found = done.places
    lanes = [lane(rank) for rank in range(found.stages * found.replicas)]
    channels = found.topology.channels
    used = np.flatnonzero(done.carried)
    links = {channels[channel].name: channels[channel].bandwidth for channel in used.tolist()}
    return {"lanes": lanes, "links": links}


def events(job: Job, done: Contended) -> list[AnyEvent]:
    """All of it, not yet in the order of time."""
    found: list[AnyEvent] = []
    for replica, times in enumerate(done.times):
        first = replica * done.places.stages
        found += [*fixed(job, first), *spans(job, times, first=first)]
        found += levels(job, times, first)
    return [*found, *moved(done), *used(done)]


def moved(done: Contended) -> list[AnyEvent]:
    """A move for what travelled between two ranks together."""
    start, stop = done.played.start, done.played.stop
    return [
        Move(
            float(stop[each.messages].max()), lane(each.source), lane(each.target), each.bytes,
            float(start[each.messages].min()), each.tag,
        )
        for each in done.sent
    ]  # fmt: skip


def used(done: Contended) -> list[AnyEvent]:
    """Each link's use from when on."""
    names = [channel.name for channel in done.places.topology.channels]
    rows = done.played.uses
    if len(rows) > MANY:
        rows = averaged(rows, done.end)
    return [Level(time, names[int(channel)], USE, used) for time, channel, used in rows.tolist()]


def averaged(rows: np.ndarray, end: float, most: int = MANY) -> np.ndarray:
    """[changes, 3] of time, channel and use: the mean use of each channel in pieces of the time, as
    small as `most` changes in all allow."""
    ordered = rows[np.argsort(rows[:, 1], kind="stable")]
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered[:, 1])) + 1)
    edges = np.linspace(0.0, end, max(FEWEST, min(PIECES, most // len(parts))) + 1)
    found = []
    for part in parts:
        time, (channel, *_), use = part.T
        carried = np.concatenate([[0.0], np.cumsum(use[:-1] * np.diff(time))])
        at = np.interp(edges, time, carried, left=0.0)  # it is used not before, nor after
        mean = np.append(np.diff(at) / np.diff(edges), 0.0)
        changed = np.append(True, mean[1:] != mean[:-1])
        starts = edges[changed]
        found.append(np.stack([starts, np.full(len(starts), channel), mean[changed]], 1))
    whole = np.concatenate(found)
    return whole[np.argsort(whole[:, 0], kind="stable")]


def words(done: Contended) -> list[Mark]:
    """Which algorithm summed the gradients, and which link was busiest, as sentences."""
    told = []
    if done.algorithm:
        each = ", ".join(f"{kind} {1e3 * took:.3g} ms" for kind, took in done.beside.items())
        text = f"gradients are summed by {done.algorithm}; alone on the cluster: {each}"
        told.append(Mark(0.0, "plan", "all-reduce", text))
    busiest = busy(done)
    if busiest:
        (name, share), *_ = busiest
        text = f"busiest link: {name}, {share:.1%} of its bandwidth over the whole time"
        told.append(Mark(done.end, "plan", "links", text))
    return told


def busy(done: Contended) -> list[tuple[str, float]]:
    """Links by the share of their bandwidth that was used over the whole time, busiest first."""
    channels = done.places.topology.channels
    shares = [
        (channel.name, carried / channel.bandwidth / done.end)
        for channel, carried in zip(channels, done.carried.tolist(), strict=True)
        if carried > 0
    ]
    return sorted(shares, key=lambda pair: -pair[1])


def bubble_of(done: Contended) -> Bubble:
    """The bubble of all replicas' passes."""
    ranks, start, stop = [], [], []
    for replica, times in enumerate(done.times):
        passes = np.isin(times.columns.kind, [F, B, I, W])
        ranks.append(times.columns.rank[passes] + replica * done.places.stages)
        start.append(times.start[passes])
        stop.append(times.stop[passes])
    return bubble(np.concatenate(ranks), np.concatenate(start), np.concatenate(stop))
