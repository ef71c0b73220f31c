"""How well a Countdown model solves test problems, serially and by threads; and samples."""

from collections.abc import Sequence
from pathlib import Path

from engine.core.config import update
from engine.core.events import Mark, Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.solving.scores import scores_of
from engine.reasoning.spawning.spawning import SpawningConfig, run

PROBLEMS = 500
FIRST = 1 << 20  # the first problem that scores are of
WINDOW = 160
NAMES = {"parallel": "Spawning and joining threads", "serial": "Serial"}


def scores(
    folder: Path, fast: bool, searches: Sequence[str] = tuple(NAMES)
) -> dict[str, tuple[float, float, float, int]]:
    """Shares of test problems solved, their 95% intervals, and of how many.

    Each context has at most `WINDOW` tokens.
    """
    found = {}
    for search in searches:
        problems = 2 if fast else PROBLEMS
        config = SpawningConfig(model=str(folder), problems=problems, first=FIRST, window=WINDOW)
        right = scores_of(Run.execute(run, update(config, {"search": search})).log)["right"]
        share, (low, high) = right.mean(), wilson(float(right.sum()), len(right))
        found[f"{NAMES[search]}, contexts of {WINDOW} tokens"] = float(share), low, high, len(right)
    return found


def samples(folder: Path, searches: Sequence[str] = tuple(NAMES)) -> Sequence[str]:
    """Two test problems as serial and as spawning threads write them."""
    found = []
    for search in sorted(searches, reverse=True):
        config = SpawningConfig(model=str(folder), problems=1, first=FIRST)
        log = Run.execute(run, update(config, {"search": search})).log
        lanes: dict[str, str] = {}
        for event in log:
            if isinstance(event, Token):
                lanes[event.thread] += event.text
            elif isinstance(event, Mark) and event.name == "given":
                lanes[event.lane] = lanes.get(event.lane, "") + event.text
        found.append("\n".join(f"{lane}: {text.strip()}" for lane, text in lanes.items()))
    return found
