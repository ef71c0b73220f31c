"""The clock that flows share, compiled: rates change only where a flow that began or ended has
neighbours, directly or through others.

Takes a `Graph` of tasks; gives when each begins and ends. Between two events every flow moves at
its max-min fair rate, so the clock is exact for fluid flows. `reference` is its plain form.
"""

from typing import Any

import numpy as np

from engine.distributed.flows.graph import FLOWS, NONE, OVER, TIMED, Graph, tables
from engine.kernels.compiled import checked, inner

SAME = 1e-12  # relative: moments and shares that differ by rounding only


def play(graph: Graph, uses: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`start` and `stop` [tasks] in seconds, NaN for tasks that never could; with `uses` every
    change of a channel's use: [changes, 3] of time, channel and bytes per second."""
    tasks, hops, channels = tables(graph)
    room = np.zeros((2, len(tasks)), np.int64)
    told = _run(tasks, hops, channels, graph.after, room, np.zeros(len(channels), np.int64), uses)
    return tasks["start"].copy(), tasks["stop"].copy(), told


@inner
def _rise(tasks: Any, heap: Any, at: int) -> int:
    """Move a task towards the heap's top while it comes before the one above."""
    task = heap[at]
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        if tasks[other].when <= tasks[task].when:
            break
        heap[at] = other
        tasks[other].place = at
        at = above
    heap[at] = task
    tasks[task].place = at
    return at


@inner
def _sink(tasks: Any, heap: Any, at: int, count: int) -> None:
    """Move a task down while one below comes before it."""
    task = heap[at]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and tasks[heap[below + 1]].when < tasks[heap[below]].when:
            below += 1
        other = heap[below]
        if tasks[task].when <= tasks[other].when:
            break
        heap[at] = other
        tasks[other].place = at
        at = below
    heap[at] = task
    tasks[task].place = at


@inner
def _set(tasks: Any, heap: Any, task: int, moment: float, count: int) -> int:
    """Let a task come up at `moment`; how many are in the heap then."""
    tasks[task].when = moment
    if tasks[task].place < 0:
        heap[count] = task
        tasks[task].place = count
        count += 1
    _sink(tasks, heap, _rise(tasks, heap, tasks[task].place), count)
    return count


@inner
def _pop(tasks: Any, heap: Any, count: int) -> int:
    """Take the first task out of the heap."""
    task = heap[0]
    tasks[task].place = NONE
    if count > 1:
        heap[0] = heap[count - 1]
        _sink(tasks, heap, 0, count - 1)
    return task


@inner
def _mark(channels: Any, near: Any, channel: int, turn: int, changed: int) -> int:
    """Note that a channel is to be looked at in this turn."""
    if channels[channel].seen != turn:
        channels[channel].seen = turn
        near[changed] = channel
        changed += 1
    return changed


@inner
def _enter(hops: Any, channels: Any, here: int) -> None:
    """Put one hop of a message into the list of its channel."""
    channel = hops[here].channel
    after = channels[channel].head
    hops[here].onward = after
    hops[here].back = NONE
    if after >= 0:
        hops[after].back = here
    channels[channel].head = here


@inner
def _leave(hops: Any, channels: Any, here: int) -> None:
    """Take it out again."""
    before, after = hops[here].back, hops[here].onward
    if before >= 0:
        hops[before].onward = after
    else:
        channels[hops[here].channel].head = after
    if after >= 0:
        hops[after].back = before


@inner
def _neighbours(
    tasks: Any, hops: Any, channels: Any, near: Any, flows: Any, turn: int, changed: int
) -> tuple[int, int]:
    """Gather all flows and channels joined to those that changed, directly or through others."""
    place, count = 0, 0
    while place < changed:
        channel = near[place]
        place += 1
        channels[channel].room = channels[channel].capacity
        channels[channel].count = 0
        here = channels[channel].head
        while here >= 0:
            task = hops[here].task
            channels[channel].count += 1
            if tasks[task].seen != turn:
                tasks[task].seen = turn
                tasks[task].fresh = -1.0
                flows[count] = task
                count += 1
                for at in range(tasks[task].hop, tasks[task].hop + tasks[task].hops):
                    changed = _mark(channels, near, hops[at].channel, turn, changed)
            here = hops[here].onward
    return count, changed


@inner
def _settle(tasks: Any, hops: Any, channels: Any, channel: int, rate: float) -> None:
    """Give all flows of a full channel that have none yet this rate, and take it off their ways."""
    here = channels[channel].head
    while here >= 0:
        task = hops[here].task
        if tasks[task].fresh < 0:
            tasks[task].fresh = rate
            for at in range(tasks[task].hop, tasks[task].hop + tasks[task].hops):
                other = hops[at].channel
                channels[other].room = max(0.0, channels[other].room - rate)
                channels[other].count -= 1
        here = hops[here].onward


@inner
def _share(tasks: Any, hops: Any, channels: Any, near: Any, count: int) -> None:
    """Fill `fresh` with the fair rates: the fullest channel is shared first."""
    while True:
        least = np.inf
        for place in range(count):
            channel = near[place]
            if channels[channel].count > 0:
                least = min(least, channels[channel].room / channels[channel].count)
        if least == np.inf:
            return
        for place in range(count):
            channel = near[place]
            flows = channels[channel].count
            if flows > 0 and channels[channel].room <= least * (1 + SAME) * flows:
                _settle(tasks, hops, channels, channel, least)


@inner
def _rates(tasks: Any, heap: Any, flows: Any, among: int, now: float, count: int) -> int:
    """Give flows their fresh rates, and their ends new places among what is to come."""
    for place in range(among):
        task = flows[place]
        rate, fresh = tasks[task].rate, tasks[task].fresh
        if abs(fresh - rate) > SAME * fresh:
            gone = rate * (now - tasks[task].since)
            left = max(0.0, tasks[task].left - gone)
            tasks[task].left = left
            tasks[task].since = now
            tasks[task].rate = fresh
            count = _set(tasks, heap, task, now + left / fresh, count)
    return count


@inner
def _tell(
    tasks: Any, hops: Any, channels: Any, near: Any, among: int, now: float, told: Any, lines: int
) -> Any:
    """Note what of each channel is used from now on, where that has changed."""
    for place in range(among):
        channel, used = near[place], 0.0
        here = channels[channel].head
        while here >= 0:
            used += tasks[hops[here].task].rate
            here = hops[here].onward
        if abs(used - channels[channel].used) > 1e-9 * channels[channel].capacity:
            channels[channel].used = used
            if lines == len(told):
                more = np.empty((2 * len(told), 3))
                for line in range(lines):  # an array given to a slice takes seconds to compile
                    for column in range(3):
                        more[line, column] = told[line, column]
                told = more
            told[lines, 0], told[lines, 1], told[lines, 2] = now, channel, used
            lines += 1
    return told, lines


@inner
def _end(tasks: Any, after: Any, heap: Any, task: int, now: float, count: int) -> int:
    """A task is over: those that waited for it alone begin."""
    tasks[task].phase = OVER
    tasks[task].stop = now
    for at in range(tasks[task].after, tasks[task].after + tasks[task].afters):
        other = after[at]
        tasks[other].waits -= 1
        if tasks[other].waits == 0:
            count = _begin(tasks, heap, other, now, count)
    return count


@inner
def _begin(tasks: Any, heap: Any, task: int, now: float, count: int) -> int:
    tasks[task].phase = TIMED
    tasks[task].start = now
    return _set(tasks, heap, task, now + tasks[task].seconds, count)


@inner
def _flow(
    tasks: Any, hops: Any, channels: Any, near: Any, task: int, turn: int, changed: int
) -> int:
    """A message's bytes begin to flow, or are over: its channels are marked."""
    enters = tasks[task].phase == TIMED
    for here in range(tasks[task].hop, tasks[task].hop + tasks[task].hops):
        if enters:
            _enter(hops, channels, here)
        else:
            _leave(hops, channels, here)
        changed = _mark(channels, near, hops[here].channel, turn, changed)
    return changed


@checked
def _run(tasks: Any, hops: Any, channels: Any, after: Any, room: Any, near: Any, uses: bool) -> Any:
    heap, flows = room[0], room[1]
    count, turn, lines, told = 0, 0, 0, np.empty((16, 3))
    for task in range(len(tasks)):
        if tasks[task].waits == 0:
            count = _begin(tasks, heap, task, 0.0, count)
    while count > 0:
        now = tasks[heap[0]].when
        turn += 1
        changed = 0
        while count > 0 and tasks[heap[0]].when <= now * (1 + SAME):
            task = _pop(tasks, heap, count)
            count -= 1
            if tasks[task].hops > 0:
                changed = _flow(tasks, hops, channels, near, task, turn, changed)
            if tasks[task].hops > 0 and tasks[task].phase == TIMED:
                tasks[task].phase = FLOWS
                tasks[task].since = now
            else:
                count = _end(tasks, after, heap, task, tasks[task].when, count)
        if changed > 0:
            among, changed = _neighbours(tasks, hops, channels, near, flows, turn, changed)
            _share(tasks, hops, channels, near, changed)
            count = _rates(tasks, heap, flows, among, now, count)
            if uses:
                told, lines = _tell(tasks, hops, channels, near, changed, now, told, lines)
    return told[:lines].copy()
