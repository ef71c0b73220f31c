"""The figures of threads as they stood at each moment: tokens said, threads alive."""

from typing import Any

import numpy as np

from widgets.canvas.running import AT_END, Running, counting, running


def threads_running(fold: Any, figures: list[list[str]]) -> dict[str, Any]:
    """Columns for those of the `figures` of a fold of threads that can be told."""
    told = {}
    for place, (label, _) in enumerate(figures):
        if label == "tokens" and "tokens" not in fold.totals:
            told[place] = counting(fold.tokens["time"][fold.tokens["accepted"] > 0])
        elif label == "threads alive":
            born = fold.looks["born"]
            gone = np.array([when for when, *_ in fold.ends.values()], float)
            moments = np.append(born, gone)
            change = np.append(np.ones(len(born)), -np.ones(len(gone)))
            order = np.argsort(moments, kind="stable")
            alive = np.cumsum(change[order])
            told[place] = Running(moments[order], alive, said=AT_END, of=len(born))
    return running(told)
