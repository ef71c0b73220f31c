"""Bubble of a pipeline: the share of its ranks' time in which they do no pass, at every moment."""

from typing import Any

import numpy as np

from widgets.canvas.running import AT_END, Running
from widgets.theme import figure
from widgets.views.schedule.spans import SpanTable

PASSES = ("F", "B", "I", "W")
TOLD = ("bubble", "measured bubble", "modelled bubble")  # marks of a plan that say what it came to
BEGINS = ("bubble", "measured: bubble", "modelled: bubble")  # of their sentences, about whole runs
LABELS = ("bubble (no pass)", "modelled bubble")
PARTS = 400  # moments


def is_bubble(name: str, text: str) -> bool:
    """Whether a mark of a plan says the bubble of all its passes."""
    return name in TOLD and text.startswith(BEGINS)


def bubble_of(table: SpanTable, layer: int) -> Running | None:
    """The share from the first pass on, over the ranks that have any; None where there are none.
    `layer`: 0 of measured passes, 1 of modelled ones."""
    columns = {name: np.array(table.columns[name]) for name in ("lane", "kind", "tag")}
    layers = np.array(table.of_tag, np.int32).reshape(-1, 2)[:, 1]
    kinds = [place for kind, place in table.kinds.items() if kind in PASSES]
    mine = np.isin(columns["kind"], kinds) & (layers[columns["tag"]] == layer)
    if not mine.any():
        return None
    start, stop = (np.sort(np.array(table.columns[name])[mine]) for name in ("start", "stop"))
    begin, ranks = float(start[0]), len(np.unique(columns["lane"][mine]))
    times = np.linspace(begin, max(float(stop[-1]), begin + 1e-12), PARTS)[1:]
    worked = _since(start, times) - _since(stop, times)
    shares = 1 - worked / ((times - begin) * ranks)
    return Running(times, np.clip(np.round(shares, 12), 0, 1), "%", AT_END, empty=True)


def with_bubble(
    told: list[list[str]], table: SpanTable, said: list[tuple[str, str]]
) -> tuple[list[list[str]], dict[int, Running], list[str]]:
    """`told` with the bubble in the place of the idle share, by layer; what runs of it, by place;
    what each figure means. `said`: the bubble in words, of each layer there is."""
    found, told = {}, [list(pair) for pair in told]
    meant = [""] * len(told)
    places = [i for i, (label, _) in enumerate(told) if "idle" in label]
    layers = [layer for layer in (0, 1) if bubble_of(table, layer) is not None]
    for layer, place, words in zip(layers, places, said, strict=False):
        known: Any = bubble_of(table, layer)
        told[place] = [LABELS[len(found)], figure(float(known.values[-1]), "%")]
        found[place], meant[place] = known, words[1]
    return told, found, meant


def _since(moments: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The seconds that have passed at each of `times` since each of `moments` before it, summed."""
    count = np.searchsorted(moments, times, side="right")
    return count * times - np.append(0.0, np.cumsum(moments))[count]
