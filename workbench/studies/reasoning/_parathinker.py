"""Exact checks of ParaThinker: the summary's logits from scratch, and tokens computed once."""

import numpy as np

from engine.core.config import update
from engine.core.difference import largest
from engine.core.events import Span
from engine.core.log import Log
from engine.core.tags import facts
from engine.reasoning.paths.parallel_paths import PathsConfig
from engine.reasoning.paths.script import side_by_side
from engine.reasoning.solving.scores import scores_of
from engine.reasoning.streams.reference import from_scratch
from engine.reasoning.threads.loaded_model import open_model
from workbench.studies._read import weights_of
from workbench.study import Changes, Figure, Outcome, RunConfig

CLOSE = 1e-4
FIRST = 1 << 21  # the first problem that claims are judged on
# Room for all: a path without a page ends, and the summary does not read it.
KEPT: Changes = {"first": FIRST, "keep_logits": True, "pages": 8192}


def kept(log: Log) -> dict[str, np.ndarray]:
    """Of every token a run computed: its problem, the part of it (0: the prompt, then each path,
    -1: the summary), where in that it stands, and the logits after it."""
    blobs = {name: log.blobs[f"kept/{name}"] for name in ("tokens", "block", "index", "logits")}
    owners = [
        name.partition("/") for name in log.blobs["kept/blocks"].tobytes().decode().split("\n")
    ]
    parts = []
    for owner, _, number in owners:
        root, _, path = owner.partition(".")
        parts.append((int(root[1:]), int(path) if path else 0 if number == "1" else -1))
    problem, part = np.array(parts)[blobs.pop("block")].T
    return {**blobs, "problem": problem, "part": part}


def union(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every row of logits against one forward per problem, its mask built from the rule alone."""
    size = {"problems": 3 if fast else 40, **KEPT}
    of = kept(run_config(update(config, {**size, "dtype": "float32"})))
    weights = weights_of(open_model(config.reasoning()).model)
    worst, rows, summary = 0.0, 0, 0
    for problem in np.unique(of["problem"]):
        at = [
            np.flatnonzero((of["problem"] == problem) & (of["part"] == part))
            for part in (*range(config.width + 1), -1)
        ]
        prompt, *paths, last = ([int(of["tokens"][n]) for n in found] for found in at)
        want_NV = from_scratch(*weights, side_by_side(prompt, paths, last))
        have_NV = of["logits"][np.concatenate(at)]
        worst = max(worst, largest(have_NV, want_NV))
        rows, summary = rows + len(have_NV), summary + len(last)
    return Outcome(
        f"logits within {CLOSE:g} of a forward from scratch with the block mask",
        f"at most {worst:.1e} apart over {rows:,} rows, {summary} of summaries",
        worst <= CLOSE and summary > 0,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )


def once(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens computed, from the log's passes, against those that anybody wrote."""
    size = {"problems": 4 if fast else 40, **KEPT}
    log = run_config(update(config, size))
    computed = sum(int(facts(span.tag)["tokens"]) for span in log.of(Span) if span.tag)
    of = kept(log)
    written = np.stack([of["problem"], of["part"]], axis=1)
    blocks = np.unique(written, axis=0)
    longest = sum(
        int(of["index"][(written == block).all(1)].max()) + 1 for block in blocks[blocks[:, 1] >= 0]
    )
    summary = int(scores_of(log)["summary"].sum())
    return Outcome(
        f"{longest + summary:,} tokens computed: those of prompts, paths and summaries, each once",
        f"{computed:,} computed",
        computed == longest + summary,
        figure=Figure.exact(computed - longest - summary, "tokens"),
        needed=0.0,
    )
