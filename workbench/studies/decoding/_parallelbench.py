"""Checks of ParallelBench's claims: errors held against what tokens drawn apart must lose."""

import math
from dataclasses import replace

import numpy as np

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.diffusion.run import BOUND, ERROR, STEPS, VALID, DiffusionConfig
from workbench.regime import At
from workbench.study import Changes, Figure, Outcome, RunConfig

APART = ("copy", "replace_index")  # tasks whose answers' tokens do not hang together
TOGETHER = ("replace_random", "shuffle", "same")
POLICIES: tuple[Changes, ...] = (
    {"unmasking": "random"},
    {"unmasking": "confidence"},
    {"unmasking": "margin"},
    {"unmasking": "entropy"},
    {"unmasking": "threshold", "unmasking.least": 0.4},
    {"unmasking": "factor", "unmasking.factor": 1.5},
)
PROMPTS = 6  # of the one model that is shipped: intervals are over them
ROUNDING = 1e-6  # nats, of sums of logarithms
KEPT = 0.95  # of the answers valid: nothing is lost
UNSURE = 0.6  # a threshold above what a shuffle is ever unsure of two items, below a copy's


def told(log: Log, name: str) -> list[float]:
    """A level of each prompt."""
    return [level.value for level in log.of(Level) if level.name == name]


def sized(config: DiffusionConfig, changes: Changes, fast: bool) -> DiffusionConfig:
    """Lists of four items in a fast check, of five in a full one."""
    size: Changes = {"length": 4 if fast else 5, "prompts": PROMPTS, "sweep": False}
    return update(config, {**size, **changes})


def by_number(changes: Changes, tokens: int) -> Changes:
    """Where a policy takes a number of tokens, so many."""
    numbered = changes["unmasking"] not in ("threshold", "factor")
    return {**changes, "unmasking.tokens": tokens} if numbered else changes


def never_below(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The least of error less bound, over every task, policy and prompt, two and all at once."""
    least, count = math.inf, 0
    for task in (*APART, *TOGETHER):
        for policy in POLICIES:
            for tokens in (2, config.length):
                here = {"task": task, **by_number(policy, tokens), "prompts": 2 if fast else 6}
                log = run_config(sized(config, here, fast))
                gaps = [e - b for e, b in zip(told(log, ERROR), told(log, BOUND), strict=True)]
                least, count = min(least, *gaps), count + len(gaps)
    return Outcome(
        "no error below its bound",
        f"the least is {least:.3g} nats above it, of {count}",
        least >= -ROUNDING,
        figure=Figure.exact(least, "nats"),
        needed=0.0,
    )


def of_the_joint(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """A model that says the joint's own marginals: its error less the bound, the furthest."""
    most, single = 0.0, 0.0
    for task in (*APART, *TOGETHER):
        for tokens in (1, 2, config.length):
            how: Changes = {"unmasking": "confidence", "unmasking.tokens": tokens}
            log = run_config(sized(config, {"task": task, "model": "exact", **how}, fast))
            pairs = zip(told(log, ERROR), told(log, BOUND), strict=True)
            most = max(most, *(abs(error - bound) for error, bound in pairs))
            if tokens == 1:
                single = max(single, *told(log, ERROR))
    return Outcome(
        "the error is the bound, and none a token a step",
        f"{most:.2g} nats apart, {single:.2g} a token a step",
        max(most, single) < ROUNDING,
        figure=Figure.exact(most, "nats"),
        needed=ROUNDING,
    )


def valid(
    config: DiffusionConfig, run_config: RunConfig, changes: Changes, fast: bool
) -> list[float]:
    """The probability that the answer to each prompt is valid."""
    return told(run_config(sized(config, changes, fast)), VALID)


def over(figure: Figure) -> str:
    """What an interval is over."""
    return f"n = {figure.n} prompts of one model"


def at_once(task: str, tokens: int) -> Changes:
    return {"task": task, "unmasking": "confidence", "unmasking.tokens": tokens}


def apart(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Valid answers, all tokens at once, of the tasks whose bound is nought."""
    found = [x for task in APART for x in valid(config, run_config, at_once(task, 64), fast)]
    figure = Figure.mean(found, "%")
    return Outcome(
        f"at least {KEPT:.0%} valid, all tokens at once",
        f"{figure.value:.1%} ({figure.low:.1%} to {figure.high:.1%}) of copies and edits, "
        f"{over(figure)}",
        figure.low >= KEPT,
        figure=figure,
        needed=KEPT,
    )


def falls(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Valid shuffles a token a step less valid shuffles all at once."""
    single, all_of = (
        valid(config, run_config, at_once("shuffle", tokens), fast) for tokens in (1, 64)
    )
    return lost("fewer valid shuffles, all tokens at once", single, all_of)


def lost(expected: str, before: list[float], after: list[float]) -> Outcome:
    """How many fewer answers are valid, paired by prompt: it has to be some."""
    figure = Figure.mean([a - b for a, b in zip(before, after, strict=True)], "%")
    return Outcome(
        expected,
        f"{figure.value:.1%} fewer ({figure.low:.1%} to {figure.high:.1%}), {over(figure)}",
        figure.low > 0.0,
        figure=figure,
        needed=0.0,
    )


def foretold(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How far the share of valid answers is from exp(-bound), over tasks that hang together."""
    off: list[float] = []  # of each prompt, on average over numbers of tokens
    for task in TOGETHER:
        logs = [run_config(sized(config, at_once(task, n), fast)) for n in (1, 2, 64)]
        off += np.mean([_off(log) for log in logs], axis=0).tolist()
    return within_a_twentieth(off)


def within_a_twentieth(off: list[float]) -> Outcome:
    """Whether the bound tells the share of valid answers, by how far off it is of each prompt."""
    figure = Figure.mean(off, "%")
    return Outcome(
        "the bound tells the share of valid answers within a twentieth",
        f"{figure.value:.1%} off ({figure.low:.1%} to {figure.high:.1%}), {over(figure)}",
        figure.high < 1 - KEPT,
        figure=figure,
        needed=1 - KEPT,
    )


def _off(log: Log) -> list[float]:
    """Of each prompt, how far its share of valid answers is from exp(-bound)."""
    pairs = zip(told(log, VALID), told(log, BOUND), strict=True)
    return [abs(share - math.exp(-bound)) for share, bound in pairs]


def one_threshold(config: DiffusionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """A threshold at which shuffles stay valid, which is asked for, too: how many fewer random
    edits do."""
    how: Changes = {"unmasking": "threshold", "unmasking.least": UNSURE}
    shuffled, edited = (
        valid(config, run_config, {**how, "task": task}, fast)
        for task in ("shuffle", "replace_random")
    )
    said = f"fewer valid random edits than shuffles at a threshold of {UNSURE}"
    seen, kept = lost(said, shuffled, edited), Figure.mean(shuffled, "%")
    return replace(
        seen,
        expected=f"{seen.expected}, at least {KEPT:.0%} of which are valid (95% intervals)",
        measured=f"{seen.measured}; {kept.value:.1%} of shuffles valid ({kept.low:.1%} to "
        f"{kept.high:.1%})",
        holds=seen.holds and kept.low >= KEPT,
    )


def foretold_of(
    config: DiffusionConfig, tokens: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """`foretold` of one task and one number of tokens in a step."""
    log = run_config(sized(config, at_once(config.task, int(tokens)), fast))
    return within_a_twentieth(_off(log))


def at(name: str) -> At:
    """Valid answers that are lost against a token a step, with that knob of the policy there."""

    def judged(config: DiffusionConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
        single = valid(config, run_config, at_once(config.task, 1), fast)
        here = run_config(sized(config, {name: int(value) if value >= 1 else value}, fast))
        figure = Figure.mean([a - b for a, b in zip(single, told(here, VALID), strict=True)], "%")
        steps = told(here, STEPS)
        return Outcome(
            f"more than {1 - KEPT:.0%} fewer valid answers than a token a step",
            f"{figure.value:.1%} fewer in {sum(steps) / len(steps):.1f} steps",
            figure.low > 1 - KEPT,
            figure=figure,
            needed=1 - KEPT,
        )

    return judged
