"""The picture of a run's levels: a small plot for each kind of quantity over one time axis."""

from typing import Any

import numpy as np

from widgets.chart.picture import Limit, Line, Picture, Plot, Steps, ceiling, steps
from widgets.theme import figure

# Quantities that are read together share a plot: title, unit, and (level, name on the line, hue).
GROUPS: tuple[tuple[str, str, tuple[tuple[str, str, int], ...]], ...] = (
    ("Requests", "", (("running", "running", 0), ("waiting", "waiting", 1))),
    ("Compute units", "%", (("prefill_share", "prefill", 3),)),
    (
        "Cache pages",
        "",
        (
            ("pages_used", "used", 2),
            ("pages_cached", "cached", 4),
            ("pages_host", "on host", 3),
        ),
    ),
    ("Tokens each step", "", (("tokens_step", "tokens", 5),)),
    # Of a server that is watched: its pages as a share, its counters as rates.
    ("Cache", "%", (("cache_use", "in use", 2), ("prefix_hit_rate", "prompts found", 4))),
    (
        "Tokens a second",
        "",
        (("prompt_tokens_per_second", "asked", 3), ("answer_tokens_per_second", "answered", 5)),
    ),
)
HIDDEN = ("pages_free",)  # the rest of the limit: says nothing that the used pages do not
EMPTY = np.zeros(0)
OTHER = "How does each quantity change over time?"  # of a run without requests or pages
UNITS = {  # of quantities that any run may tell
    "bytes sent": "B", "bytes_sent": "B", "computing": "s", "energy": "J",
    "extra memory": "B",
    "exposed communication": "s", "peak bytes": "B", "seconds": "s", "watts": "W",
}  # fmt: skip
WORDS = {  # for quantities whose short names do not say of what they are
    "done": "problems done", "right": "problems right", "solved": "problems solved",
    "seen": "problems whose examples a candidate passed",
    "threads": "threads alive", "tokens_total": "tokens of all threads",
    "tokens_critical": "tokens on the critical path", "tokens_saved": "tokens saved by sharing",
    "accepted_length": "tokens a verification",
    "foreseen": "share of requests whose next token was foreseen",
}  # fmt: skip
LAST = 0.99  # of a run: what is first said later is no line to see
LANES = 6  # lines of one quantity shown for as many lanes; more are summed up by their total
MORE = 3  # further quantities shown, each in a plot of its own


def prepare(frame: dict[str, Any]) -> dict[str, Any]:
    """Each level as what is drawn of it, once for every new frame."""
    drawn: dict[str, dict[str, Steps]] = {}
    for name, lanes in frame["levels"].items():
        if len(lanes) > LANES:
            lanes = {"all": _total(list(lanes.values()))}
        drawn[name] = {lane: steps(x, y, frame["stop"]) for lane, (x, y) in lanes.items()}
    # A lane keeps its hue in every plot, though some quantities are not said of all lanes.
    hues: dict[str, int] = {}
    for shown in drawn.values():
        for lane in shown:
            hues.setdefault(lane, len(hues))
    return {**frame, "levels": drawn, "hues": hues}


def _total(lanes: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The sum of step functions over the union of their times."""
    x = np.unique(np.concatenate([times for times, _ in lanes]))
    total = np.zeros(len(x))
    for times, values in lanes:
        place = np.searchsorted(times, x, side="right") - 1
        total += np.where(place >= 0, values[np.maximum(place, 0)], 0.0)
    return x, total


def picture(ready: dict[str, Any], cursor: float, chosen: str) -> Picture:
    """Plots in a fixed order, figures at the cursor."""
    levels: dict[str, dict[str, Steps]] = ready["levels"]
    if not levels:
        return Picture(empty=ready["empty"])
    grouped = {name for _, _, rows in GROUPS for name, _, _ in rows} | set(HIDDEN)
    # What ranks hold of memory stands under their lanes already: curves of a loss go before it.
    others = sorted((name for name in levels if name not in grouped), key=_is_memory)[:MORE]
    groups = (*GROUPS, *map(_alone, others))
    plots = tuple(
        plot
        for title, unit, rows in groups
        if (plot := _plot(ready, title, unit, rows)) is not None
    )
    question = "" if grouped & levels.keys() else OTHER
    return Picture(plots, _figures(ready, cursor), question=question)


def _alone(name: str) -> tuple[str, str, tuple[tuple[str, str, int], ...]]:
    """The plot of a quantity that is read by itself."""
    words = WORDS.get(name, name.replace("_", " ").replace("/", ", "))
    title = words[:1].upper() + words[1:]
    return title, "B" if _is_memory(name) else UNITS.get(name, ""), ((name, words, 0),)


def _is_memory(name: str) -> bool:
    return name.startswith("memory/")


def _plot(
    ready: dict[str, Any], title: str, unit: str, rows: tuple[tuple[str, str, int], ...]
) -> Plot | None:
    levels, modelled = ready["levels"], ready["clock"] == "virtual"
    lines = []
    for name, label, hue in rows:
        lanes = levels.get(name, {})
        if not any(np.any(s.y) for s in lanes.values()):
            lanes = {}
        if not lanes:
            # A quantity that stays at nought is no line to look at, but its place is kept: it may
            # come any moment, and the axes are not to be made anew for that.
            lines.append(Line(label, EMPTY, EMPTY, hue, True, modelled))
        for place, (lane, data) in enumerate(lanes.items()):
            # A plot of one quantity says in its title what its lines are of.
            several = lane if label.lower() == title.lower() else f"{label} {lane}"
            named = label if len(lanes) == 1 else several
            if len(data.y) and data.x[0] >= LAST * ready["stop"]:  # a dot: its value in words
                named = f"{named}  {figure(float(data.y[-1]), unit)}"
            own = ready["hues"][lane] if several is lane else hue + place
            lines.append(Line(named, data.x, data.y, own, True, modelled, faint=place > 0))
    if not any(name in levels for name, _, _ in rows):
        return None
    top = max(float(line.y.max(initial=0.0)) for line in lines)
    limits: tuple[Limit, ...] = ()
    pages = ready["facts"].get("pages")
    if title == "Cache pages" and isinstance(pages, int | float):
        limits = (Limit(float(pages), f"all {figure(pages)}"),)
        top = max(top, float(pages))
    right = max(ready["stop"], 1e-9)
    return Plot(title, tuple(lines), unit, right=right, top=ceiling(top, unit), limits=limits)


def _figures(ready: dict[str, Any], cursor: float) -> tuple[tuple[str, str], ...]:
    def now(name: str) -> float:
        return sum(s.at(cursor) for s in ready["levels"].get(name, {}).values())

    def told(name: str, label: str, of: float = 1.0, unit: str = "") -> tuple[str, str]:
        """The figure at the cursor and the most of the run: at any moment, as words that came and
        went with the cursor would move what is drawn beneath them."""
        value, lanes = now(name), list(ready["levels"][name].values())
        if len(lanes) != 1:
            return figure(value / of, unit), label
        most = float(lanes[0].y.max(initial=0.0))
        return figure(value / of, unit), f"{label}, {figure(most / of, unit)} at most"

    found = [told(name, name) for name in ("running", "waiting") if name in ready["levels"]]
    pages = ready["facts"].get("pages")
    if pages and "pages_used" in ready["levels"]:
        found.append(told("pages_used", "pages used", pages, "%"))
    if "tokens_step" in ready["levels"]:
        found.append(told("tokens_step", "tokens each step"))
    return tuple(found)
