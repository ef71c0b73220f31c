"""Stream2LLM's claims: settings they are checked under and what each check runs."""

from collections.abc import Callable, Mapping

import numpy as np

from engine.core.config import update
from engine.core.measure import served
from engine.inference.config import InferenceConfig
from engine.inference.kept_tokens import kept
from engine.inference.requests.request import Sampling
from engine.inference.workloads.streamed import Streamed
from engine.inference.workloads.workload import Source
from engine.models.loading.find import find
from workbench.hardest import hardest
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
QUERIES = 200
FEW = 60  # of a small check
WAITING: Changes = {"workload.streaming": False}
BY_QUERY: Changes = {"workload.first": "query"}
# Of the three orders of the authors' scheduler the one in which first tokens come soonest, on draws
# by which nothing is judged; so were 2,048 tokens a step found, of 1,024 to 8,192, for either side.
SOONEST: Changes = {"workload.first": "oldest"}
MOST: Changes = {"workload.first": "most_chunks"}
UPDATED: Changes = {"workload.mode": "update", "workload.chunks": 4}
# What the tables and configs of the authors' published code say (github.com/rajveerb/stream2llm):
# two H200, and of crawls and of searches the chunks of a query, their times, tokens in all, and the
# most queries a second. Tokens of a chunk are such that those of a query come out alike.
TWO: Changes = {
    "executor.device": "h200-sxm",
    "executor.tensor_parallel": 2,
    "pages": 100_000,
}
CRAWLED: Changes = {
    **TWO,
    "workload.rate": 4.0,
    "workload.chunks": 8,
    "workload.gap": 1.05,
    "workload.gap_spread": 0.9,
    "workload.chunk": {"median": 300, "spread": 1.6, "longest": 28_000},
}
SEARCHED: Changes = {
    **TWO, **UPDATED, "workload.rate": 2.0, "workload.spread": 0.5, "workload.gap": 0.157,
    "workload.gap_spread": 1.7,
    "workload.chunk": {"median": 500, "spread": 1.4, "longest": 28_000},
}  # fmt: skip
COMES: dict[str, Changes] = {"context grows": CRAWLED, "context is updated": SEARCHED}
# The authors' own pressure: retrieval takes ten times as long, thirty times of searches, so that
# inputs stay in memory. A small check has a quarter of the queries and of the memory.
LONG: dict[str, Changes] = {
    "context grows": {**CRAWLED, "workload.gap": 10.5, "workload.count": 600},
    "context is updated": {**SEARCHED, "workload.gap": 4.71, "workload.count": 500},
}
QUARTER: Changes = {"workload.count": 150, "pages": 25_000}
TIGHT: Changes = {"pages": 4000}  # the longest of a page's few queries still fits
FLOOD: Changes = {"workload.rate": 40.0}  # more than the devices serve: they are never idle
PARITY = 0.95  # of the rate without streaming
# Really run here: a small model and so few pages that states of other queries are forgotten.
HERE: Changes = {
    "model": "stdlib-draft-1m",
    "dtype": "float32",
    "executor": "real",
    "workload.count": 4,
    "workload.rate": 20.0,
    "workload.gap": 0.05,
    "workload.chunks": 4,
    "workload.chunk": {"median": 24, "spread": 0.4, "longest": 60},
    "workload.listed": 3,
    "workload.question": {"median": 9},
    "workload.output": {"median": 6},
    "page_size": 16,
    "pages": 40,
    "step_tokens": 64,
    "max_running": 4,
}


def drawn(config: InferenceConfig, fast: bool, count: int = 0) -> list[InferenceConfig]:
    """The config of a check, and at full size other draws of its queries."""
    sized = update(config, {"workload.count": count or (FEW if fast else QUERIES)})
    return [update(sized, {"seed": config.seed + n}) for n in range(1 if fast else SEEDS)]


def waits(config: InferenceConfig, run: RunConfig) -> tuple[np.ndarray, np.ndarray, float]:
    """Of each query the seconds to its first token since the last of its context came, and since
    its first chunk; and how many queries a second were served."""
    model, workload = find(config.model).config, config.workload
    assert isinstance(workload, Streamed)
    every = update(config, {"workload.streaming": True, "workload.fault": "none"}).workload
    source = Source(model.vocab, model.max_positions, Sampling())
    came: dict[str, list[float]] = {}
    answer: dict[str, int] = {}  # tokens of the query's own: its states before have one each
    for request in every.requests(source, config.seed):
        came.setdefault(request.id, []).append(request.arrival)
        answer[request.id] = request.sampling.max_tokens
    lives = served(run(config))
    # The others are longer than the cache.
    came = {name: times for name, times in came.items() if lives[name].outcome == "finished"}
    first = np.array([lives[name].tokens[-answer[name]] for name in came])
    last = np.array([times[-1] for times in came.values()])
    begun = np.array([times[0] for times in came.values()])
    return first - last, first - begun, len(came) / (first.max() - begun.min())


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Theirs over ours, of draws run beside one another; of one draw without an interval."""
    if len(ours) == 1:
        return Figure.exact(theirs[0] / ours[0], "×")
    return Figure.ratio(theirs, ours)


def said(figure: Figure) -> str:
    """A ratio with its interval."""
    return f"{figure.value:.2f}× [{figure.low:.2f}, {figure.high:.2f}], n = {figure.n}"


def first_tokens(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Seconds to the first token after the last chunk in the median, of queries whose context is
    computed when all of it is there over ours."""
    return hardest(each_way(config, fast), lambda one: sooner(one, run, fast))


def each_way(
    config: InferenceConfig, fast: bool, ways: Mapping[str, Changes] = COMES
) -> dict[str, InferenceConfig]:
    """Context that grows and, at full size, that is updated."""
    which = dict([*ways.items()][: 1 if fast else None])
    return {name: update(config, changes) for name, changes in which.items()}


def sooner(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """`first_tokens` of one way that context comes."""
    ours, theirs, whole = [], [], []
    for each in drawn(config, fast):
        here, since, _ = waits(update(each, SOONEST), run)
        there, _, _ = waits(update(each, WAITING), run)
        ours.append(float(np.median(here)))
        theirs.append(float(np.median(there)))
        whole.append(float(since.mean()))
    figure = ratio(ours, theirs)
    return Outcome(
        "sooner after the last chunk than where context is computed once all is there",
        f"{np.mean(ours) * 1e3:,.0f} ms after it in the median, {np.mean(theirs) * 1e3:,.0f} ms "
        f"without streaming ({np.mean(whole):.2f} s after the first chunk, most of it the "
        f"retrieval's): {said(figure)}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def same_rate(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Queries a second of devices that are never idle, with streaming over without, of context that
    is updated; at full size of what grows, too, where that is less."""
    flooded = {name: {**COMES[name], **FLOOD} for name in reversed(COMES)}
    return parity(each_way(config, fast, flooded), run, fast, QUERIES)


def parity(
    configs: dict[str, InferenceConfig], run: RunConfig, fast: bool, count: int = 0
) -> Outcome:
    """Queries a second with streaming over without, by how context comes; of the least."""
    found: dict[str, Figure] = {}
    for name, config in configs.items():
        ours, theirs = [], []
        for each in drawn(config, fast, count):
            ours.append(waits(each, run)[2])
            theirs.append(waits(update(each, WAITING), run)[2])
        found[name] = ratio(theirs, ours)
    figure = min(found.values(), key=lambda one: one.value)
    return Outcome(
        f"at least {PARITY:.0%} of the queries a second without streaming",
        "of those without streaming, "
        + "; ".join(f"{name} {said(one)}" for name, one in found.items()),
        figure.low >= PARITY,
        figure=figure,
        needed=PARITY,
    )


def under_pressure(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """`slowest` where memory is short."""
    less = QUARTER if fast else {}
    ways: dict[str, Changes] = {name: {**changes, **less} for name, changes in LONG.items()}
    return hardest(each_way(config, fast, ways), lambda one: slowest(one, run, fast))


def slowest(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """The slowest hundredth's wait over that in the order of the config: of streaming in the order
    of queries or of no streaming at all, whichever is shorter; at full size told with most chunks
    first, too."""
    ways: dict[str, Changes] = {"ours": {}, "old": BY_QUERY, "none": WAITING}
    ways |= {} if fast else {"most": MOST}
    found: dict[str, list[float]] = {name: [] for name in ways}
    assert isinstance(config.workload, Streamed)
    for each in drawn(config, fast, config.workload.count):
        for name, changes in ways.items():
            after, _, _ = waits(update(each, changes), run)
            found[name].append(float(np.quantile(after, 0.99)))
    ours, theirs, none = found["ours"], found["old"], found["none"]
    order, plain = ratio(ours, theirs), ratio(ours, none)
    figure = min(order, plain, key=lambda one: one.value)
    return Outcome(
        "a shorter wait of the slowest hundredth than streaming in the order of queries, and than "
        "without streaming",
        f"{np.mean(ours):.2f} s, {np.mean(theirs):.2f} s in the order of queries: {said(order)}; "
        f"{np.mean(none):.2f} s without streaming: {said(plain)}"
        + (f"; {np.mean(found['most']):.2f} s with most chunks first" if "most" in found else ""),
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def same_tokens(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers of queries whose context came in chunks, or was updated, beside those of queries that
    had all of it at once."""
    here = update(config, HERE)
    if not fast:
        here = update(here, {"workload.count": 12, "pages": 60})
    same, total = 0, 0
    for mode in ("append", "update"):
        one = update(here, {"workload.mode": mode})
        whole = {**WAITING, "workload.fault": "none", "pages": 512}
        ours, theirs = kept(run(one).blobs), kept(run(update(one, whole)).blobs)
        same += sum(name in ours and np.array_equal(ours[name], theirs[name]) for name in theirs)
        total += len(theirs)
    return Outcome(
        "every answer equal token for token",
        f"{same} of {total} answers, half of appended context, half of updated",
        same == total > 0,
        figure=Figure.exact(same / total, "%"),
        needed=1.0,
    )


def at(
    knob: str, judge: Callable[[InferenceConfig, RunConfig, bool], Outcome]
) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """A check of one draw with a knob at some value."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        asked = int(value) if knob.endswith(("chunks", "pages")) else value
        return judge(update(config, {knob: asked}), run, True)

    return judged


def pressed_at(config: InferenceConfig, pages: float, run: RunConfig, fast: bool) -> Outcome:
    """`slowest` of one draw with so many pages; of the small check's queries a quarter of them."""
    small: Changes = {**QUARTER, "pages": int(pages / 4)} if fast else {"pages": int(pages)}
    return slowest(update(config, small), run, True)


def kept_at(config: InferenceConfig, part: float, run: RunConfig, fast: bool) -> Outcome:
    """`sooner` of all draws of the claim where updates leave a part of the list alone."""
    return sooner(update(config, {"workload.kept": part}), run, fast)


def parity_at(knob: str) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """`parity` of devices that are never idle, with a knob at some value; five draws of fewer
    queries in full."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        asked = int(value) if knob.endswith("chunks") else value
        here = update(config, {**FLOOD, knob: asked})
        return parity({"": here}, run, fast, FEW)

    return judged
