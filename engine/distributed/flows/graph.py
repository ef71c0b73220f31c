"""Tasks, messages and channels as arrays: what the shared clock is given, and what it works on."""

from typing import NamedTuple

import numpy as np

NONE = -1
WAITS, TIMED, FLOWS, OVER = range(4)  # what a task is at


class Graph(NamedTuple):
    """Tasks, ways and channels as arrays; bytes, seconds."""

    seconds: np.ndarray  # [tasks]: what a task takes, or a message's latency
    size: np.ndarray  # [tasks]: bytes of a message, else nought
    way: np.ndarray  # [tasks]: which way a message goes; -1 for none
    first: np.ndarray  # [ways + 1]: where each way's channels begin in `held`
    held: np.ndarray
    capacity: np.ndarray  # [channels]: bytes per second
    waits: np.ndarray  # [tasks]: for how many others it waits
    after_first: np.ndarray  # [tasks + 1]: where those that wait for it begin in `after`
    after: np.ndarray


TASKS = np.dtype([
    ("start", "f8"), ("stop", "f8"), ("seconds", "f8"),
    ("left", "f8"), ("since", "f8"), ("rate", "f8"),  # bytes still to go at `since`
    ("fresh", "f8"),  # the rate being worked out, -1 before
    ("when", "f8"), ("place", "i8"),  # the moment it comes up, and where it is in the heap
    ("phase", "i8"), ("waits", "i8"),
    ("hop", "i8"), ("hops", "i8"),  # its first slot in HOPS, and how many
    ("after", "i8"), ("afters", "i8"), ("seen", "i8"),
])  # fmt: skip
HOPS = np.dtype([("task", "i8"), ("channel", "i8"), ("onward", "i8"), ("back", "i8")])
CHANNELS = np.dtype([
    ("capacity", "f8"), ("room", "f8"), ("used", "f8"),
    ("head", "i8"),  # the first slot in flight, -1
    ("count", "i8"), ("seen", "i8"),  # flows without a rate yet; when it was last looked at
])  # fmt: skip


def tables(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tasks, each hop of each message, and channels, with nothing begun."""
    tasks = np.zeros(len(graph.seconds), TASKS)
    tasks["start"] = tasks["stop"] = np.nan
    tasks["seconds"], tasks["left"], tasks["waits"] = graph.seconds, graph.size, graph.waits
    tasks["after"], tasks["afters"] = graph.after_first[:-1], np.diff(graph.after_first)
    tasks["place"], tasks["phase"] = NONE, WAITS
    moving = np.flatnonzero(graph.way >= 0)
    way = graph.way[moving]
    tasks["hops"][moving] = np.diff(graph.first)[way]
    tasks["hop"] = np.cumsum(tasks["hops"]) - tasks["hops"]
    hops = np.zeros(int(tasks["hops"].sum()), HOPS)
    hops["task"] = np.repeat(np.arange(len(tasks)), tasks["hops"])
    within = np.arange(len(hops)) - tasks["hop"][hops["task"]]
    hops["channel"] = graph.held[graph.first[graph.way[hops["task"]]] + within]
    hops["onward"] = hops["back"] = NONE
    channels = np.zeros(len(graph.capacity), CHANNELS)
    channels["capacity"], channels["head"] = graph.capacity, NONE
    return tasks, hops, channels
