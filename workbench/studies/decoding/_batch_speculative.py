"""Checks of batch speculative decoding's claims, and the settings they are made in."""

from collections.abc import Callable

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.core.measure import serving
from engine.inference.config import InferenceConfig
from workbench.regime import At
from workbench.studies._read import said_by
from workbench.study import Changes, Figure, Outcome, RunConfig

BATCH = 8
PLAIN: Changes = {"speculation": "none", "batching": "decode_first", "max_running": BATCH}
EQSPEC: Changes = {"batching": "decode_first", "max_running": BATCH}
PAGED: Changes = {**EQSPEC, "speculation.alignment": "paged"}
# A pair of the paper's on its generation of device, prompts of one length: rows of a batch come
# apart by what each of them accepts, and by nothing else.
DESCRIBED: Changes = {
    "executor": "modelled",
    "executor.device": "a100-sxm-80gb",
    "executor.curves": False,
    "model": "qwen3-8b",
    "speculation.model": "qwen3-0.6b",
    "speculation.tokens": 5,
    "dtype": "bfloat16",
    "pages": 4000,
    "workload.count": 24,
    "workload.shortest": 64,
    "workload.longest": 64,
    "sampling.max_tokens": 48,
}
SEEDS = 5  # workloads drawn for a modelled figure
DRAFTED = 3  # tokens a pass where the pair is really run, a choice of ours


def seconds(log: Log, name: str) -> float:
    """Seconds of all spans of a name."""
    return sum(span.stop - span.start for span in log.of(Span) if span.name == name)


def rate(log: Log) -> float:
    """Accepted tokens a second."""
    return serving(log).tokens_per_second


def with_seed(config: InferenceConfig, seed: int) -> InferenceConfig:
    """The same with another workload."""
    return update(config, {"seed": config.seed + seed})


def same_answers(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every request says greedily what it says alone and undrafted, however a batch is aligned."""
    short: Changes = {"workload.count": 12 if fast else 48, "sampling.max_tokens": 24}
    config = update(config, short)
    alone = said_by(run_config(update(config, {**PLAIN, "max_running": 1})))
    ways: dict[str, Changes] = {"grouped": {}, "padded": EQSPEC}
    if not fast:
        ways |= {"paged": PAGED, "in pairs": {**EQSPEC, "max_running": 2}}
    other = 0
    for way in ways.values():
        said = said_by(run_config(update(config, way)))
        other += sum(alone[thread] != said.get(thread) for thread in alone)
    count = len(alone) * len(ways)
    return Outcome(
        "every answer of every batch equal to plain greedy decoding, each request alone",
        f"{count - other} of {count} equal ({', '.join(ways)})",
        other == 0,
        figure=Figure.exact(other, "answers that differ"),
        needed=0.0,
    )


def realigning(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Of the time beyond the target's own passes, the share that EQSPEC realigns in."""
    return share_at(config, 1.0, run_config, fast)


def share_at(config: InferenceConfig, times: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same where realigning takes so many times a copy at the device's bandwidth."""
    config = update(config, {**DESCRIBED, **EQSPEC})
    shares = []
    for seed in range(SEEDS):
        log = run_config(with_seed(config, seed))
        aligned, drafted = times * seconds(log, "align"), seconds(log, "draft")
        shares.append(aligned / max(aligned + drafted, 1e-12))
    figure = Figure.mean(shares, "%")
    return Outcome(
        "some of drafting's and realigning's time",
        f"{figure.value:.1%} ({figure.low:.1%} to {figure.high:.1%}, {SEEDS} workloads)",
        figure.low > 0.0,
        figure=figure,
        needed=0.0,
    )


def over(
    config: InferenceConfig, rival: Changes, of: Callable[[Log], float], run_config: RunConfig,
    rounds: int = SEEDS,
) -> Figure:  # fmt: skip
    """A measure of a run over a rival's, of so many workloads. What is its own rival runs once."""
    ours, theirs = [], []
    for seed in range(rounds):
        here = with_seed(config, seed)
        there = update(here, rival)
        ours.append(of(run_config(here)))
        theirs.append(ours[-1] if here == there else of(run_config(there)))
    return Figure.ratio(ours, theirs)


def judged(expected: str, figure: Figure, needed: float = 1.0, less: bool = False) -> Outcome:
    """Whether all of a figure's interval lies on the right side of what is needed."""
    return Outcome(
        expected,
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}, {figure.n} workloads)",
        figure.high < needed if less else figure.low > needed,
        figure=figure,
        needed=needed,
    )


def batch_of_eight(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second of the study's batch over a batch of one."""
    return beside_one(config, 2 * BATCH, run_config)


def at_size(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of another batch, out of a pool three times as large."""
    own: Changes = {"batching.size": int(size), "max_running": 3 * int(size)}
    return beside_one(update(config, own), 2 * int(size), run_config)


def beside_one(config: InferenceConfig, requests: int, run_config: RunConfig) -> Outcome:
    """Tokens a second of so many requests over those of a batch of one."""
    some: Changes = {**DESCRIBED, "workload.count": requests, "sampling.max_tokens": 32}
    figure = over(update(config, some), {"batching.size": 1}, rate, run_config)
    return judged("more tokens a second than in a batch of one", figure)


def gain(config: InferenceConfig, run_config: RunConfig, rounds: int) -> Outcome:
    """Tokens a second over plain decoding of as many requests as ours has at hand."""
    size = config.max_running
    figure = over(config, {**PLAIN, "max_running": size}, rate, run_config, rounds)
    return judged(f"more tokens a second than plain decoding, {size} at once", figure)


def described(config: InferenceConfig, changes: Changes) -> InferenceConfig:
    """`config` on the described device; drafts where it has any."""
    told = {**DESCRIBED, **changes}
    if not config.speculation.drafts:
        told = {knob: value for knob, value in told.items() if not knob.startswith("speculation.")}
    return update(config, told)


def pays(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """On the described device, eight requests at hand for both, realigned after every step."""
    return gain(described(config, EQSPEC), run_config, SEEDS)


def pool_pays(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of batches out of the study's pool, beside plain decoding of all of that pool."""
    return gain(described(config, {}), run_config, SEEDS)


def pays_at(config: InferenceConfig, times: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of a pool of so many times a batch's requests."""
    return gain(described(config, {"max_running": int(times) * BATCH}), run_config, SEEDS)


def here(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Really run, on this machine: the shipped pair, one request at a time, on pages."""
    return at_drafts(config, DRAFTED, run_config, fast)


def at_drafts(config: InferenceConfig, tokens: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many drafts a pass."""
    one: Changes = {"batching": "decode_first", "max_running": 1, "workload.count": 4}
    if config.speculation.drafts:
        one = {**one, "speculation.alignment": "paged", "speculation.tokens": int(tokens)}
    return gain(update(config, one), run_config, 5 if fast else 9)


def at_batch(way: Changes) -> At:
    """So many requests at once on the described device, on pages."""

    def there(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
        told = {**way, "workload.count": max(8, int(size)), "sampling.max_tokens": 32}
        told |= {"max_running": int(size), "step_tokens": 8192}
        return gain(described(config, told), run_config, SEEDS)

    return there


def drafts(acceptance: float) -> Changes:
    return {"speculation.acceptance": acceptance}
