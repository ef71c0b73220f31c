"""FlashAttention-2's claims: settings they are checked under and what each check runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean, median

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.kernels.attention import OPERATOR, tiles_cpu
from engine.kernels.attention.arguments import KEYS
from engine.kernels.attention.cases import case
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.attention.executors.real import Real
from engine.kernels.attention.gradients import Algorithm
from engine.kernels.attention.policies.tiled import Tiled
from engine.kernels.attention.run import BUSY, ERROR, KERNELS, MEMORY
from engine.kernels.attention.split import all_pairs
from workbench.study import Changes, Figure, Outcome, RunConfig

SINGLE = 2e-5  # relative: what float32 leaves of thousands of terms
HEADS: Changes = {"split": "heads"}
PROCESSORS, LEAST_BUSY = 108, 0.9  # of an A100; the share of their time, which is ours
TILES = "tiles_cpu"  # the variant that is FlashAttention-2; torch's own attention is another
FORWARD: Changes = {"backward": False, "checked": False, "workers": "real"}
TOKENS, WIDTH = 16384, 2048  # such kernels are compared at so many in all, and heads · size
BEST, BEFORE = 0.73, 0.4  # of an A100's peak: the paper's best, and FlashAttention's (abstract)
A100: Changes = {
    "workers": "modelled", "workers.device": "a100-sxm-80gb", "tokens": TOKENS, "kv_heads": 16,
    "dim": 128, "backward": False,
}  # fmt: skip
ODD: Changes = {
    "tokens": 333, "sequences": 3, "spread": 0.8, "kv_heads": 2, "share": 3, "dim": 40,
    "causal": False,
}  # fmt: skip


def levels(log: Log, name: str) -> dict[str, float]:
    """The highest value of the levels of that name, by lane."""
    found: dict[str, float] = {}
    for level in log.of(Level):
        if level.name == name:
            found[level.lane] = max(level.value, found.get(level.lane, 0.0))
    return found


def kernel(log: Log, name: str = "forward") -> Span:
    """The span of a whole kernel."""
    return next(s for s in log.of(Span) if s.lane == KERNELS and s.name == name)


def exact(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Outputs and gradients: as set (shorter), and grouped heads of odd lengths and sizes."""
    here: Changes = {"workers": "real", "backward": True, "sequences": 1}
    settings = [{"tokens": 700, "kv_heads": 1, "share": 1, "dim": 64}, ODD]
    if not fast:
        settings += [{"tokens": 2000, "dim": 128}, {**ODD, "causal": True, "dim": 256}]
    worst, what = 0.0, ""
    for setting in settings:
        found = levels(run_config(update(config, {**here, **setting})), ERROR)
        worst, what = max((worst, what), *((error, name) for name, error in found.items()))
    return Outcome(
        f"o, dq, dk and dv of {len(settings)} shapes within {SINGLE:.0e} of float64's",
        f"largest error {worst:.1e} ({what})",
        0 < worst <= SINGLE,
        figure=Figure.exact(worst),
        needed=SINGLE,
    )


def linear_memory(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Bytes beside inputs and results at N, 2N and 4N tokens, forward and backward."""
    start = 192 if fast else 768
    plain: Changes = {"workers": "real", "backward": True, "sequences": 1, "kv_heads": 1,
                      "share": 1, "dim": 64}  # fmt: skip
    taken = [
        levels(run_config(update(config, {**plain, "tokens": start * n})), MEMORY)[KERNELS]
        for n in (1, 2, 4)
    ]
    growth = (taken[2] - taken[1]) / (taken[1] - taken[0])
    return Outcome(
        "twice the tokens add twice as much (2 ± 0.1; 4 where scores are kept)",
        f"{growth:.2f}×; {', '.join(f'{t / 1024:.0f}' for t in taken)} KiB "
        f"at {', '.join(str(start * n) for n in (1, 2, 4))} tokens",
        abs(growth - 2) <= 0.1,
        figure=Figure.exact(growth, "×"),
        needed=2.1,
    )


def work_split(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One head: query-key pairs dealt to 2 processors and to 108, counted; by rows and by heads."""
    return _busy(config, run_config, ((2, 2048), (PROCESSORS, TOKENS)))


def work_split_at(
    config: AttentionConfig, tokens: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same on 108 processors at so many tokens; a whole head keeps one of them busy."""
    found = _busy(config, run_config, ((PROCESSORS, int(tokens)),))
    return replace(found, needed=LEAST_BUSY * PROCESSORS)


def _busy(
    config: AttentionConfig, run_config: RunConfig, shapes: Sequence[tuple[int, int]]
) -> Outcome:
    """How busy so many processors are with one head of so many tokens, by rows and by heads."""
    found, heads = [], []
    for units, tokens in shapes:
        changes = {**A100, "workers.units": units, "tokens": tokens, "kv_heads": 1, "share": 1}
        for busy, split in ((found, {}), (heads, HEADS)):
            log = run_config(update(config, {**changes, **split}))
            busy.append(levels(log, BUSY)["forward"])
    gains = [ours / theirs for ours, theirs in zip(found, heads, strict=True)]
    named, rows, whole = (
        " and ".join(each)
        for each in (
            [str(units) for units, _ in shapes],
            [f"{share:.0%}" for share in found],
            [f"{share:.0%}" for share in heads],
        )
    )
    return Outcome(
        f"one head keeps {named} processors at least {LEAST_BUSY:.0%} busy",
        f"{rows} (a head each: {whole})",
        min(found) >= LEAST_BUSY,
        figure=Figure(min(gains), min(gains), max(gains), "×"),
        needed=1.0,
    )


def gain_here(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """One head on two threads of this machine, against the head as one item; in turns.

    One and a half is more than items of 2,048 rows could come to, 4 to 3 by pairs, and is ours.
    """
    return gain_at(update(config, {"kv_heads": 1}), 4096, run_config, fast)


def gain_at(config: AttentionConfig, tokens: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of the config's heads, at so many tokens."""
    shape: Changes = {**FORWARD, "workers.count": 2, "share": 1, "sequences": 1,
                      "tokens": int(tokens), "dim": 128}  # fmt: skip
    rows, heads = [], []
    for _ in range(7 if fast else 21):
        for times, changes in ((rows, shape), (heads, {**shape, **HEADS})):
            span = kernel(run_config(update(config, changes)))
            times.append(span.stop - span.start)
    gain = Figure.ratio(heads, rows)
    return Outcome(
        "at least 1.5× on two threads (95% interval)",
        f"{gain.value:.2f}× ({gain.low:.2f} to {gain.high:.2f}, {gain.n} turns)",
        gain.low >= 1.5,
        figure=gain,
        needed=1.5,
    )


def not_slower(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Forward against torch's scaled_dot_product_attention, float32, 8 heads, in turns.

    The figure is that of the worst shape: no slower at any length, size and mask.
    """
    lengths = (512, 1024) if fast else (512, 1024, 2048, 4096)
    return _least_over_torch(config, run_config, lengths, (True, False), 5 if fast else 9)


def not_slower_at(
    config: AttentionConfig, tokens: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same at so many tokens under the config's mask: the worse of two head sizes."""
    lengths, masks = (int(tokens),), (config.causal,)
    return _least_over_torch(config, run_config, lengths, masks, 5 if fast else 9)


def _least_over_torch(
    config: AttentionConfig, run_config: RunConfig, lengths: Sequence[int], masks: Sequence[bool],
    rounds: int,
) -> Outcome:  # fmt: skip
    """The worst of so many shapes beside torch, each of so many rounds."""
    found: dict[str, Figure] = {}
    for tokens, dim, causal in product(lengths, (64, 128), masks):
        changes = {**FORWARD, "kv_heads": 8, "share": 1, "sequences": 1, "tokens": tokens,
                   "dim": dim, "causal": causal}  # fmt: skip
        where = f"{tokens} tokens of {dim}, {'causal' if causal else 'dense'}"
        found[where] = _over_torch(update(config, changes), run_config, rounds)
        if found[where].value < 0.5:  # no doubt left
            break
    where = min(found, key=lambda shape: found[shape].low)
    least, mean = found[where], fmean(figure.value for figure in found.values())
    return Outcome(
        "no slower than torch at any length, size and mask (95% intervals)",
        f"least {least.value:.2f}× ({least.low:.2f} to {least.high:.2f}; {where}), mean "
        f"{mean:.2f}× of {len(found)} shapes",
        least.low >= 1.0,
        figure=least,
        needed=1.0,
    )


def _over_torch(config: AttentionConfig, run_config: RunConfig, rounds: int) -> Figure:
    """Torch's time over ours, of turns beside one another.

    Ours is the tiled variant that models call on this processor, with tiles of the width that is
    set; its work items dealt out one by one, as the study shows them, cost Python between items.
    Where there are no tiles or others do the work, the study's own run is timed.
    """
    given = dict(
        case("", (config.tokens,), config.kv_heads, config.kv_heads, config.dim,
             causal=config.causal).make(config.seed, torch.float32)
    )  # fmt: skip
    q, k, v = (given[name].transpose(0, 1)[None].contiguous() for name in OPERATOR.inputs)
    width = config.scores.keys if isinstance(config.scores, Tiled) else KEYS
    ours = Algorithm(partial(tiles_cpu.forward, keys=width), tiles_cpu.backward).attention
    if width == KEYS:  # as models call it
        ours = partial(OPERATOR, variant=TILES)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(**given),
        "torch": lambda: scaled_dot_product_attention(q, k, v, is_causal=config.causal),
    }
    for call in calls.values():  # compiled, and read once
        call()
    taken: dict[str, list[float]] = {"ours": [], "torch": []}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
        if config.scores != Tiled(keys=width) or config.workers != Real():
            span = kernel(run_config(config))
            taken["ours"][-1] = span.stop - span.start
    return Figure.ratio(taken["torch"], taken["ours"])


def a100(config: AttentionConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The paper's setting on a modelled A100: part of peak, and gain over a head a processor."""
    config = update(config, A100)
    fractions, gains = [], []
    lengths = (2048, 16384) if fast else (512, 1024, 2048, 4096, 8192, 16384)
    for dim, tokens, causal in product((64, 128), lengths, (True, False)):
        heads, sequences = WIDTH // dim, TOKENS // tokens
        changes = {"tokens": tokens, "sequences": sequences, "kv_heads": heads, "dim": dim,
                   "share": 1, "spread": 0.0, "causal": causal}  # fmt: skip
        shaped = update(config, changes)
        span = kernel(run_config(shaped))
        v1 = kernel(run_config(update(shaped, HEADS)))
        pairs = all_pairs(shaped.lengths, shaped.lengths, shaped.causal)
        rate = 4 * pairs * heads * dim / (span.stop - span.start)
        fractions.append(rate / shaped.workers.sheet().peak("bfloat16"))
        gains.append((v1.stop - v1.start) / (span.stop - span.start))
    return Outcome(
        "50–73% of peak everywhere; over a whole head a processor at least 1.5× by the median",
        f"{min(fractions):.0%}–{max(fractions):.0%}; {min(gains):.2f}× to {max(gains):.1f}×, "
        f"median {median(gains):.1f}×",
        min(fractions) >= 0.5 and max(fractions) <= BEST and median(gains) >= 1.5,
        figure=Figure(max(fractions), min(fractions), max(fractions), "%"),
        needed=0.5,
    )


def a100_at(
    config: AttentionConfig, overlap: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same where so much of what is no product is done behind the products."""
    there: Changes = {"workers": "modelled", "workers.overlap": overlap}
    return a100(update(config, there), run_config, fast)
