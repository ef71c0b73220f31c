"""The strip of differences between runs: a few figures, by how much each differs, and a mark and a
word whether that is beyond the noise.
"""

import html
from collections.abc import Sequence
from typing import Any

from widgets.stage.figures import Row
from widgets.stage.noise import DRAWS, NONE, STRETCHES, Noise

LED = (
    "tokens per second",
    "requests per second",
    "time to first token, p50",
    "time to first token, p99",
    "time per output token, p50",
    "end to end, p50",
    "pages used at the peak",
    "duration",
)  # what a strip shows where it differs, in this order
MOST = 6


def strip(
    letters: Sequence[str],
    logs: Sequence[Any],
    measured: Sequence[Row],
    chance: Sequence[dict[str, Noise]],
) -> str:
    """A row of differences for each further run, as escaped HTML; nothing where nothing differs."""
    rows = {row[0]: row for row in measured if len(set(row[1])) > 1}
    led = [name for name in LED if name in rows][:MOST]
    if not led:
        return ""
    made = "".join(
        "<div class='strip' role='list' aria-label='{}'>{}</div>".format(
            f"{letters[place]} beside {letters[0]}",
            "".join(_tile(rows[name], place, letters, chance[place - 1].get(name)) for name in led),
        )
        for place in range(1, len(letters))
    )
    return f"{made}<p class='of'>{html.escape(account(logs, chance))}</p>"


def _tile(row: Row, place: int, letters: Sequence[str], noise: Noise | None) -> str:
    name, values, ratios = row
    mark, word = (noise.mark, noise.word) if noise else ("·", NONE)
    bounds = interval(noise, marked=False)
    pair = f"{letters[0]} {values[0]} → {letters[place]} {values[place]}"
    return (
        f"<div role='listitem'><span>{html.escape(name)}</span>"
        f"<b>{html.escape(ratios[place - 1])} <i>{mark}</i></b>"
        f"<span>{html.escape(pair)}</span>"
        f"<span>{html.escape(f'{bounds} {word}'.strip())}</span></div>"
    )


def interval(noise: Noise | None, marked: bool = True) -> str:
    """`2.6 – 3.2 ▲ beyond noise`, or why there is no interval."""
    if noise is None:
        return "" if not marked else NONE
    bounds = f"{noise.low:.3g} – {noise.high:.3g}" if noise.low == noise.low else ""
    return f"{bounds} {noise.mark} {noise.word}".strip() if marked else bounds


def account(logs: Sequence[Any], chance: Sequence[dict[str, Noise]]) -> str:
    """What the intervals are of, in words."""
    over = {noise.over for found in chance for noise in found.values()}
    if not over - {""}:
        few = "too few requests, or none, to tell a difference from chance"
        return f"No intervals: {few}; each figure is one of a run."
    drawn = []
    if "the same requests" in over:
        drawn.append("over requests, the same ones drawn in both runs")
    if "requests" in over:
        drawn.append("over the requests of each run by itself (they are not the same)")
    if any("stretches" in text for text in over):
        drawn.append(f"of rates over {STRETCHES} stretches of each run's time")
    text = f"Intervals: 95% of the ratio, {DRAWS:,} draws or fewer {'; '.join(drawn)}. "
    clocks = {log.opened.clock for log in logs if log.opened is not None}
    if clocks == {"virtual"}:
        return text + (
            "Modelled runs, one seed each: the interval is of which requests came; a modelled time "
            "has no noise of its own, and another seed's requests may differ by more."
        )
    return text + (
        "One run each: the interval is of which requests came and how each fared; the same run "
        "again, on a machine with other work, may differ by more."
    )


STRIP = """
.strip { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 8px; }
.strip > div { border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px;
  display: grid; gap: 2px; min-width: 150px; font-variant-numeric: tabular-nums; }
.strip span { font-size: 12px; color: var(--faint); }
.strip b { font-size: 16px; font-weight: 600; }
.strip i { font-style: normal; font-size: 14px; }
.compared p.of { color: var(--faint); font-size: 12px; max-width: 110ch; }
"""
