"""NanoFlow's claims: settings they are checked under and what each check runs."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.nano_batches import NanoBatchedCost
from engine.inference.executors.costs.rank_memory import rank_cache, rank_weights
from engine.inference.executors.costs.ranked_step_cost import Cost
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.nano_batches import NanoBatches, NanoBatchesHere
from engine.inference.executors.tensors.nano_batches import NanoBatchedModel
from engine.inference.kept_tokens import kept
from engine.models.batch import Batch, pack
from engine.models.kv import PagedKV
from engine.models.loading.find import find
from engine.models.model import Model
from engine.models.ops import kernel_ops
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
LEAST = 0.59  # of the optimum
PLAIN, DRAWN = "one part, one kernel of attention", "drawn requests"
USED = 0.9  # of a device's memory, weights and cache together
IN_TURN: dict[str, Changes] = {
    "one part": {"executor.overlap": "none"},
    "two parts in turn": {"executor.overlap": "in_turn"},
}
# Lengths of prompts and answers of the repository's figure of throughput (llama-2-70b).
PUBLISHED = (512, 512), (1024, 512), (512, 1024)
# Models of its figures at 1,024 and 512 tokens: ranks and tokens of a step that its files give,
# tokens a second and device that NanoFlow served, and their share of the optimum.
PORTED = {
    "llama-2-70b": (8, 2048, 1263, 0.680),
    "llama-3.1-70b": (8, 2048, 1306, 0.706),
    "mixtral-8x7b": (8, 4096, 6564, 0.637),
    "llama-3.1-8b": (1, 1024, 12_756, 0.785),
}
# What the paper serves: 3,000 requests are enough that half of the steps lie between the first
# answers and the last prompts.
PAPER: Changes = {
    "model": "llama-2-70b",
    "executor.tensor_parallel": 8,
    "workload.count": 3000,
    "workload.prompt": {"median": 512, "spread": 0.5, "longest": 2000},
    "workload.output": {"median": 256, "spread": 0.5, "longest": 1000},
    "max_running": 2048,
    "step_tokens": 2048,
    "profile_every": 0,
}
LENGTHS = ("workload.prompt.median", "workload.output.median")
HERE: Changes = {
    "model": "stdlib-draft-1m",
    "dtype": "float32",
    "workload": {"kind": "uniform", "count": 6, "shortest": 8, "longest": 40},
    "sampling.max_tokens": 12,
    "page_size": 16,
    "pages": 64,
    "step_tokens": 64,
    "max_running": 4,
    "profile_every": 0,
}
ROWS, CONTEXT, TURNS = 24, 1500, 20  # of the passes that are timed here


def costs(config: InferenceConfig) -> tuple[Cost | NanoBatchedCost, Modelled]:
    """What steps of the config's design cost."""
    how = config.executor
    assert isinstance(how, Modelled)
    model = find(config.model).config
    whole = cost_of(model, device(how.device), config.dtype, how)
    return (NanoBatchedCost(whole, how) if isinstance(how, NanoBatches) else whole), how


def filled(config: InferenceConfig) -> InferenceConfig:
    """With all the pages that its devices have room for."""
    how, model = config.executor, find(config.model).config
    assert isinstance(how, Modelled)
    room = USED * device(how.device).capacity - rank_weights(model, how.ranks, config.dtype)
    each = config.page_size * rank_cache(model, how.ranks, config.dtype)
    return update(config, {"pages": max(1, int(room // each))})


def steady(config: InferenceConfig, cost: Cost | NanoBatchedCost) -> Shape:
    """A step of an endless queue: prompts and answers in the ratio of their lengths, answers half
    done in the mean, no more of them than fit the cache."""
    prompt, output = (getattr(config.workload, part).median for part in ("prompt", "output"))
    held = config.pages * config.page_size / (prompt + output / 2)
    answers = int(min(config.step_tokens * output / (prompt + output), held, config.max_running))
    left = min(config.step_tokens - answers, round(answers * prompt / output))
    chunks = [(min(prompt, left - at), 0) for at in range(0, left, prompt)]
    inner = cost.inner if isinstance(cost, NanoBatchedCost) else getattr(cost, "inner", cost)
    plain: Any = getattr(inner, "plain", inner)
    seen = int(answers * (prompt + output / 2))
    found: Shape = plain.counted(answers, seen, chunks, answers + len(chunks))
    return found


def rate(config: InferenceConfig) -> float:
    """Tokens a second and device of steady steps, prompts' and answers'."""
    cost, how = costs(config)
    shape = steady(config, cost)
    return shape.tokens / (cost.total(shape)[0] + how.per_step) / how.ranks.count


def served(config: InferenceConfig, run: RunConfig) -> float:
    """Tokens a second and device in the middle half of a run's steps."""
    log = run(config)
    assert isinstance(config.executor, Modelled)
    return middle(log) / config.executor.ranks.count


def middle(log: Log) -> float:
    """Tokens a second of the middle half of the steps."""
    spans = [span for span in log.of(Span) if span.lane == "engine" and span.name == "step"]
    own = spans[len(spans) // 4 : -(len(spans) // 4) or None]
    tokens = sum(sum(_counts(span.tag)) for span in own)
    return tokens / (own[-1].time - own[0].start)


def _counts(tag: str) -> list[int]:
    """Answers and tokens of prompts that a step computes."""
    return [int(part.partition("=")[2]) for part in tag.split()[:2]]


def rivals(config: InferenceConfig) -> dict[str, InferenceConfig]:
    """The same devices with operations one after another; at first with one kernel for attention of
    prompts and answers, as in the runs that the curves are fitted to."""
    how = config.executor
    assert isinstance(how, Modelled)
    plain = {"kind": "modelled", "device": how.device, "tensor_parallel": how.tensor_parallel}
    found = {PLAIN: update(config, {"executor": plain})}
    return found | {name: update(config, changes) for name, changes in IN_TURN.items()}


def over_rivals(
    config: InferenceConfig, of: Callable[[InferenceConfig], float]
) -> tuple[dict[str, float], float]:
    """What `of` tells of each rival, and of ours."""
    return {name: of(one) for name, one in rivals(config).items()}, of(config)


def throughput(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Tokens a second over those of the strongest rival on the same devices: of steady steps at
    the published figure's three lengths; at full size of draws of requests, served, by the one
    where less is gained."""
    config, told, ratios = update(config, PAPER), [], []
    for lengths in PUBLISHED:
        one = filled(update(config, dict(zip(LENGTHS, lengths, strict=True))))
        theirs, ours = over_rivals(one, rate)
        best = max(theirs, key=lambda name: theirs[name])
        ratios.append(ours / theirs[best])
        listed = ", ".join(f"{name} {value:,.0f}" for name, value in theirs.items())
        told.append(f"{lengths[0]} and {lengths[1]} tokens: {ours:,.0f} ({listed})")
    figure = Figure.exact(min(ratios), "×")
    if not fast:
        runs: dict[str, list[float]] = {}
        for turn in range(SEEDS):
            drawn = filled(update(config, {"seed": config.seed + turn}))
            theirs, own = over_rivals(drawn, lambda one: served(one, run))
            for name, value in {**theirs, "ours": own}.items():
                runs.setdefault(name, []).append(value)
        best = max(rivals(config), key=lambda name: float(np.mean(runs[name])))
        drawn_ones = Figure.ratio(runs["ours"], runs[best])
        figure = min(figure, drawn_ones, key=lambda one: one.value)
        listed = ", ".join(f"{name} {np.mean(each):,.0f}" for name, each in runs.items())
        told.append(f"{DRAWN}, served: {listed}; n = {SEEDS}")
    return Outcome(
        "more tokens a second than the same devices with operations one after another",
        f"tokens a second and device at {'; '.join(told)}: {figure.value:.2f}× "
        f"[{figure.low:.2f}, {figure.high:.2f}]",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def of_optimal(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Steady steps of each model over the optimum that its published share implies (the rate of
    products over twice the parameters): the smallest share."""
    told, shares = [], []
    for name, (ranks, tokens, published, share) in PORTED.items():
        changes = {"model": name, "executor.tensor_parallel": ranks, "step_tokens": tokens}
        lengths = dict(zip(LENGTHS, (1024, 512), strict=True))
        one = filled(update(config, {**PAPER, **changes, **lengths}))
        best, ours = published / share, rate(one)
        plain = rate(update(one, IN_TURN["one part"]))
        shares.append(ours / best)
        told.append(
            f"{name} {ours / best:.1%}, {ours:,.0f} tokens a second and device (published: "
            f"{share:.1%}, {published:,}; in one part {plain / best:.1%})"
        )
    figure = Figure.exact(min(shares), "%")
    return Outcome(
        "at least 59% of the optimum for every model",
        "; ".join(told),
        figure.value >= LEAST,
        figure=figure,
        needed=LEAST,
    )


def same_tokens(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers of two workers beside those of one pass."""
    here = update(config, HERE)
    if not here.executor.real:
        here = update(here, {"executor": "nano_batches_here"})
    if not fast:
        here = update(here, {"workload.count": 24, "sampling.max_tokens": 32, "pages": 512})
    ours, theirs = kept(run(here).blobs), kept(run(update(here, {"executor": "real"})).blobs)
    same = sum(name in ours and np.array_equal(ours[name], theirs[name]) for name in theirs)
    return Outcome(
        "every answer equal token for token",
        f"{same} of {len(theirs)} answers",
        same == len(theirs) > 0,
        figure=Figure.exact(same / len(theirs), "%"),
        needed=1.0,
    )


def gain_here(config: InferenceConfig, run: RunConfig, fast: bool, rows: int = ROWS) -> Outcome:
    """Passes of a batch of answers on this machine's cores, each design's turn after another: two
    workers, one pass with the same kernels, and the fused pass that is our quickest."""
    found = find("stdlib-5m")
    model = found.open("float32")
    how = config.executor if isinstance(config.executor, NanoBatchesHere) else NanoBatchesHere()
    batch, cache = _answers(model, rows)
    designs = {
        "two workers": NanoBatchedModel(model, how),
        "one pass, the same kernels": Model(
            model.config, model.weights, "float32", ops=kernel_ops()
        ),
        "one pass, fused": model,
    }
    seconds: dict[str, list[float]] = {name: [] for name in designs}
    for turn in range((3 if fast else TURNS) + 1):
        for name, each in designs.items():
            began = perf_counter()
            each.forward(batch, cache)
            if turn:
                seconds[name].append(perf_counter() - began)
    ours, *others = seconds
    best = min(others, key=lambda name: float(np.median(seconds[name])))
    figure = Figure.ratio(seconds[best], seconds[ours])
    same = Figure.ratio(seconds[others[0]], seconds[ours])
    listed = ", ".join(f"{name} {np.median(each) * 1e3:.3g} ms" for name, each in seconds.items())
    return Outcome(
        "sooner than the quickest pass in one part",
        f"{rows} answers of {CONTEXT:,} tokens: {listed}; {same.value:.2f}× beside the same "
        f"kernels, {figure.value:.2f}× [{figure.low:.2f}, {figure.high:.2f}] beside the quickest",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def _answers(model: Model, rows: int) -> tuple[Batch, PagedKV]:
    """A batch in which every sequence decodes, over caches of random numbers."""
    pages = -(-(CONTEXT + 1) // 16)
    cache = PagedKV(model.spec, rows * pages, 16)
    for layer in cache.layers:
        for each in layer.values():
            each.normal_()
    tables = [list(range(n * pages, (n + 1) * pages)) for n in range(rows)]
    return pack([[5 + n] for n in range(rows)], [CONTEXT] * rows, tables, 16), cache


def at_rows(config: InferenceConfig, rows: float, run: RunConfig, fast: bool) -> Outcome:
    """`gain_here` of a batch of so many answers."""
    return gain_here(config, run, fast, int(rows))


def at(knob: str) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """Steady steps over the strongest rival's with a knob at some value."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        whole = knob.endswith(("median", "tokens"))
        one = filled(update(config, {**PAPER, knob: int(value) if whole else value}))
        theirs, ours = over_rivals(one, rate)
        ratio = Figure.exact(ours / max(theirs.values()), "×")
        return Outcome(
            "more tokens a second than the same devices with operations one after another",
            f"{ours:,.0f} tokens a second and device, the best rival {max(theirs.values()):,.0f}",
            ratio.value > 1,
            figure=ratio,
            needed=1.0,
        )

    return judged
