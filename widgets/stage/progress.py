"""The progress bar's words: a run's own report, or how far reading a long log is."""

from collections.abc import Sequence
from time import monotonic, perf_counter
from typing import Any

from engine.core.run import Run
from widgets import theme
from widgets.stage.feed import Feed

PATIENCE = 0.6  # seconds after which work is shown as long
LONG = 20_000  # events still to be read that are worth a word


def work_of(run: Run | None, opened: float, behind: Sequence[Feed]) -> dict[str, Any]:
    """What is done, which share of it, and in words how much; {} where there is nothing to say.

    `opened`: when the run came (`perf_counter`). `behind`: the feeds that have not read it all.
    """
    if run is None or perf_counter() - opened < PATIENCE:
        return {}
    live = run.live if run.state != "closed" else None
    since = live.aside.state[1] if live is not None else None
    if since is not None and perf_counter() - since > PATIENCE:
        words = f"{perf_counter() - since:.0f} s"
        compiles = live is not None and live.aside.compiles
        what = "Compiling for this machine, once" if compiles else "Loading compiled kernels"
        return {"what": what, "share": 0.0, "words": words}
    progress = live.progress if live is not None else None
    if progress is not None and progress.what:
        share = progress.done / progress.total if progress.total else 0.0
        left = progress.left()
        words = f"{theme.figure(progress.done)} of {theme.figure(progress.total)}"
        words += f" · {theme.figure(left, 's')} left" if left is not None else ""
        if not progress.total:  # nobody can say how much there is: what goes on is time
            words = f"{monotonic() - progress.since:.0f} s"
        return {"what": progress.what, "share": round(share, 3), "words": words}
    far = [feed for feed in behind if len(feed.log) - feed.folded > LONG]
    if not far or run.state != "closed":
        return {}
    done = min(feed.folded for feed in far)
    words = f"{theme.figure(done)} of {theme.figure(len(run.log))} events"
    return {"what": "Reading the run", "share": round(done / len(run.log), 3), "words": words}
