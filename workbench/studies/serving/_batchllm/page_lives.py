"""BatchLLM's claim that a shared prefix lives only while its group needs it: lives of pages."""

import numpy as np

from engine.core.events import Page, Span
from engine.core.log import Log
from engine.inference.config import InferenceConfig
from workbench.studies.serving._batchllm.jobs import jobs, over, pair
from workbench.study import Outcome, RunConfig


def shorter_lives(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How long pages that others join stay, from entering the prefix tree to being freed."""
    pairs = [pair(each, run_config) for each in jobs(config, fast)]
    ours_J, theirs_J = ([page_life(log) for log in logs] for logs in zip(*pairs, strict=True))
    figure = over(ours_J, theirs_J)
    return Outcome(
        "joined pages stay in memory for a smaller share of the steps than with LRU",
        f"{np.mean(ours_J):.1%} of the steps against {np.mean(theirs_J):.1%}; n = {len(pairs)}",
        figure.high < 1,
        figure=figure,
        needed=1.0,
    )


def page_life(log: Log) -> float:
    """Mean share of the run's steps for which a page that was joined stayed in the prefix tree."""
    since: dict[int, int] = {}
    joined: set[int] = set()
    lives: list[int] = []
    step = 0
    for event in log:
        if isinstance(event, Span) and event.lane == "engine":
            step += 1
        elif not isinstance(event, Page):
            continue
        elif event.state == "index":
            since[event.page] = step
        elif event.state == "hit":
            joined.add(event.page)
        elif event.state == "free" and event.page in since:
            began = since.pop(event.page)
            if event.page in joined:
                lives.append(step - began)
                joined.discard(event.page)
    lives += [step - began for page, began in since.items() if page in joined]
    return float(np.mean(lives)) / step if lives else 0.0
