"""Exact checks of adaptive parallel reasoning: its checker, and what a child may know."""

from collections.abc import Sequence

import torch

from engine.core.config import update
from engine.core.events import Branch, Token
from engine.core.log import Log
from engine.models.reference import dense
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
from workbench.studies._read import weights_of
from workbench.study import (
    Figure,
    Outcome,
    RunConfig,
)

FIRST = 1 << 21  # the first problem that claims are judged on
CLOSE = 1e-3  # nats between a log-probability and the one from scratch


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
    size = {"problems": 4 if fast else 40, "first": FIRST, "search": "parallel", "window": 256}
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
