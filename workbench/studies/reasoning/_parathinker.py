"""Checks of ParaThinker: the summary's logits from scratch, tokens computed once, and what width
solves beside depth."""

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
from workbench.studies._read import apart, share, weights_of
from workbench.study import Changes, Figure, Outcome, RunConfig

CLOSE = 1e-4
FIRST = 1 << 21  # the first problem that claims are judged on
FAST, MORE, FULL = 40, 120, 1000  # problems of a claim; more where a difference is told
WIDE = 8
EACH, DEPTH = 96, 192  # tokens of each of the wide paths; of one alone, a quarter of all of theirs
TOTAL = 224  # tokens of all paths, where the total is equal
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


def scores(
    config: PathsConfig, run_config: RunConfig, fast: bool, changes: Changes, count: int = MORE
) -> dict[str, np.ndarray]:
    """A column of scores by name, each over the same problems in order.

    One path is all that its summary can read: the same run, whatever breaks the reading of many.
    """
    size = {"problems": count if fast else FULL, "first": FIRST, "together": 32, "pages": 8192}
    alone = {"sees": PathsConfig().sees} if changes.get("width") == 1 else {}
    return scores_of(run_config(update(config, {**size, **alone, **changes})))


def wider(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Eight paths beside one that has twice the tokens of each of them, the same problems."""
    return beside_depth(config, DEPTH, run_config, fast)


def beside_depth(config: PathsConfig, depth: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same beside one path of so many tokens."""
    same: Changes = {"total": 0}
    wide = scores(config, run_config, fast, {**same, "width": WIDE, "budget": EACH})
    long = scores(config, run_config, fast, {**same, "width": 1, "budget": int(depth)})
    low, text = apart(wide["right"], long["right"])
    spent = [f"{of['tokens'].mean():.0f}" for of in (wide, long)]
    chains = [f"{of['critical'].mean():.0f}" for of in (wide, long)]
    return Outcome(
        f"{WIDE} paths of {EACH} tokens solve more than one of {depth:g}: the 95% interval of the "
        "difference is above zero",
        f"{share(wide['right'])} against {share(long['right'])}, {text}; {spent[0]} tokens drawn "
        f"against {spent[1]}, {chains[0]} on the critical path against {chains[1]}; "
        f"n = {len(wide['right'])} problems",
        low > 0,
        figure=Figure.mean(wide["right"] - long["right"], "%"),
        needed=0.0,
    )


def equal_total(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """As many tokens dealt out to four paths or spent by one, the same problems."""
    return width_wins(config, TOTAL, run_config, fast)


def width_wins(config: PathsConfig, total: float, run_config: RunConfig, fast: bool) -> Outcome:
    """Whether four paths solve more than one, of so many tokens in all."""
    same: Changes = {"total": int(total)}
    wide = scores(config, run_config, fast, {**same, "width": 4}, FAST)
    long = scores(config, run_config, fast, {**same, "width": 1}, FAST)
    low, text = apart(wide["right"], long["right"])
    chain = wide["critical"].mean() / long["critical"].mean()
    return Outcome(
        f"{total:g} tokens on four paths solve more than on one (95% interval above 0)",
        f"solved {share(wide['right'])} against {share(long['right'])}, {text}; critical path "
        f"{chain:.0%} of one path's; n = {len(wide['right'])} problems",
        low > 0,
        figure=Figure.mean(wide["right"] - long["right"], "%"),
        needed=0.0,
    )


def said(config: PathsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The summary beside what its own paths have found, and beside their vote."""
    return said_by(config, WIDE, run_config, fast)


def said_by(config: PathsConfig, paths: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of so many paths."""
    of = scores(config, run_config, fast, {"width": int(paths), "budget": EACH, "total": 0})
    covered = of["covered"] > 0
    low, text = apart(of["right"], of["voted"])
    return Outcome(
        "the summary is right more often than a vote of its own paths (95% interval above 0)",
        f"{share(of['right'])} against {share(of['voted'])}, {text}; of {int(covered.sum())} "
        f"problems that a path has solved it says {share(of['right'][covered])}; "
        f"n = {len(covered)} problems",
        low > 0,
        figure=Figure.mean(of["right"] - of["voted"], "%"),
        needed=0.0,
    )
