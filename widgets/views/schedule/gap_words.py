"""Gaps of a trace's streams in words: which share of them waited for what."""

import numpy as np

from engine.core.chrome.gaps import CAUSES, Gaps
from widgets.theme import figure

WORDS = {  # of what a gap waited for
    "launch": "waited for a launch",
    "data": "for data (inferred)", "another stream": "for another stream (inferred)",
    "starting": "were the device's start", "unknown": "have no recorded launch",
}  # fmt: skip


def gap_words(gaps: Gaps | None) -> list[tuple[str, str]]:
    """What it is about and a sentence; nothing where there are no gaps."""
    if gaps is None or not len(gaps):
        return []
    spent = np.bincount(gaps.cause, gaps.stop - gaps.start, len(CAUSES))
    told = [
        f"{figure(seconds / spent.sum(), '%')} {WORDS[cause]}"
        for seconds, cause in sorted(zip(spent.tolist(), CAUSES, strict=True), reverse=True)
        if seconds > 0
    ]
    return [("gaps", f"of the gaps in streams {', '.join(told)}")]
