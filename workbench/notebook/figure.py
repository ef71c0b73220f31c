"""`figure(run, "latency")`: a run's chart as a Bokeh figure, to compose in a notebook or an app."""

from pathlib import Path
from typing import Any

from engine.core.log import Log
from engine.core.run import Run
from widgets.figure.of_log import figure_of
from workbench.traces.read import open_log

WAIT = 600.0  # seconds a figure waits for its run to end


def figure(run: Run | Log | str | Path, name: str, *, dark: bool = False, **size: int) -> Any:
    """The chart `name` (latency, levels or curves) of a run, a log, or a run file's path.

    A live run is waited for. `size`: `width` and `height` of a panel in pixels. One panel comes as
    a `bokeh.plotting.figure`, several as a grid with one toolbar. Raises BadInput for a chart there
    is not, and where there is nothing to draw.
    """
    if isinstance(run, Run):
        run = run.wait(WAIT).log
    elif isinstance(run, str | Path):
        run = open_log(run)
    return figure_of(run, name, dark=dark, **size)
