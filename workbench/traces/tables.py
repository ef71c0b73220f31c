"""A device's trace in tables: its breakdown, what its streams waited for, its kernels, and the
kernels of two traces beside one another.

A table is its title, its heads and its rows, all text.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

from engine.core.chrome.breakdown import Breakdown, Kernel
from engine.core.chrome.device_trace import DeviceTrace
from engine.core.chrome.difference import difference
from engine.core.chrome.gaps import INFERRED, waited
from engine.core.chrome.hta import hta_breakdown
from widgets.theme import figure

Table: TypeAlias = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
KERNELS = 15  # told of a trace
WAITS = 12  # streams and causes told
NAME = 60  # characters of a kernel's name


def breakdown_table(found: Sequence[Breakdown]) -> Table:
    """Each device's time."""
    heads = ("device", "time", "computing", "communicating", "of it hidden", "copying", "idle")
    return "Where each device's time goes", heads, [
        (b.device, figure(b.window, "s"), figure(b.share(b.compute), "%"),
         figure(b.share(b.communication), "%"),
         figure(b.overlapped / b.communication, "%") if b.communication else "–",
         figure(b.share(b.memory), "%"), figure(b.share(b.idle), "%"))
        for b in found
    ]  # fmt: skip


def hta_table(trace: DeviceTrace) -> Table:
    """The same device's time as Holistic Trace Analysis counts it, for figures to be compared."""
    heads = ("launched in", "time", "computing", "other work", "idle", "communicating hidden")
    whole, found = hta_breakdown(trace, last_step=True), hta_breakdown(trace)
    both = {"all steps but the last (its default)": found, "all steps": whole}
    if found == whole:  # fewer than two steps are named
        both = {"all": whole}
    return "The same as Holistic Trace Analysis counts", heads, [
        (how, figure(b.window, "s"), figure(b.compute / b.window, "%"),
         figure(b.other / b.window, "%"), figure(b.idle / b.window, "%"),
         figure(b.overlapped / b.communication, "%") if b.communication else "–")
        for how, b in both.items() if b is not None and b.window > 0
    ]  # fmt: skip


def waits_table(trace: DeviceTrace) -> Table:
    """What the gaps of streams waited for, the longest together first."""
    found = waited(trace.gaps())
    whole = sum(each.seconds for each in found)
    heads = ("stream", "waits for", "gaps", "time", "share of all gaps", "longest")
    return "What streams waited for", heads, [
        (trace.spans.lanes[w.lane], _cause(w.cause), f"{w.count:,}", figure(w.seconds, "s"),
         figure(w.seconds / whole if whole else math.nan, "%"), figure(w.longest, "s"))
        for w in found[:WAITS]
    ]  # fmt: skip


def _cause(cause: str) -> str:
    """A cause, and whether it is told from times: no trace says which event was waited for."""
    return f"{cause} (inferred)" if cause in INFERRED else cause


def kernels_table(ran: Sequence[Kernel]) -> Table:
    """The kernels that took the most."""
    whole = sum(kernel.seconds for kernel in ran)
    heads = ("kernel", "category", "count", "time", "share", "mean", "longest")
    return f"Kernels: {min(KERNELS, len(ran))} of {len(ran):,}", heads, [
        (k.name[:NAME], k.category, f"{k.count:,}", figure(k.seconds, "s"),
         figure(k.seconds / whole if whole else math.nan, "%"),
         figure(k.seconds / k.count, "s"), figure(k.longest, "s"))
        for k in ran[:KERNELS]
    ]  # fmt: skip


def tables(trace: DeviceTrace) -> list[Table]:
    """All of one trace."""
    found = trace.breakdowns()
    return [
        breakdown_table(found), *([hta_table(trace)] if len(found) == 1 else []),
        waits_table(trace), kernels_table(trace.kernels()),
    ]  # fmt: skip


def difference_table(first: DeviceTrace, second: DeviceTrace) -> Table:
    """The kernels whose time differs the most between A and B."""
    found = difference(first.kernels(), second.kernels())
    sums = [sum(each.seconds[side] for each in found) for side in (0, 1)]
    more = figure(abs(sums[1] - sums[0]), "s")
    title = f"Kernels of A and B: B {more} {'longer' if sums[1] >= sums[0] else 'shorter'} in all"
    heads = ("kernel", "category", "count A", "count B", "time A", "time B", "B − A")
    return title, heads, [
        (d.name[:NAME], d.category, f"{d.counts[0]:,}", f"{d.counts[1]:,}",
         figure(d.seconds[0], "s"), figure(d.seconds[1], "s"),
         ("+" if d.more >= 0 else "−") + figure(abs(d.more), "s"))
        for d in found[:KERNELS]
    ]  # fmt: skip
