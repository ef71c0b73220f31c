"""The picture of acceptance: which share of drafts held at each place, and how many tokens a
verification came to."""

from typing import Any

import numpy as np

from widgets.chart.picture import Line, Picture, Plot
from widgets.theme import figure

PLACES = 64  # drafts of one step drawn at most
HELD, KEPT, LENGTH = "Held, of those judged there", "Kept, of all made", "Tokens of a verification"

TREES = "drafts stand in trees, where the place of a refused one is not told"


def picture(frame: dict[str, Any], cursor: float, chosen: str) -> Picture:
    """What was known at the cursor; the chosen request's own curves instead of all its fellows'."""
    if frame["empty"]:
        return Picture(empty=frame["empty"])
    seen = frame["time"] <= cursor + 1e-12
    own = np.array([owner == chosen for owner in frame["owners"]])
    shown = seen & own if own.any() else seen
    kept, drafted = frame["kept"][shown], frame["drafted"][shown]
    most = frame["kept" if frame["trees"] else "drafted"].max()
    places = np.arange(1.0, min(max(most, 1), PLACES) + 1)
    made = drafted >= places[:, None]
    judged = made & (kept >= places[:, None] - 1)
    held = (kept >= places[:, None]).sum(1)
    whose = f", {chosen}" if own.any() else ""
    tokens = np.append(places, places[-1] + 1)
    longer = (kept + 1 >= tokens[:, None]).sum(1)
    plots: tuple[Plot, ...] = (
        _plot(f"{HELD}{whose}", places, held, judged.sum(1), 0, frame["modelled"]),
        _plot(f"{KEPT}{whose}", places, held, made.sum(1), 1, frame["modelled"]),
        _plot(f"{LENGTH}{whose}", tokens, longer, np.full(len(tokens), len(kept)), 2,
              frame["modelled"]),
    )  # fmt: skip
    note = "by a draft's place in its step; of a verification: so many tokens or more"
    if frame["trees"]:
        plots, note = plots[2:], f"so many tokens or more; {TREES}"
    return Picture(plots, _figures(seen, frame), note, across=True)


def _plot(
    title: str, x: np.ndarray, some: np.ndarray, of: np.ndarray, hue: int, modelled: bool
) -> Plot:
    """`some` of `of` over x, where there are any."""
    there = of > 0
    line = Line(title, x[there], some[there] / of[there], hue, modelled=modelled)
    return Plot(title, (line,), "%", "", float(x[-1]) + 0.5, 1.0, timed=False)


def _figures(seen: np.ndarray, frame: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Tokens a verification, drafts that held, and verifications, beside those of the whole run."""
    now = _told(frame["kept"][seen], frame["drafted"][seen])
    end = _told(frame["kept"], frame["drafted"])
    names = (
        ("tokens a verification", "at the end"),
        ("of the drafts held", "at the end"),
        ("verifications", "in all"),
    )
    return tuple(
        (here, name if here == whole else f"{name}, {whole} {said}")
        for here, whole, (name, said) in zip(now, end, names, strict=True)
    )


def _told(kept: np.ndarray, drafted: np.ndarray) -> tuple[str, str, str]:
    if not len(kept):
        return "–", "–", "0"
    held = figure(float(kept.sum() / drafted.sum()), "%")
    return figure(float(kept.mean() + 1)), held, figure(len(kept))
