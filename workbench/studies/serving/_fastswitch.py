"""FastSwitch's claims: settings they are checked under and what each check runs."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from engine.core.config import update
from engine.core.events import Level, Page
from engine.core.log import Log
from engine.core.measure import served
from engine.inference.config import InferenceConfig
from engine.inference.kept_tokens import kept
from workbench.hardest import hardest
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
REQUESTS = 80  # of a draw at full size
BLOCKWISE: Changes = {"preemption": "swap"}
RECOMPUTED: Changes = {"preemption": "recompute"}
# Tokens of a page of the plain rival that has fewer copies to issue: of 16 to 256 those with which
# its tail is shortest on other draws (seeds 100 to 104), on which ours is with the study's 16.
LARGER = 64
RIVALS = {"block-wise swap": BLOCKWISE, "recomputation": RECOMPUTED}
IN_LARGER = f"block-wise in pages of {LARGER}"
WORKS = DRAWN, TALKS = "drawn prompts", "conversations"
# The shipped trace like Mooncake's, its lengths halved: 100 requests of it, from each of `WINDOWS`.
CONVERSATIONS: Changes = {
    "workload": {
        "kind": "trace", "file": "mooncake-like.jsonl", "count": 100, "shrink": 2, "speed": 3.0,
    },
    "pages": 2500,
    "host_pages": 30_000,
}  # fmt: skip
WINDOWS = (0, 75, 150, 225, 300)
# Really run here: a small model, so few pages that priorities preempt, a draw every few steps.
HERE: Changes = {
    "model": "stdlib-draft-1m",
    "dtype": "float32",
    "executor": "real",
    "workload.count": 10,
    "workload.rate": 0.0,
    "workload.prompt": {"median": 50, "spread": 0.4, "longest": 90},
    "workload.output": {"median": 40, "spread": 0.3, "longest": 60},
    "pages": 28,
    "host_pages": 400,
    "preemption.room": 4,
    "ordering.every": 3,
}
ALONE: Changes = {"ordering": "fcfs", "preemption": "recompute", "pages": 400}  # nobody yields
Measure = Callable[[Log], float]


def first_tokens(log: Log, share: float = 0.95) -> float:
    """Seconds to the first token that 95 of 100 requests keep to."""
    found = (request.time_to_first_token for request in served(log).values())
    return float(np.quantile([each for each in found if each is not None], share))


def between_tokens(log: Log, share: float = 0.999) -> float:
    """Seconds between tokens that 999 of 1000 keep to."""
    times = (request.tokens for request in served(log).values())
    return float(np.quantile(np.concatenate([np.diff(each) for each in times]), share))


def drawn(config: InferenceConfig, fast: bool) -> list[InferenceConfig]:
    """Draws of the study's requests; the small check has one, as it stands."""
    if fast:
        return [config]
    more = {"workload.count": REQUESTS} if config.workload.kind == "poisson" else {}
    return [update(config, {**more, "seed": config.seed + n}) for n in range(SEEDS)]


def conversations(config: InferenceConfig) -> list[InferenceConfig]:
    """Parts of the trace."""
    traced = update(config, CONVERSATIONS)
    return [
        update(traced, {"workload.first": first, "seed": config.seed + n})
        for n, first in enumerate(WINDOWS)
    ]


def larger(config: InferenceConfig, size: int = LARGER) -> Changes:
    """Block-wise swap in larger pages of the same memory, whose copies are as many fewer."""
    grown = size // config.page_size
    pages: Changes = {"pages": config.pages // grown, "host_pages": config.host_pages // grown}
    return {**BLOCKWISE, "page_size": size, **pages}


def over_rivals(
    configs: list[InferenceConfig],
    run: RunConfig,
    measure: Measure,
    rivals: Mapping[str, Changes] | None = None,
) -> dict[str, Figure]:
    """A rival's measure over ours, of runs of the same requests and priorities."""
    ours = [measure(run(one)) for one in configs]
    found = {}
    rivals = rivals or {**RIVALS, IN_LARGER: larger(configs[0])}
    for name, changes in rivals.items():
        theirs = [measure(run(update(one, changes))) for one in configs]
        if len(configs) == 1:
            found[name] = Figure.exact(theirs[0] / ours[0], "×")
        else:
            found[name] = Figure.ratio(theirs, ours)
    return found


def over_strongest(found: dict[str, dict[str, Figure]]) -> Outcome:
    """The strongest rival's tail over ours, on the workload where that is closest."""
    figure = min(
        (ratio for ratios in found.values() for ratio in ratios.values()),
        key=lambda ratio: ratio.value,
    )
    told = "; ".join(
        f"{workload}: "
        + ", ".join(f"{n} {f.value:.2f}× [{f.low:.2f}, {f.high:.2f}]" for n, f in ratios.items())
        for workload, ratios in found.items()
    )
    return Outcome(
        "sooner than the strongest of block-wise swap, the same in larger pages, and recomputation "
        "(95% interval)",
        f"tail over ours: {told}; n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def sooner(config: InferenceConfig, run: RunConfig, fast: bool, measure: Measure) -> Outcome:
    """`over_strongest` of drawn prompts and, at full size, of conversations."""
    found = {DRAWN: over_rivals(drawn(config, fast), run, measure)}
    if not fast:
        found[TALKS] = over_rivals(conversations(config), run, measure)
    return over_strongest(found)


def at(knob: str, measure: Measure) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """`sooner` on drawn prompts with a knob at some value: draws as the small check's, of which
    the full map has five."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        one = update(config, {knob: value if isinstance(value, float) else int(value)})
        return over_strongest({DRAWN: over_rivals(as_small(one, fast), run, measure)})

    return judged


def at_share(config: InferenceConfig, share: float, run: RunConfig, fast: bool) -> Outcome:
    """The same of times between tokens that another share of them keep to."""
    measure = partial(between_tokens, share=share)
    return over_strongest({DRAWN: over_rivals(as_small(config, fast), run, measure)})


def first_at_share(config: InferenceConfig, share: float, run: RunConfig, fast: bool) -> Outcome:
    """`tail_first` on drawn prompts, of the time that another share of requests keep to."""
    measure = partial(first_tokens, share=share)
    return over_strongest({DRAWN: over_rivals(drawn(config, fast), run, measure)})


def at_page(config: InferenceConfig, size: float, run: RunConfig, fast: bool) -> Outcome:
    """The same beside block-wise swap in pages of one size alone."""
    rival = {f"in pages of {size:g}": larger(config, int(size))}
    return over_strongest({DRAWN: over_rivals(drawn(config, fast), run, first_tokens, rival)})


def as_small(config: InferenceConfig, fast: bool) -> list[InferenceConfig]:
    """Draws as the small check's, of which full maps have five."""
    return [update(config, {"seed": config.seed + n}) for n in range(1 if fast else SEEDS)]


def tail_first(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Times to first token that 95 of 100 keep to."""
    return sooner(config, run, fast, first_tokens)


def tail_between(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Times between tokens that 999 of 1000 keep to."""
    return sooner(config, run, fast, between_tokens)


def new_at(knob: str) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """`only_new` with a knob at some value, of draws as the small check's."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return new_share(as_small(update(config, {knob: int(value)}), fast), run)

    return judged


def told_last(log: Log, name: str) -> float:
    """What a count of the host link came to."""
    levels = [
        each.value for each in log.of(Level) if each.lane == "host link" and each.name == name
    ]
    return levels[-1] if levels else 0.0


def pages_a_copy(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Pages that one copy moves; counted once more from what left the device, without the kept."""
    grouped = config.preemption.kind == "block_groups"
    log = run(update(config, {"preemption.reuses": False} if grouped else {}))
    moved: list[tuple[float, str, int, int]] = [
        (event.time, event.state + event.owner, event.page, event.parent)
        for event in log.of(Page)
        if event.state in ("swap_out", "swap_in") and event.why != "still cached"
    ]
    before = [(None, None, -1, -1), *moved]
    groups = sum(
        (time, who) != (was, whose) or (page, host) != (last + 1, lay + 1)
        for (time, who, page, host), (was, whose, last, lay) in zip(moved, before, strict=False)
    )
    copies, pages = told_last(log, "copies"), told_last(log, "pages_copied")
    each = pages / max(copies, 1.0)
    return Outcome(
        "a copy for each run of pages side by side, and more than a page in each",
        f"{pages:,.0f} pages in {copies:,.0f} copies ({each:.1f} each), "
        f"{len(moved):,} pages in {groups:,} runs counted once more",
        (len(moved), groups) == (pages, copies) and each > 1,
        figure=Figure.exact(each, "pages"),
        needed=1.0,
    )


def only_new(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Pages that cross to the host over those that leave for it, of preempted requests; at full
    size of conversations, too, by the workload where more cross."""
    works = {DRAWN: drawn(config, fast), **({} if fast else {TALKS: conversations(config)})}
    return hardest(works, lambda draws: new_share(draws, run), better="less")


def new_share(configs: list[InferenceConfig], run: RunConfig) -> Outcome:
    """The same of given draws."""
    shares = []
    for one in configs:
        log = run(one)
        left = sum(event.state == "swap_out" for event in log.of(Page))
        if left:
            shares.append(1.0 - min(1.0, told_last(log, "pages_kept") / left))
    expected = "fewer pages cross to the host than preempted requests have"
    if len(shares) < min(2, len(configs)):  # one of several draws has no interval
        return Outcome(expected, f"pages leave in {len(shares)} of {len(configs)} draws", False)
    figure = Figure.exact(shares[0], "%") if len(configs) == 1 else Figure.mean(shares, "%")
    return Outcome(
        expected,
        f"{figure.value:.1%} [{figure.low:.1%}, {figure.high:.1%}] of them, n = {figure.n}",
        figure.high < 1.0,
        figure=figure,
        needed=1.0,
    )


def same_tokens(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers of a model that is really run, with its pages swapped, beside those of nobody ever
    preempted."""
    swapped = update(config, HERE)
    log = run(swapped)
    ours, theirs = kept(log.blobs), kept(run(update(swapped, ALONE)).blobs)
    same = sum(np.array_equal(ours[name], theirs[name]) for name in theirs)
    times = sum(request.preemptions for request in served(log).values())
    reused = told_last(log, "pages_kept")
    return Outcome(
        "every answer is the one of a run without preemption, though pages left and came back",
        f"{same} of {len(theirs)} answers, {times} preemptions, {reused:.0f} pages kept",
        same == len(theirs) == swapped.workload.count and times > 0,
        figure=Figure.exact(same / len(theirs), "%"),
        needed=1.0,
    )
