"""BatchLLM's checks on jobs that share prefixes: their settings, and what each runs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations

import numpy as np

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.tags import facts
from engine.inference.config import InferenceConfig
from engine.inference.policies.prefix_groups import groups, saved
from engine.inference.requests.request import Request, Sampling
from engine.inference.workloads.workload import Source
from workbench.study import Changes, Figure, Outcome, RunConfig

JOBS = 5  # of a claim at full size that counts what a job took
LEAST = 1.1  # the paper's least gain over vLLM

# Streaming practice: first come first served, least recently used prefixes, requests counted.
STREAMING: Changes = {"ordering": "fcfs", "eviction": "lru", "admission": "greedy",
                      "max_running": 256}  # fmt: skip
# The strongest plain rival: streaming practice whose client sorts the job before sending it.
SORTED: Changes = {"workload.mixed": False}
MEMORY = 3250  # pages of 128 tokens: 54.5 GB, what an A100's 80 GB leave beside an 8B model at 90%
PREFIX = 8000  # tokens of a common prefix
GROUPS = 96  # of whose prefixes that memory holds half
# A job whose prefixes take about twice the memory that the device has.
DESCRIBED: Changes = {
    "executor": "modelled",
    "executor.device": "a100-sxm-80gb",
    "model": "llama-3.1-8b",
    "dtype": "bfloat16",
    "page_size": 128,
    "pages": MEMORY,
    "step_tokens": 2048,
    "max_running": 256,
    "workload.groups": GROUPS,
    "workload.per_group": 8,
    "workload.prefix": {"median": PREFIX, "longest": PREFIX},
    "workload.suffix": {"median": 200, "longest": 200},
    "workload.output": {"median": 100, "longest": 100},
}
COUNT, UNLIMITED = 256, 4096  # requests at once: vLLM's own limit, and none that memory allows
# Short prompts, of which memory holds more than any count of requests that is usual.
MANY: Changes = {
    "workload.groups": 128,
    "workload.prefix": {"median": 400, "longest": 400},
    "workload.suffix": {"median": 100, "longest": 100},
    "workload.output": {"median": 200, "longest": 200},
}
CONVERSATIONS = 80  # of a trace, that are one job
SCARCE, ROOMY = 8000, 50_000  # pages of 16 tokens: 17 GB, and what an H200 leaves beside the model
# A larger device under a recorded kind of load: conversations, all known.
TRACED: Changes = {
    **{knob: value for knob, value in DESCRIBED.items() if not knob.startswith("workload.")},
    "executor.device": "h200-sxm",
    "page_size": 16,
    "pages": ROOMY,
    "workload": "trace",
    "workload.file": "mooncake-like.jsonl",
    "workload.speed": 1e6,
}


def prompts_of(config: InferenceConfig) -> list[np.ndarray]:
    """The job's prompts as the engine will see them."""
    source = Source(vocab=1 << 15, context=1 << 20, sampling=config.sampling)
    return [request.prompt for request in config.workload.requests(source, config.seed)]


def best_saving(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The dynamic programme against every set of prefixes, on small random jobs."""
    random = np.random.default_rng(config.seed)
    rounds, equal = (40 if fast else 400), 0
    for _ in range(rounds):
        job = [random.integers(0, 2, random.integers(2, 7)) for _ in range(6)]
        equal += _planned_saving(config, job) == _brute_force(job)
    return Outcome(
        f"tokens saved equal the best of all prefix sets in {rounds} random jobs",
        f"equal in {equal}",
        equal == rounds,
        figure=Figure.exact((rounds - equal) / rounds, "%"),
        needed=0.0,
    )


def _planned_saving(config: InferenceConfig, job: list[np.ndarray]) -> int:
    """Tokens the ordering's plan for this job saves, page by page of one token."""
    requests = [Request(prompt.astype(np.int32), Sampling()) for prompt in job]
    ranking = config.ordering.prepare(requests, 1)
    if ranking is None:
        return 0
    planned = ranking.group_N >= 0
    _, first = np.unique(ranking.group_N[planned], return_index=True)
    shared = ranking.shared_N[planned]
    return int(shared.sum() - shared[first].sum())


def _brute_force(job: list[np.ndarray]) -> int:
    """Most tokens any set of prefixes can save, each prompt using its longest one."""
    texts = [tuple(prompt.tolist()) for prompt in job]
    heads = {text[:n] for text in texts for n in range(1, len(text))}
    shared = [head for head in heads if sum(_begins(text, head) for text in texts) > 1]
    best = 0
    for chosen in chain.from_iterable(combinations(shared, n) for n in range(5)):
        used = [max((len(h) for h in chosen if _begins(t, h)), default=0) for t in texts]
        best = max(best, sum(used) - sum(map(len, chosen)))
    return best


def _begins(text: tuple[int, ...], head: tuple[int, ...]) -> bool:
    return len(text) > len(head) and text[: len(head)] == head


def jobs(config: InferenceConfig, fast: bool) -> list[InferenceConfig]:
    """The config's job; at full size others of its kind too."""
    return [update(config, {"seed": config.seed + more}) for more in range(1 if fast else JOBS)]


def over(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Ours over theirs of each job; of one job a number that was counted."""
    if len(ours) == 1:
        return Figure.exact(ours[0] / theirs[0], "×")
    return Figure.ratio(ours, theirs)


def pair(config: InferenceConfig, run_config: RunConfig) -> tuple[Log, Log]:
    """The log under `config` and the one under streaming practice, same job and memory."""
    return run_config(config), run_config(update(config, STREAMING))


def less_recomputed(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Prompt tokens really computed here, against the fewest possible and against LRU."""
    found = []  # of each job: shares of its prompt tokens saved, by LRU, at most; and over fewest
    for each in jobs(config, fast):
        ours, streaming = (serving(log).prefilled for log in pair(each, run_config))
        job = prompts_of(each)
        total = sum(map(len, job))
        fewest = total - saved(groups(job, each.page_size))
        shares = (1 - tokens / total for tokens in (ours, streaming, fewest))
        found.append((*shares, ours / fewest))
    ours_J, theirs_J, most_J, beyond_J = zip(*found, strict=True)
    return Outcome(
        "fewer than with LRU (95% interval), every job within 5% of the fewest possible",
        f"saved {np.mean(ours_J):.1%} of prompt tokens, LRU {np.mean(theirs_J):.1%}, the most "
        f"possible {np.mean(most_J):.1%}; {np.mean(beyond_J):.3f} of the fewest, at most "
        f"{max(beyond_J):.3f}; n = {len(found)}",
        over(ours_J, theirs_J).low > 1 and max(beyond_J) <= 1.05,
        figure=over(ours_J, theirs_J),
        needed=1.0,
    )


def faster(pairs: Iterable[tuple[Log, Log]], what: str) -> Outcome:
    """Tokens per second of ours over streaming's, of runs beside one another."""
    speeds = [[serving(log).tokens_per_second for log in logs] for logs in pairs]
    ratio = over(*zip(*speeds, strict=True))
    return Outcome(
        f"{what}: {LEAST:g}× the tokens per second of streaming practice (95% interval)",
        f"{ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}], n = {ratio.n}",
        ratio.low >= LEAST,
        figure=ratio,
        needed=LEAST,
    )


def faster_here(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Really run, on this machine: the job's tokens per second against streaming practice."""
    return faster((pair(config, run_config) for _ in range(3 if fast else 5)), "on this machine")


def faster_described(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same scheduler on the virtual clock: Llama-3.1-8B on an A100 with all of its memory."""
    return _described(config, {}, run_config, fast)


def beside_sorted(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same job against streaming practice whose client sorts it before it is sent."""
    return sorted_with(config, 0.0, run_config, fast)


def sorted_with(config: InferenceConfig, spread: float, run: RunConfig, fast: bool) -> Outcome:
    """The same of answers whose lengths spread so far: the mean is that of the job."""
    answers = dict(DESCRIBED["workload.output"])
    if spread:  # of a log-normal length
        mean = answers["median"]
        answers = {"median": round(mean * np.exp(-(spread**2) / 2)), "spread": spread}
    jobs = described(config, {"workload.output": answers}, fast)[: 1 if fast else JOBS]
    rival = {**STREAMING, **SORTED}
    pairs = ((run(each), run(update(each, rival))) for each in jobs)
    return faster(pairs, "beside a sorted job")


def with_groups(config: InferenceConfig, count: float, run: RunConfig, fast: bool) -> Outcome:
    """The same of a job with so many common prefixes."""
    return _described(config, {"workload.groups": int(count)}, run, fast)


def with_memory(config: InferenceConfig, pages: float, run: RunConfig, fast: bool) -> Outcome:
    """The same with so many pages of 128 tokens."""
    return _described(config, {"pages": int(pages)}, run, fast)


def _described(
    config: InferenceConfig, changes: Changes, run_config: RunConfig, fast: bool
) -> Outcome:
    at = {**DESCRIBED, **changes}
    what = f"{at['workload.groups']} prefixes of {PREFIX:,} tokens, {at['pages']:,} pages of 128"
    return faster((pair(each, run_config) for each in described(config, changes, fast)), what)


def described(config: InferenceConfig, changes: Changes, fast: bool) -> list[InferenceConfig]:
    """Jobs for the described device; in small the same memory in pages of 256: fewer events. A
    sorted one is one job: all of its lengths are given, and a seed turns but the order."""
    at = {**DESCRIBED, **changes}
    if fast:
        at |= {"page_size": 256, "pages": at["pages"] // 2}
    first = update(config, at)
    drawn = (3 if fast else JOBS) if first.workload.mixed else 1  # type: ignore[union-attr]
    return [update(first, {"seed": seed}) for seed in range(drawn)]


def faster_on_trace(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Conversations of the shipped trace, a part of it after another each as one offline job:
    Llama-3.1-8B on an H200 with all of its memory. At full size all parts as one job are told.
    """
    found, told = trace_in(config, ROOMY, run_config, fast), []
    if fast:
        return found
    for pages in (ROOMY, SCARCE):
        whole = traced(config, pages, JOBS * CONVERSATIONS)
        ours, theirs = (serving(log).tokens_per_second for log in pair(whole, run_config))
        told.append(f"{ours / theirs:.2f}× in {pages:,} pages")
    return replace(found, measured=f"{found.measured}; all as one job {' and '.join(told)}")


def trace_in(config: InferenceConfig, pages: float, run: RunConfig, fast: bool) -> Outcome:
    """The same in so many pages of 16 tokens."""
    first = traced(config, pages, CONVERSATIONS // 2 if fast else CONVERSATIONS)
    count = first.workload.count  # type: ignore[union-attr]
    parts = (update(first, {"workload.first": count * n}) for n in range(JOBS))
    return faster((pair(each, run) for each in parts), f"in {pages:,.0f} pages")


def traced(config: InferenceConfig, pages: float, count: int) -> InferenceConfig:
    """So many conversations of the shipped trace, or of a person's own, as one job."""
    changes = {**TRACED, "workload.count": count, "pages": int(pages)}
    if config.workload.kind == "trace":
        changes["workload.file"] = config.workload.file
    return update(config, changes)


def larger_batches(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Mean requests decoded together where memory is the limit, over the same with a count."""
    return over_count(config, COUNT, run_config, fast)


def over_count(config: InferenceConfig, count: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same against so many requests at once; order, eviction and admission are alike. All
    requests are of one length, so that jobs of other seeds come to the same count."""
    job = update(config, {**DESCRIBED, **MANY})
    ours, theirs = (
        _decoded(run_config(update(job, {"max_running": most}))) for most in (UNLIMITED, int(count))
    )
    figure = Figure.exact(ours / theirs, "×")
    return Outcome(
        f"more requests in a step than where {int(count):,} may run at once, all else alike",
        f"{ours:.0f} against {theirs:.0f}",
        figure.value > 1,
        figure=figure,
        needed=1.0,
    )


def _decoded(log: Log) -> float:
    """Requests that a step decodes together, on average over steps that decode any."""
    steps = [span for span in log.of(Span) if span.lane == "engine" and span.name == "step"]
    together = [int(facts(step.tag)["decode"]) for step in steps]
    return float(np.mean([count for count in together if count]))
