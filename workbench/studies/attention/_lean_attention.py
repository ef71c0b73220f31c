"""LeanAttention's claims: settings they are checked under and what each check runs."""

from dataclasses import replace
from statistics import fmean

from engine.core.config import kinds, update
from engine.core.events import Level, Opened, Span
from engine.core.log import Log
from engine.core.tags import facts
from engine.kernels.paged_attention.executors.modelled import Modelled
from engine.kernels.paged_attention.run import TIMES, DecodeConfig
from engine.kernels.paged_attention.split import Split
from workbench.study import Changes, Figure, Outcome, RunConfig

MEAN = 1.73  # times FlashDecoding's speed, the paper's average
REACHES = (1.0, 4.0)  # how many times its share of bandwidth one processor may reach
SINGLE = 2e-5  # relative: what float32 leaves of thousands of terms

# Halved from 512k to 4k, on the paper's device.
DESCRIBED: Changes = {
    "workers": "modelled", "workers.device": "a100-sxm-80gb", "dtype": "float16", "points": 8,
    "context": 1 << 19, "batch": 2, "others": 1.0, "heads": 56, "kv_heads": 56, "dim": 64,
}  # fmt: skip
# Batches that fill an A100's 108 processors badly, ragged, and well.
BATCHES: tuple[Changes, ...] = (
    {},
    {"batch": 4},
    {"batch": 1, "heads": 32, "kv_heads": 32, "dim": 128},
    {"batch": 8, "others": 1 / 64, "heads": 64, "kv_heads": 8, "dim": 128},
)
RAGGED: Changes = {
    "workers": "real", "batch": 8, "context": 1 << 16, "others": 1 / 64, "heads": 8,
    "kv_heads": 1, "dim": 64, "points": 1, "dtype": "float32",
}  # fmt: skip


def exact(config: DecodeConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every split against plain attention in float64, on ragged contexts that cut mid-head."""
    small: Changes = {
        "workers": "real", "dtype": "float32", "batch": min(config.batch, 4), "context": 3001,
        "others": 0.37, "points": 1, "rounds": 1, "tile": 64,
    }  # fmt: skip
    errors = {}
    for kind in kinds(Split):
        log = run_config(update(config, {**small, "split": kind}))
        errors[kind] = max(level.value for level in log.of(Level) if level.name == "error")
    log = run_config(update(config, {**small, "split": "fixed_split", "split.parts": 5}))
    errors["five parts"] = max(level.value for level in log.of(Level) if level.name == "error")
    worst = max(errors, key=lambda kind: errors[kind])
    return Outcome(
        f"every one of {len(errors)} splits within {SINGLE:.0e} of plain attention in float64",
        f"largest error {errors[worst]:.1e} ({worst})",
        errors[worst] <= SINGLE,
        figure=Figure.exact(errors[worst]),
        needed=SINGLE,
    )


def tiles(log: Log) -> list[int]:
    """Key tiles each worker computed, from the log's spans."""
    opened = log.opened
    assert isinstance(opened, Opened)
    counted = dict.fromkeys(opened.facts["lanes"], 0)
    for span in log.of(Span):
        if span.name == "attend":
            counted[span.lane] += int(facts(span.tag)["tiles"])
    return list(counted.values())


def equal_work(config: DecodeConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tiles of the busiest and the idlest worker, over batches and numbers of workers."""
    gaps = []
    for changes in BATCHES:
        for workers in (108, 7):
            asked: Changes = {
                **DESCRIBED, **changes, "context": 10_000, "points": 1, "workers.count": workers
            }  # fmt: skip
            counted = tiles(run_config(update(config, asked)))
            gaps.append(max(counted) - min(counted))
    return Outcome(
        f"at most 1 tile between any two workers, in {len(gaps)} batches",
        f"at most {max(gaps)} tiles",
        max(gaps) <= 1,
        figure=Figure.exact(max(gaps), "tiles"),
        needed=1.0,
    )


def ratios(config: DecodeConfig, run_config: RunConfig, asked: Changes) -> dict[str, list[float]]:
    """Makespans of the other splits over this one's, modelled, at each context of each batch."""
    over: dict[str, list[float]] = {"per_head": [], "fixed_split": []}
    for changes in BATCHES:
        log = run_config(update(config, {**DESCRIBED, **changes, **asked}))
        ours = TIMES.read(log, config.split.kind)[1]
        for kind, found in over.items():
            found += (TIMES.read(log, kind)[1] / ours).tolist()
    return over


def described(config: DecodeConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The split's makespan against both others, 4k to 512k tokens, four batches, modelled.

    How much of the bandwidth one processor reaches while others idle is assumed: its range is the
    figure's interval.
    """
    by_reach = [ratios(config, run_config, {"workers.reach": reach}) for reach in REACHES]
    over, even = by_reach
    mean = {kind: fmean(found) for kind, found in over.items()}
    ends = [fmean(each["fixed_split"]) for each in by_reach]
    return Outcome(
        f"{MEAN}× fixed split-KV on average over 8 contexts of 4 batches, whether a processor "
        f"reaches its share of bandwidth or {REACHES[-1]:g}",
        f"mean {mean['fixed_split']:.2f}× fixed split-KV (at most "
        f"{max(over['fixed_split']):.2f}×), {mean['per_head']:.2f}× one worker a head; where one "
        f"reaches {REACHES[-1]:g} shares {fmean(even['fixed_split']):.2f}×",
        min(ends) >= MEAN,
        figure=Figure(mean["fixed_split"], min(ends), max(ends), "×"),
        needed=MEAN,
    )


def at_one(config: DecodeConfig, run_config: RunConfig, asked: Changes) -> Outcome:
    """The mean over batches (and contexts, where there are several) against fixed split-KV."""
    reach = config.workers.reach if isinstance(config.workers, Modelled) else REACHES[0]
    over = ratios(config, run_config, {"workers.reach": reach, **asked})["fixed_split"]
    found = fmean(over)
    return Outcome(
        f"{MEAN}× fixed split-KV", f"{found:.2f}×", found >= MEAN,
        figure=Figure.exact(found, "×"), needed=MEAN,
    )  # fmt: skip


def at_reach(config: DecodeConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    return at_one(config, run_config, {"workers.reach": value})


def at_context(config: DecodeConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    return at_one(config, run_config, {"context": int(value), "points": 1})


def here(config: DecodeConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Really computed on two threads: a 64k context among seven of 1k, the splits in turns.

    Judged with one run a worker, as in the paper. Told with four, dealt to whoever is free: a
    thread that the system takes away for a while then does not hold up half of the work.
    """
    found = with_others(config, RAGGED["others"] * RAGGED["context"], run_config, fast)
    if config.split.kind != "lean":
        return found
    four = _timed(config, {"split.runs": 4}, run_config, fast)
    fixed, alone = (four[kind].value for kind in ("fixed_split", "per_head"))
    told = f"{found.measured}; with four runs a worker {fixed:.2f}× and {alone:.2f}×"
    return replace(found, measured=told)


def with_others(
    config: DecodeConfig, tokens: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same where the seven have so many tokens, with one run a worker."""
    said = _timed(config, {"others": tokens / RAGGED["context"]}, run_config, fast)
    paper = said["fixed_split"]
    return Outcome(
        f"{MEAN}× fixed split-KV with one run a worker (95% interval)",
        f"{paper.value:.2f}× ({paper.low:.2f} to {paper.high:.2f}), over one worker a head "
        f"{said['per_head'].value:.2f}×",
        paper.low >= MEAN,
        figure=paper,
        needed=MEAN,
    )


def _timed(
    config: DecodeConfig, changes: Changes, run_config: RunConfig, fast: bool
) -> dict[str, Figure]:  # fmt: skip
    """Times of the other splits over ours of a ragged step, by kind."""
    ours, times = config.split.kind, dict[str, list[float]]()
    for _ in range(3 if fast else 7):
        log = run_config(update(config, {**RAGGED, **changes, "rounds": 5}))
        for kind in {ours, "per_head", "fixed_split"}:
            times.setdefault(kind, []).append(float(TIMES.read(log, kind)[1, -1]))
    return {kind: Figure.ratio(taken, times[ours]) for kind, taken in times.items()}
