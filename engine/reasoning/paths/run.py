"""The driver of Countdown on parallel paths; afterwards, where asked, at every width.

Keeps `scores` [P, K], a row of `paths_solve.COLUMNS` for each problem in order.
"""

import numpy as np

from engine.core.machine import describe
from engine.core.run import Live
from engine.reasoning.paths.config import PathsConfig
from engine.reasoning.paths.curves import FACTS, curves
from engine.reasoning.paths.solve import open_paths, solve
from engine.reasoning.threads.reasoner import Reasoner


def run(config: PathsConfig, live: Live) -> None:
    """Solve the config's problems; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    mind = open_paths(config)
    live.open(
        config,
        mind.clock,
        describe(),
        pages=config.pages,
        page_size=config.page_size,
        **mind.header(config.page_size),
        commands=["kill", "say"],
        curves=FACTS if config.sweep else {},
    )
    scores_PK, reasoner = solve(config, mind, live.emit, live.poll, live.report)
    live.keep(mind.clock.now(), "scores", scores_PK)
    if config.keep_logits:
        keep(reasoner, live)
    if config.sweep:
        for name, array in curves(config, live.report).items():
            live.keep(mind.clock.now(), name, array)


def keep(reasoner: Reasoner, live: Live) -> None:
    """Of every token computed: which problem's, which block's of it (0: the prompt, then each path,
    -1: the summary), where in it, and the logits after it."""
    record = reasoner.board.record
    assert record is not None
    owners = [block.partition("/") for block, _ in record.written]
    kinds = []
    for owner, _, number in owners:
        root, _, path = owner.partition(".")
        kinds.append((int(root[1:]), int(path or 0) if path or number == "1" else -1))
    arrays = {
        "token": np.array(record.tokens, np.int64),
        "problem": np.array([problem for problem, _ in kinds], np.int64),
        "part": np.array([part for _, part in kinds], np.int64),
        "index": np.array([index for _, index in record.written], np.int64),
        "logits": np.concatenate([logits for _, logits in reasoner.kept]),
    }
    for name, array in arrays.items():
        live.keep(reasoner.clock.now(), f"kept/{name}", array)
