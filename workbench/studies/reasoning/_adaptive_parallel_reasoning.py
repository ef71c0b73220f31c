"""Checks of adaptive parallel reasoning: what threads solve, its checker, what a child may know."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from engine.core.config import update
from engine.core.events import Branch, Token
from engine.core.log import Log
from engine.models.loading.find import beside
from engine.models.reference import dense
from engine.reasoning.solving.scores import scores_of
from engine.reasoning.spawning.spawning import SpawningConfig, verdict_of
from engine.reasoning.threads.loaded_model import open_model
from engine.tasks.countdown.search import even_problem
from engine.tasks.countdown.task import CountdownProblem
from engine.tasks.countdown.traces import (
    EOS,
    FOUND,
    WORDS,
    child_prompt,
    ids,
    messages,
    prompt,
    returned,
)
from workbench.studies._read import apart, share, votes, weights_of
from workbench.study import Changes, Figure, Outcome, RunConfig

FIRST = 1 << 21  # the first problem that claims are judged on
CLOSE = 1e-3  # nats between a log-probability and the one from scratch
IMITATED, SERIAL = "countdown-imitated", "countdown-reinforced-serial"
ALONE = "countdown-imitated-serial"  # taught nothing but serial search
FEW, SOME, FAST, FULL = 60, 100, 120, 1000  # problems of a claim; few where fewer tell as much
TOGETHER: Changes = {"together": 40, "threads": 400, "pages": 4096}  # fewer, fuller steps
WHOLE = 256  # tokens of a context that the models were made for
CONTEXT = 128  # tokens of a context, where contexts are equal
CRITICAL = 160  # tokens on the longest chain, where chains are equal


def rights(
    config: SpawningConfig, run_config: RunConfig, fast: bool, changes: Changes, count: int = FAST
) -> tuple[np.ndarray, Log]:
    """Of each of the claims' problems, whether it was solved (1.0), and the run.

    Serial search spawns nothing: the same run, whatever breaks children.
    """
    size = {"problems": count if fast else FULL, "first": FIRST, **TOGETHER}
    serial = changes.get("search") == "serial"
    alone = {"children": SpawningConfig().children, "fault": "none"} if serial else {}
    model = beside(config.model, changes.get("model", config.model))
    log = run_config(update(config, {**size, **alone, **changes, "model": model}))
    return scores_of(log)["right"], log


def more(names: tuple[str, str], ours_P: np.ndarray, theirs_P: np.ndarray, what: str) -> Outcome:
    """Whether ours solves more of the same problems, the interval of the difference above zero."""
    low, text = apart(ours_P, theirs_P)
    return Outcome(
        f"{names[0]} solves more than {names[1]} {what}: the 95% interval of the difference is "
        "above zero",
        f"{share(ours_P)} against {share(theirs_P)}, {text}, n = {len(ours_P)} problems",
        low > 0,
        figure=Figure.mean(ours_P - theirs_P, "%"),
        needed=0.0,
    )


def equal_context(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Models that imitate, the same problems, no context longer than `CONTEXT`."""
    return with_context(config, CONTEXT, run_config, fast)


def with_context(
    config: SpawningConfig, context: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with contexts of so many tokens."""
    same: Changes = {"window": int(context), "critical": 0, "total": 0}
    threads: Changes = {**same, "model": IMITATED, "search": "parallel"}
    threads_P, _ = rights(config, run_config, fast, threads, SOME)
    serial: Changes = {**same, "model": ALONE, "search": "serial"}
    serial_P, _ = rights(config, run_config, fast, serial, SOME)
    what = f"with contexts of {context:g} tokens"
    return more(("spawning threads", "serial search"), threads_P, serial_P, what)


def equal_critical(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Models that imitate; serial search has the model's whole context for its tokens."""
    return with_critical(config, CRITICAL, run_config, fast)


def with_critical(
    config: SpawningConfig, critical: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with so many tokens on the critical path."""
    same: Changes = {"critical": int(critical), "total": 0}
    threads: Changes = {**same, "model": IMITATED, "search": "parallel"}
    threads_P, _ = rights(config, run_config, fast, threads, FEW)
    serial: Changes = {**same, "model": ALONE, "search": "serial", "window": WHOLE}
    serial_P, _ = rights(config, run_config, fast, serial, FEW)
    what = f"with {critical:g} tokens on the critical path"
    return more(("spawning threads", "serial search"), threads_P, serial_P, what)


def reinforced(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The config's model against the one that it began as, on the same problems."""
    return gained_with(config, config.window, run_config, fast)


def gained_with(
    config: SpawningConfig, context: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with contexts of so many tokens."""
    same: Changes = {"search": "parallel", "critical": 0, "total": 0, "window": int(context)}
    ours_P, ours = rights(config, run_config, fast, same)
    theirs_P, theirs = ours_P, ours
    if config.model != IMITATED:
        theirs_P, theirs = rights(
            config, run_config, fast, {**same, "model": IMITATED, "fault": "none"}
        )
    found = more(("the reinforced model", "the imitating one"), ours_P, theirs_P, "by threads")
    means = [
        f"{scores_of(log)['children'].mean():.1f} children and "
        f"{scores_of(log)['tokens'].mean():.0f} tokens"
        for log in (ours, theirs)
    ]
    measured = f"{found.measured}; {means[0]} a problem against {means[1]}"
    return replace(found, measured=measured)


def over_serial(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The config's model by threads beside one that was reinforced searching serially."""
    return reinforced_with(config, config.window, run_config, fast)


def reinforced_with(
    config: SpawningConfig, context: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with contexts of so many tokens."""
    same: Changes = {"critical": 0, "total": 0, "window": int(context)}
    ours_P, _ = rights(config, run_config, fast, {**same, "search": "parallel"})
    serial: Changes = {**same, "model": SERIAL, "search": "serial"}
    theirs_P, _ = rights(config, run_config, fast, serial)
    what = f"with contexts of {context:g} tokens"
    return more(("the reinforced model", "the one reinforced serially"), ours_P, theirs_P, what)


def equal_total(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Imitated threads beside the vote of imitated serial searches of as many tokens in all.

    The rival gets at least as many, in whole searches, each with the model's whole context.
    """
    return with_children(config, config.children, run_config, fast, FEW)


def with_children(
    config: SpawningConfig, children: float, run_config: RunConfig, fast: bool, few: int = FAST
) -> Outcome:
    """The same where a join has at most so many children; in small the first `few` problems."""
    same: Changes = {"critical": 0, "total": 0}
    threads: Changes = {
        **same, "model": IMITATED, "search": "parallel", "children": int(children)
    }  # fmt: skip
    ours_P, ours = rights(config, run_config, fast, threads)
    count = few if fast else FULL  # the run of threads is that of another claim, which needs more
    ours_P, spent = ours_P[:count], scores_of(ours)["tokens"][:count].mean()
    logs = list[Log]()
    serial: Changes = {**same, "model": ALONE, "search": "serial", "window": WHOLE}
    while not logs or sum(scores_of(log)["tokens"].mean() for log in logs) < spent:
        seed = config.seed + len(logs)
        logs.append(rights(config, run_config, fast, {**serial, "seed": seed}, count)[1])
    theirs = sum(scores_of(log)["tokens"].mean() for log in logs)
    names = "spawning threads", "a vote of serial searches"
    found = more(names, ours_P, voted(logs), "of as many tokens in all")
    told = f"{spent:.0f} tokens against {theirs:.0f} in {len(logs)} searches"
    return replace(found, measured=f"{found.measured}; {told}")


def voted(logs: Sequence[Log]) -> np.ndarray:
    """Of each problem, whether the solution that most runs state is right (1.0); none is wrong."""
    said = [votes(log) for log in logs]
    right = []
    for lane in sorted(said[0], key=lambda lane: int(lane[1:])):
        stated = [one[lane] for one in said if one[lane][0] != "none"]
        chosen = Counter(answer for answer, _ in stated).most_common(1)
        right.append(bool(chosen) and dict(stated)[chosen[0][0]])
    return np.array(right, float)


def checker(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Right answers and every change of one word in them, against a replay of this study's own."""
    agreed, counted, accepted = 0, 0, 0
    for seed in range(FIRST, FIRST + (6 if fast else 60)):
        problem = even_problem("test", seed)
        lines = [line.replace("=", " ") for line in problem.answer.splitlines()]
        words = " ".join(lines)
        for sign in "+-*/":
            words = words.replace(sign, f" {sign} ")
        answer = words.split()
        for place in range(len(answer)):
            for word in WORDS[11:]:
                changed = [*answer[:place], word, *answer[place + 1 :]]
                said = verdict_of(config, problem, [FOUND, *changed, EOS]).right
                right = replays(problem, changed)
                agreed, counted, accepted = agreed + (said == right), counted + 1, accepted + right
    return Outcome(
        "accepted exactly if the steps, replayed one by one, use each number once and end at the "
        "target",
        f"{agreed:,} of {counted:,} verdicts agree; {accepted:,} of the answers are right",
        agreed == counted and 0 < accepted < counted,
        figure=Figure.exact(counted - agreed, "verdicts"),
        needed=0.0,
    )


def replays(problem: CountdownProblem, answer: Sequence[str]) -> bool:
    """Whether steps of four words each lead from the numbers to the target alone."""
    held = list(problem.numbers)
    for at in range(0, len(answer), 4):
        left, sign, right, result = answer[at : at + 4]
        if sign not in "+-*/" or not (left + right + result).isdigit():
            return False
        a, b = int(left), int(right)
        for operand in (a, b):
            if operand not in held:
                return False
            held.remove(operand)
        if sign == "/" and (b == 0 or a % b):
            return False
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a // max(1, b)}[sign]
        if value < 0 or value != int(result):
            return False
        held.append(value)
    return held == [problem.target]


def contexts(config: SpawningConfig, log: Log) -> list[tuple[list[str], list[int], list[float]]]:
    """Of every thread: the words it may know and say, at which places it drew, how likely.

    Rebuilt from what threads said, by the rules of the traces alone.
    """
    said: dict[str, list[str]] = {}
    drawn: dict[str, list[float]] = {}
    for token in log.of(Token):
        said.setdefault(token.thread, []).append(token.text.strip() or EOS)
        drawn.setdefault(token.thread, []).append(token.logprob)
    found = []
    for root in sorted({branch.thread for branch in log.of(Branch) if not branch.parent}):
        given = prompt(config.search, even_problem("test", int(root[1:])))
        words = given + said[root]
        asked = messages(said[root])
        for place, message in enumerate(asked):
            child = f"{root}.{place + 1}"
            begin = child_prompt(given, message)
            own = said.get(child, [])
            places = list(range(len(begin), len(begin) + len(own)))
            found.append((begin + own, places, drawn.get(child, [])))
        names = [f"{root}.{place + 1}" for place in range(len(asked))]
        back = [word for name in names for word in returned(said.get(name, []))]
        cut = len(given) + said[root].index("join") + 1 if asked else len(words)
        places = [at if at < cut else at + len(back) for at in range(len(given), len(words))]
        found.append((words[:cut] + back + words[cut:], places, drawn[root]))
    return found


def own_context(config: SpawningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every token's log-probability against a forward over its own context, without a cache."""
    size = {"problems": 2 if fast else 40, "first": FIRST, "search": "parallel", "window": 256}
    config = update(config, {**size, "sampling.temperature": 0.0, "dtype": "float32"})
    log = run_config(config)
    weights = weights_of(open_model(config.reasoning()).model)
    worst, rows, children = 0.0, 0, 0
    for words, places, drawn in contexts(config, log):
        tokens_1T = torch.tensor([ids(words)])
        with torch.inference_mode():
            logprobs_TV = dense(*weights, tokens_1T)[0].log_softmax(-1)
        at_L = torch.tensor(places)
        want_L = logprobs_TV[at_L - 1, tokens_1T[0, at_L]]
        apart_L = (want_L - torch.tensor(drawn)).abs()
        worst = max(worst, float(apart_L.max()) if drawn else 0.0)
        rows, children = rows + len(drawn), children + (words[0] == "child")
    return Outcome(
        f"log-probabilities within {CLOSE:g} nats of a forward over target, message and own words",
        f"at most {worst:.1e} over {rows:,} tokens, {children} children's among them",
        worst <= CLOSE and children > 0,
        figure=Figure.exact(worst),
        needed=CLOSE,
    )
