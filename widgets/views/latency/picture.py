"""The picture of latencies: for each kind, which share of the requests was how quick or quicker."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from widgets.chart.picture import POINTS, Dot, Limit, Line, Picture, Plot, Reading, ceiling
from widgets.theme import figure
from widgets.views.latency.fold import KINDS

TITLES = {
    "time_to_first_token": ("Time to first token", "first token"),
    "time_per_output_token": ("Time per output token", "per token"),
    "end_to_end": ("End to end", "end to end"),
}
QUANTILES = (0.5, 0.9, 0.99)
LIMIT = "limit_"  # of a window: what a person promises of each kind, in seconds


def prepare(frame: dict[str, Any]) -> dict[str, Any]:
    """Values in rising order with when they were known, once for every new frame."""
    ready = dict(frame)
    for kind in KINDS:
        values, known, owners = frame[kind]
        order = np.argsort(values, kind="stable")
        ready[kind] = (values[order], known[order], [owners[i] for i in order])
    return ready


def picture(
    ready: dict[str, Any], cursor: float, chosen: str, promises: Mapping[str, float] | None = None
) -> Picture:
    """Quantile curves of what was known at the cursor, axes those of the whole run.

    `promises`: kind -> seconds, drawn as a line with the share of requests that kept it; all of
    them together give the goodput: requests a second that finished within each.
    """
    if any(bool(counts[-1] > 0) for _, counts in ready["buckets"].values()):
        return _bucketed(ready["buckets"])
    if not any(len(ready[kind][0]) for kind in KINDS):
        return Picture(empty=ready["empty"])
    plots, figures = [], []
    for place, kind in enumerate(KINDS):
        values, known, owners = ready[kind]
        seen = known <= cursor + 1e-12
        now = values[seen]
        promise = (promises or {}).get(kind)
        right = _right(values, promise)
        title, short = TITLES[kind]
        own = tuple(owner for owner, s in zip(owners, seen.tolist(), strict=True) if s)
        plots.append(_plot(title, place, now, own, chosen, right, promise, ready["clock"]))
        if len(values):
            figures.append(_p99(short, now, values))
    ends = ready["end_to_end"][1]
    done = int((ends <= cursor + 1e-12).sum())
    if promises:
        kept = _kept(ready, cursor, promises)
        since = min(cursor, ready["stop"])
        rate = figure(kept / since if since > 0 else float("nan"), "/s")
        figures.append((rate, f"goodput, {figure(kept)} of {figure(done)} within each limit"))
    else:
        figures.append((figure(done), f"finished, {figure(len(ends))} in all"))
    return Picture(tuple(plots), tuple(figures), across=True)


def _kept(ready: dict[str, Any], cursor: float, promises: Mapping[str, float]) -> int:
    """How many requests that finished by the cursor were within each promise. One of a single
    token has no time per output token: it keeps that."""
    done = _by_owner(ready["end_to_end"], cursor)
    for kind, promise in promises.items():
        of = _by_owner(ready[kind], cursor)
        done = {owner: 0.0 for owner in done if of.get(owner, 0.0) <= promise}
    return len(done)


def _by_owner(columns: tuple[np.ndarray, np.ndarray, list[str]], cursor: float) -> dict[str, float]:
    values, known, owners = columns
    return {
        owner: value
        for owner, value, at in zip(owners, values.tolist(), known.tolist(), strict=True)
        if at <= cursor + 1e-12
    }


def _p99(short: str, now: np.ndarray, values: np.ndarray) -> tuple[str, str]:
    """The slowest hundredth of what is known at the cursor and, beside it, of the whole run."""
    here, whole = (
        figure(float(np.quantile(each, 0.99)), "s") if len(each) else "–" for each in (now, values)
    )
    return here, f"{short}, p99, {whole} at the end"


def _bucketed(buckets: Mapping[str, np.ndarray]) -> Picture:
    """Curves through the bounds that a watched server counts by: exact there, straight between."""
    plots, figures = [], []
    for place, kind in enumerate(KINDS):
        if kind not in buckets or not buckets[kind][1][-1] > 0:
            continue
        bounds, counts = buckets[kind]
        title, short = TITLES[kind]
        share = counts / counts[-1]
        whole = int(np.searchsorted(share, 1.0))  # the first bound that all are within
        finite = bounds[: min(whole + 1, int(np.isfinite(bounds).sum()))]
        right = ceiling(float(finite[-1])) if len(finite) else 1.0
        x, y = np.append(0.0, finite), np.append(0.0, share[: len(finite)])
        within = [(q, float(bounds[np.searchsorted(share, q)])) for q in QUANTILES]
        readings = tuple(
            Reading(min(bound, right), q, f"p{q * 100:.0f}", _at_most(bound, finite))
            for q, bound in within
        )
        line = Line(title, x, y, (0, 2, 3)[place])
        plots.append(Plot(title, (line,), "%", "s", right, 1.0, readings=readings, timed=False))
        figures.append((_at_most(within[-1][1], finite), f"{short}, p99"))
    if "end_to_end" in buckets:
        figures.append((figure(int(buckets["end_to_end"][1][-1])), "finished"))
    return Picture(tuple(plots), tuple(figures), across=True)


def _at_most(bound: float, finite: np.ndarray) -> str:
    if np.isfinite(bound):
        return f"≤ {figure(bound, 's')}"
    return f"> {figure(float(finite[-1]), 's')}" if len(finite) else "unknown"


def _right(values: np.ndarray, promise: float | None) -> float:
    longest = float(values.max(initial=0.0))
    if promise is not None:
        longest = max(longest, promise)
    return ceiling(longest) if longest > 0 else 1.0


def _plot(
    title: str,
    place: int,
    now: np.ndarray,
    owners: tuple[str, ...],
    chosen: str,
    right: float,
    promise: float | None,
    clock: str,
) -> Plot:
    count = len(now)
    share = np.arange(1, count + 1) / max(count, 1)
    keep = np.unique(np.linspace(0, count - 1, min(count, POINTS)).astype(int)) if count else []
    x, y = now[keep], share[keep]
    line = Line(
        title,
        np.concatenate([[0.0], x]) if count else x,
        np.concatenate([[0.0], y]) if count else y,
        (0, 2, 3)[place],
        True,
        clock == "virtual",
    )
    marked = np.quantile(now, QUANTILES) if count else np.full(len(QUANTILES), np.nan)
    readings = tuple(
        Reading(float(value), q, f"p{q * 100:.0f}", figure(float(value), "s"))
        for q, value in zip(QUANTILES, marked, strict=True)
    )
    dots = []
    if chosen in owners:
        spot = owners.index(chosen)
        text = f"{chosen}  {figure(float(now[spot]), 's')}"
        dots.append(Dot(float(now[spot]), float(share[spot]), text, line.hue, chosen))
    limits: tuple[Limit, ...] = ()
    if promise is not None:
        kept = float((now <= promise).mean()) if count else float("nan")
        limits = (Limit(promise, f"{figure(kept, '%')} within {figure(promise, 's')}", True),)
    shown = ("", *(owners[i] for i in keep)) if count else ()
    return Plot(
        title,
        (line,),
        "%",
        "s",
        right,
        1.0,
        tuple(dots),
        readings,
        limits,
        timed=False,
        owners=shown,
        promised=f"{LIMIT}{place}",
    )
