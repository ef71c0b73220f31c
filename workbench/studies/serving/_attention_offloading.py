"""Attention offloading's claims: settings they are checked under and what each check runs."""

import re
import tomllib
from collections.abc import Callable

import numpy as np

from engine.core.config import update
from engine.core.events import Move, Span
from engine.core.log import Log
from engine.core.paths import dataset
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.offloaded_cost import crossing
from engine.inference.executors.costs.rank_memory import rank_cache, rank_weights
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.offloaded import Offloaded
from engine.inference.kept_tokens import kept
from engine.models.loading.find import find
from workbench.studies.serving._offloaded_ranks import HELD
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
Check = Callable[[InferenceConfig, RunConfig, bool], Outcome]
USED = 0.9  # of a device's memory, weights and cache together
WAVES = 3  # requests over those that fit at once
PLAIN = "modelled"
COMPUTE = "h100-sxm"
# Homogeneous fleets, by device: tensor-parallel ranks tried of each.
HOMOGENEOUS = {COMPUTE: (1, 2, 4, 8), "rtx-3090": (2, 4, 8)}
FEW = (4,)  # the size that the small check and maps try
COSTS = tomllib.loads(dataset("gpu_prices.toml").read_text())["dollars"]
# Grouped heads: a ninth of the bytes a token and layer; weights that two H100 hold.
GROUPED: Changes = {
    "model": "llama-2-70b", "executor.tensor_parallel": 2, "executor.attention_devices": 16,
    "max_running": 4096, "step_tokens": 8192,
}  # fmt: skip
# Lengths like those of Azure's conversations, cut where the model ends.
AZURE: Changes = {
    "workload.prompt": {"median": 800, "spread": 0.9, "longest": 3500},
    "workload.output": {"median": 130, "spread": 0.8, "longest": 500},
}
OWN, LIKE_AZURE, SHARED = WORKS = (
    "heads with keys of their own", "lengths like Azure's", "grouped heads",
)  # fmt: skip
# Really run here: a small model, so few pages that requests wait and prefixes are found again.
HERE: Changes = {
    "model": "stdlib-draft-1m",
    "dtype": "float32",
    "workload": {"kind": "uniform", "count": 6, "shortest": 8, "longest": 40},
    "sampling.max_tokens": 12,
    "page_size": 16,
    "pages": 16,
    "step_tokens": 64,
    "max_running": 4,
}


def hourly(config: InferenceConfig) -> float:
    """Dollars for an hour of all devices."""
    executor = config.executor
    assert isinstance(executor, Modelled)
    cost: float = COSTS[executor.device] * executor.ranks.count
    if isinstance(executor, Offloaded):
        cost += COSTS[executor.attention_device] * executor.attention_devices
    return cost


def pages(config: InferenceConfig) -> int:
    """Pages that the devices have room for; 0 where they do not hold the weights."""
    executor, model = config.executor, find(config.model).config
    assert isinstance(executor, Modelled)
    ranks, room = executor.ranks, USED * device(executor.device).capacity
    left = room - rank_weights(model, ranks, config.dtype)
    each = config.page_size * rank_cache(model, ranks, config.dtype)
    if isinstance(executor, Offloaded) and left > 0:
        left = USED * device(executor.attention_device).capacity * executor.attention_devices
        each *= ranks.tensor
    return max(0, int(left // each))


def filled(config: InferenceConfig) -> InferenceConfig | None:
    """With all the pages there is room for, and requests for several batches of them."""
    count = pages(config)
    work = config.workload
    mean = work.prompt.median + work.output.median  # type: ignore[attr-defined]
    fit = min(config.max_running, count * config.page_size // mean)
    if fit < 1:
        return None
    return update(config, {"pages": count, "workload.count": WAVES * fit})


def generated(log: Log, counted: float = 0.0) -> float:
    """Tokens a second of the steps in which answers alone are computed, while requests wait;
    `counted`: the share that counts of those with prompts."""
    found = []
    for span in log.of(Span):
        if span.lane == "engine" and span.name == "step":
            decodes, prompts = map(int, re.findall(r"=(\d+)", span.tag)[:2])
            found.append((decodes, prompts, span.time - span.start))
    steps_S3 = np.array(found)
    last = int(np.flatnonzero(steps_S3[:, 1])[-1])
    own = steps_S3[: last + 1]
    share_S = np.where(own[:, 1] == 0, 1.0, counted)
    return float(share_S @ own[:, 0] / (share_S @ own[:, 2]))


def per_dollar(config: InferenceConfig, run: RunConfig, counted: float = 0.0) -> float:
    """Generated tokens for a dollar; 0 where the design holds no request."""
    one = filled(config)
    return 0.0 if one is None else generated(run(one), counted) * 3600 / hourly(one)


def plain(config: InferenceConfig, name: str, ranks: int) -> InferenceConfig:
    """The same requests on devices of one sort."""
    other = {"kind": PLAIN, "device": name, "tensor_parallel": ranks}
    return update(config, {"executor": other})


def gains(config: InferenceConfig, run: RunConfig, draws: int) -> tuple[dict[str, Figure], str]:
    """Tokens for a dollar over those of each sort of homogeneous fleet, its best size."""
    seeds = [update(config, {"seed": config.seed + n}) for n in range(draws)]
    ours = [per_dollar(one, run) for one in seeds]
    found, told = {}, [f"{np.mean(ours) / 1e6:.3g} M tokens for a dollar"]
    for name, every in HOMOGENEOUS.items():
        sizes = FEW if draws == 1 else every
        worth = {size: per_dollar(plain(seeds[0], name, size), run) for size in sizes}
        best = max(worth, key=lambda size: worth[size])
        if not worth[best]:
            continue
        theirs = [worth[best], *(per_dollar(plain(one, name, best), run) for one in seeds[1:])]
        ratio = Figure.exact(ours[0] / theirs[0], "×")
        found[name] = ratio if draws == 1 else Figure.ratio(ours, theirs)
        told.append(
            f"{best} {device(name).name} {np.mean(theirs) / 1e6:.3g} M: {said(found[name])}"
        )
    return found, ", ".join(told)


def said(figure: Figure) -> str:
    """A ratio with its interval."""
    return f"{figure.value:.2f}× [{figure.low:.2f}, {figure.high:.2f}]"


def beside(
    config: InferenceConfig, run: RunConfig, fast: bool, rivals: tuple[str, ...], expected: str
) -> Outcome:
    """Beside the strongest of some sorts of fleet; at full size of the model and the lengths where
    that is closer."""
    models: dict[str, InferenceConfig] = {OWN: config}
    if not fast:
        models[LIKE_AZURE] = update(config, AZURE)
        models[SHARED] = update(config, GROUPED)
    found = {name: gains(one, run, 1 if fast else SEEDS) for name, one in models.items()}
    figure = min(
        (ratios[name] for ratios, _ in found.values() for name in rivals if name in ratios),
        key=lambda ratio: ratio.value,
    )
    return Outcome(
        f"more tokens generated for a dollar than by {expected} (95% interval)",
        "; ".join(f"{name}: {told}" for name, (_, told) in found.items()) + f"; n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def throughput(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Beside the best fleet of either device."""
    return beside(config, run, fast, tuple(HOMOGENEOUS), "the best fleet of either device")


def over_compute(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Beside the best fleet of the compute device."""
    return beside(config, run, fast, (COMPUTE,), "the best fleet of the compute device")


def over(knob: str, check: Check) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """A small check of the study's model with a knob at some value."""

    def judged(config: InferenceConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(update(config, {knob: value}), run, True)

    return judged


def at_rent(
    rivals: tuple[str, ...],
) -> Callable[[InferenceConfig, float, RunConfig, bool], Outcome]:
    """Beside four or, of the cheaper device, eight of those sorts, of one draw, where an attention
    device rents for so many dollars an hour."""

    def judged(config: InferenceConfig, rent: float, run: RunConfig, fast: bool) -> Outcome:
        executor = config.executor
        assert isinstance(executor, Offloaded)
        cheap = executor.attention_device
        apart = (rent - COSTS[cheap]) * executor.attention_devices
        ours = per_dollar(config, run) * hourly(config) / (hourly(config) + apart)
        worth = {
            f"{size} {device(name).name}": per_dollar(plain(config, name, size), run)
            * (COSTS[cheap] / rent if name == cheap else 1.0)
            for name in rivals
            for size in ((*FEW, 8) if name == cheap else FEW)
        }
        best = max(worth, key=lambda name: worth[name])
        figure = Figure.exact(ours / worth[best], "×")
        told = f"{figure.value:.2f}× of {best} where an attention device rents for {rent:.2f} $"
        expected = "more tokens for a dollar than they generate"
        return Outcome(expected, told, figure.value > 1, figure=figure, needed=1.0)

    return judged


def with_prompts(config: InferenceConfig, counted: float, run: RunConfig, fast: bool) -> Outcome:
    """`over_compute` of one draw where that share of the steps with prompts counts, too; at full
    size over H100 as many as serve best."""
    sizes = FEW if fast else HOMOGENEOUS[COMPUTE]
    worth = {size: per_dollar(plain(config, COMPUTE, size), run, counted) for size in sizes}
    best = max(worth, key=lambda size: worth[size])
    figure = Figure.exact(per_dollar(config, run, counted) / worth[best], "×")
    return Outcome(
        "more tokens for a dollar than H100 generate",
        f"{figure.value:.2f}× of {best} H100 where {counted:.0%} of the prompts' steps count",
        figure.value > 1,
        figure=figure,
        needed=1.0,
    )


def same_tokens(config: InferenceConfig, run: RunConfig, fast: bool) -> Outcome:
    """Answers of two processes, one of which has the cache and the other the weights, beside those
    of one process; and the bytes between them beside what the model of the link is charged. At full
    size two processes share the heads."""
    apart = update(config, HERE)
    if not apart.executor.real:
        apart = update(apart, {"executor": "offloaded_here"})
    if not fast:
        more = {"workload.count": 24, "sampling.max_tokens": 32, "executor.workers": 2}
        apart = update(apart, more)
    log, alone = run(apart), run(update(apart, {"executor": "real"}))
    ours, theirs = kept(log.blobs), kept(alone.blobs)
    same = sum(np.array_equal(ours.get(name), theirs[name]) for name in theirs)
    spans = [span for span in log.of(Span) if span.lane == "engine" and span.name == "step"]
    tokens = sum(sum(map(int, re.findall(r"=(\d+)", span.tag)[:2])) for span in spans)
    crossed = sum(
        move.bytes for move in log.of(Move) if "query" in move.tag or "attention" in move.tag
    )
    charged = tokens * crossing(find(apart.model).config, apart.dtype)
    return Outcome(
        "every answer equal token for token, and as many bytes between them as are charged",
        f"{same} of {len(theirs)} answers; {crossed:,.0f} bytes crossed, {charged:,.0f} charged; "
        f"{' and '.join(f'{held:,.0f}' for held in log.blobs[HELD])} bytes of cache elsewhere",
        same == len(theirs) == apart.workload.count and crossed == charged,  # type: ignore[attr-defined]
        figure=Figure.exact(same / len(theirs), "%"),
        needed=1.0,
    )
