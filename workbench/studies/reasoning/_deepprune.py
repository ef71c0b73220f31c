"""Checks of DeepPrune: what its judge foresees, and what pruning saves of which accuracy."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.core.config import from_dict, update
from engine.core.events import Span
from engine.core.log import Log
from engine.reasoning.pruning.agreement import (
    Area,
    Pairs,
    area,
    gain,
    pairs_of,
    roc,
    scored,
    within,
)
from engine.reasoning.pruning.judges import Judge, Oracle, SharedPrefix, Trace, Trained
from engine.reasoning.pruning.pruning import LANE, PruningConfig
from engine.reasoning.solving.scores import scores_of
from engine.tasks.task import Problem
from workbench.studies._read import Written, share, votes, written
from workbench.study import Changes, Figure, Outcome, RunConfig

FIRST = 1 << 21  # seed of the first problem that claims are judged on
CLOSE = 0.03  # of accuracy, which the paper gives up at most
SAVED = 0.8  # of all tokens, in the paper
PARTS = 8  # of 20 questions, of what is counted for all of them together
AFTER = PruningConfig().after
TOGETHER: Changes = {"first": FIRST, "threads": 256, "pages": 8192}
ALL: Changes = {"after": 0}  # every trace is let finish
# A size of question that the judge was not taught: more sums, none of them too long.
ELSEWHERE: Changes = {"task.parts": 4, "task.entries": 4, "sampling.temperature": 1.6}
FEW: Changes = {"traces": 8}  # of each question, where all pairs are looked at


def sized(
    config: PruningConfig, fast: bool, changes: Changes, few: int, many: int
) -> PruningConfig:
    """The config with as many questions as a claim is judged on."""
    return update(config, {**TOGETHER, "problems": few if fast else many, **changes})


def asked(config: PruningConfig) -> list[Problem]:
    """The config's questions, by their numbers."""
    return list(config.task.problems("test", config.problems, config.first))


def everyone(config: PruningConfig) -> PruningConfig:
    """With every trace let finish. Nobody is asked then and nothing ends: the same run, whatever
    breaks the judge, the clusters or what follows from them."""
    plain = PruningConfig()
    return update(config, ALL).model_copy(
        update={name: getattr(plain, name) for name in ("judge", "clustering", "keep", "fault")}
    )


def knows(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """A run judged by an oracle beside one in which all traces finish, counted plainly."""
    judge: Changes = {} if isinstance(config.judge, Oracle) else {"judge": "oracle"}
    config = sized(config, fast, {**judge, "clustering.clusters": 0, "keep": 1}, 6, 200)
    threads_P = written(run_config(everyone(config)), asked(config))
    log = run_config(config)
    said, cluster_PN = votes(log), scores_of(log)["cluster by thread"]
    groups = counts = 0
    for number, threads in enumerate(threads_P):
        answers = [thread.answer for thread in threads]
        distinct = list(dict.fromkeys(answers))
        groups += cluster_PN[number].tolist() == [distinct.index(a) for a in answers]
        tally = Counter(answer for answer in answers if answer)
        counts += said[f"p{number}"][0] == (tally.most_common(1)[0][0] if tally else "none")
    n = len(threads_P)
    return Outcome(
        f"of {n} questions, {n} whose clusters are the distinct answers and whose vote is that of "
        "all traces",
        f"{groups} and {counts}; {np.mean(cluster_PN.max(1) + 1):.1f} clusters of "
        f"{config.traces} traces a question",
        groups == counts == n,
        figure=Figure.exact(2 * n - groups - counts, "questions"),
        needed=0.0,
    )


def compared(
    config: PruningConfig, threads: Sequence[Sequence[Written]], judge: Judge | None = None
) -> list[Pairs]:
    """Each question's pairs, as the judge (the config's, if none is named) sees them."""
    judging = (judge or config.judge).open(dict)
    found = []
    for problem, some in zip(asked(config), threads, strict=True):
        begun = [Trace(one.name, "".join(one.pieces[: config.after])) for one in some]
        found.append(pairs_of(some, scored(judging, problem.prompt, begun)))
    return found


def foresees(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All pairs of held-out questions: the judge's area beside those of looking alike and of
    reading one token. The figure is what it has over the larger of these, of the same questions."""
    found = foreseen(config, run_config, fast)
    if fast:
        return found
    away, *others = _seen(sized(config, fast, {**FEW, **ELSEWHERE}, 40, 200), run_config)
    told = f"{_said(area(away))}, {_beside([area(pairs) for pairs in others])}"
    more = f"{found.measured}; four sums of up to four, never shown: {told}"
    return replace(found, measured=more)


def foreseen_after(
    config: PruningConfig, tokens: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same where traces are judged after so many tokens, all of which the judge reads."""
    return foreseen(update(config, {"after": int(tokens)}), run_config, fast)


def foreseen(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of questions of the config's size alone."""
    ours, *plain = _seen(sized(config, fast, FEW, 40, 200), run_config)
    own, areas = area(ours), [area(pairs) for pairs in plain]
    rival = max(areas, key=lambda each: each.value)
    low, high = gain(ours, plain[areas.index(rival)])
    return Outcome(
        "area under the ROC above that of the stronger of two plain judges: looking alike, and "
        "reading one token (95% interval of the difference above 0)",
        f"{_said(own)}, {within(ours)[0]:.2f} within a question; {_beside(areas)}, difference to "
        f"the stronger {own.value - rival.value:+.3f} [{low:+.3f}, {high:+.3f}]",
        low > 0,
        figure=Figure(own.value - rival.value, low, high, "", own.questions),
        needed=0.0,
    )


def _beside(plain: Sequence[Area]) -> str:
    alike, one = plain
    return f"shared prefix {alike.value:.2f}, one token {one.value:.2f}"


def _seen(config: PruningConfig, run_config: RunConfig) -> list[list[Pairs]]:
    """Each question's pairs, as the config's judge sees them, one that only looks whether traces
    are alike, and one that reads a token of each beside that."""
    threads = written(run_config(everyone(config)), asked(config))
    return [compared(config, threads, judge) for judge in (None, SharedPrefix(), one_token(config))]


def one_token(config: PruningConfig) -> Trained:
    """The plainest judge that the config's trained model makes, or the shipped one."""
    judge = config.judge
    return Trained(read=1, model=judge.model) if isinstance(judge, Trained) else Trained(read=1)


def _said(found: Area) -> str:
    return (
        f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}] over {found.pairs:,} pairs of "
        f"{found.questions} questions"
    )


def of_few(log: Log, traces: int) -> tuple[np.ndarray, np.ndarray]:
    """The vote of each question's first traces, let finish: whether right, and tokens [P] each."""
    config = from_dict(PruningConfig, log.opened.config) if log.opened else PruningConfig()
    right, tokens = [], []
    for threads in written(log, asked(config)):
        some = threads[:traces]
        tally = Counter(one.answer for one in some if one.answer)
        chosen = tally.most_common(1)[0][0] if tally else ""
        right.append(any(one.right and one.answer == chosen for one in some))
        tokens.append(sum(len(one.pieces) for one in some))
    return np.array(right, float), np.array(tokens, float)


def both(config: PruningConfig, run_config: RunConfig, fast: bool) -> tuple[Log, Log]:
    """The same questions and draws: pruned, and with every trace let finish."""
    config = sized(config, fast, {}, 20, 600)
    log = run_config(config)
    return log, log if config.after == 0 else run_config(everyone(config))


def over_fewer(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The vote of what pruning leaves beside that of as many tokens in fewer, whole traces."""
    logs = both(config, run_config, fast)
    ours, all_ = (scores_of(log)["tokens"].sum() for log in logs)
    return beside_fewer(logs, int(config.traces * ours / all_))


def with_traces(config: PruningConfig, traces: float, run_config: RunConfig, fast: bool) -> Outcome:
    """Whether it is right more often than a vote of so many whole traces."""
    return beside_fewer(both(config, run_config, fast), int(traces))


def beside_fewer(logs: tuple[Log, Log], traces: int) -> Outcome:
    """Questions that the pruned vote has right, less those that the first traces' vote has."""
    ours, all_ = (scores_of(log) for log in logs)
    right_P, tokens_P = of_few(logs[1], traces)
    apart = Figure.mean(ours["right"] - right_P, "%")
    whole = all_["tokens"].sum()
    return Outcome(
        f"right more often than a vote of the first {traces} traces, let finish (95% interval)",
        f"{ours['right'].mean():.1%} against {right_P.mean():.1%}, difference {apart.value:+.1%} "
        f"[{apart.low:+.1%}, {apart.high:+.1%}], for {ours['tokens'].sum() / whole:.0%} of all "
        f"tokens against {tokens_P.sum() / whole:.0%}; n = {apart.n} questions",
        apart.low > 0,
        figure=apart,
        needed=0.0,
    )


def as_right(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Accuracy beside the vote of all traces, question by question."""
    ours, all_ = (scores_of(log)["right"] for log in both(config, run_config, fast))
    apart = Figure.mean(ours - all_, "%")
    return Outcome(
        f"at most {CLOSE:.0%} less often right (95% interval)",
        f"{ours.mean():.1%} against {all_.mean():.1%}, difference {apart.value:+.1%} "
        f"[{apart.low:+.1%}, {apart.high:+.1%}]; n = {apart.n} questions",
        apart.low >= -CLOSE,
        figure=apart,
        needed=-CLOSE,
    )


def saves(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens beside those of letting all traces finish, question by question."""
    logs = both(config, run_config, fast)
    ours, all_ = (scores_of(log) for log in logs)
    saved = Figure.mean(1 - ours["tokens"] / all_["tokens"], "%")
    return Outcome(
        f"{SAVED:.0%} of all tokens saved or more (95% interval)",
        f"{saved.value:.1%} saved [{saved.low:.1%}, {saved.high:.1%}]; {share(ours['right'])} "
        f"right against {share(all_['right'])}; n = {saved.n} questions",
        saved.low >= SAVED,
        figure=saved,
        needed=SAVED,
    )


def flops(log: Log) -> tuple[float, float]:
    """Counted flops of the threads and of the judge."""
    spans = list(log.of(Span))
    judge = sum(span.flops for span in spans if span.lane == LANE)
    return sum(span.flops for span in spans) - judge, judge


def pays(config: PruningConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Flops of threads and judge together beside those of letting all traces finish, of questions
    20 at a time; of the small check's 20 one figure without an interval."""
    return pays_at(config, 1.0, run_config, fast)


def pays_at(config: PruningConfig, times: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same where each of the judge's flops is counted so many times: a larger judge."""
    config = sized(config, fast, {}, 20, 20)  # as many as in `both`: the same runs, when few
    found = [
        _spent(update(config, {"first": config.first + 20 * part}), run_config)
        for part in range(1 if fast else PARTS)
    ]
    thought, judged, read = np.mean(found, axis=0) * (1, times, 1)
    nets = [1 - thought - times * judged for thought, judged, _ in found]
    net = Figure.exact(nets[0], "%") if fast else Figure.mean(nets, "%")
    return Outcome(
        "threads and judge together take fewer flops than all traces would (95% interval)",
        f"{1 - thought:.1%} of flops saved, {judged:.1%} taken by the judge: {net.value:+.1%} "
        f"[{net.low:+.1%}, {net.high:+.1%}] in all; it reads {read:.1f} tokens for each one saved; "
        f"n = {len(found)} times 20 questions",
        net.low > 0,
        figure=net,
        needed=0.0,
    )


def _spent(config: PruningConfig, run_config: RunConfig) -> tuple[float, float, float]:
    """What threads and what the judge take of the flops of all traces, and tokens it reads for each
    one saved."""
    ours, all_ = run_config(config), run_config(everyone(config))
    thought, judged = flops(ours)
    everything = flops(all_)[0]
    scores = scores_of(ours)
    saved = scores_of(all_)["tokens"].sum() - scores["tokens"].sum()
    return thought / everything, judged / everything, scores["judge tokens"].sum() / saved


def told(log: Log) -> np.ndarray:
    """[2, points] of the ROC of a run's judge over all pairs of its traces, let finish."""
    config = from_dict(PruningConfig, log.opened.config) if log.opened else PruningConfig()
    pairs = compared(update(config, {"after": AFTER}), written(log, asked(config)))
    return roc(*(np.concatenate(arrays) for arrays in zip(*pairs, strict=True)))


def fewer(log: Log) -> np.ndarray:
    """[4, traces] tokens and share right, with its interval, of a vote of so many first traces."""
    assert log.opened is not None
    points = []
    for traces in range(1, int(log.opened.config["traces"]) + 1):
        right_P, tokens_P = of_few(log, traces)
        found = Figure.share(right_P.sum(), len(right_P))
        points.append((tokens_P.mean(), found.value, found.low, found.high))
    return np.array(points).T
