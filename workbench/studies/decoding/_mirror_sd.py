"""Checks of Mirror-SD's claims, and the settings they are made in."""

import numpy as np

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from workbench.regime import At
from workbench.studies._read import said_by
from workbench.study import Changes, Figure, Outcome, RunConfig

PLAIN: Changes = {"speculation": "none"}
SERIAL: Changes = {"speculation": "draft_model"}  # on the target's own device, before each step
# A pair of the paper's sizes, its smallest; both devices of one kind.
DESCRIBED: Changes = {
    "executor": "modelled",
    "executor.device": "a100-sxm-80gb",
    "executor.curves": False,
    "model": "qwen3-14b",
    "dtype": "bfloat16",
    "pages": 1000,
    "max_running": 1,
    "workload.count": 2,
    "workload.shortest": 64,
    "workload.longest": 64,
    "sampling.max_tokens": 32,
}
SMALL = "qwen3-0.6b"
LENGTHS = (2, 4, 6)  # drafts a step among which serial speculation has its best
SPLIT: Changes = {"executor.tensor_parallel": 2}  # the second device helps the first
SEEDS = 5
VOCABULARY = 4096  # of the shipped pair
LETTERS = 160  # of a piece of text that is gone on from
CHANCE = 10.0  # times by chance that are asked of an exit: ours, the abstract has no figure


def same_answers(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every request says greedily, alone and in a batch, what it says undrafted."""
    config = update(config, {"workload.count": 5 if fast else 32, "sampling.max_tokens": 16})
    alone = said_by(run_config(update(config, {**PLAIN, "max_running": 1})))
    said = said_by(run_config(update(config, {"max_running": 4})))
    other = sum(alone[thread] != said.get(thread) for thread in alone)
    return Outcome(
        "every answer equal to plain greedy decoding, each request alone",
        f"{len(alone) - other} of {len(alone)} equal",
        other == 0,
        figure=Figure.exact(other, "answers that differ"),
        needed=0.0,
    )


def foreseen(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How often the token that the target says after the kept drafts is among the candidates of
    its early exit, over how often as many tokens at random would hold it: of answers that are drawn
    after text it has not learnt, since greedy ones repeat themselves and are all foreseen."""
    shares = []
    for seed in range(config.seed, config.seed + SEEDS):
        asked = {"workload": {"kind": "prompts", "texts": beginnings(2 if fast else 24, seed)}}
        drawn = {**asked, "seed": seed, "sampling.temperature": 1.0, "sampling.max_tokens": 10}
        log = run_config(update(config, drawn))
        told = [level.value for level in log.of(Level) if level.name == "foreseen"]
        shares.append(sum(told) / max(1, len(told)))
    how = config.speculation.mirrors
    chance = how.candidates / VOCABULARY if how is not None else 1.0
    figure = Figure.mean([share / chance for share in shares], "×")
    return Outcome(
        f"over {CHANCE:g} times as often as by as many tokens at random",
        f"{sum(shares) / SEEDS:.0%} of steps foreseen, {figure.value:.0f}× as often as by chance "
        f"({figure.low:.0f} to {figure.high:.0f}, {SEEDS} workloads)",
        figure.low > CHANCE,
        figure=figure,
        needed=CHANCE,
    )


def beginnings(count: int, seed: int) -> list[str]:
    """Pieces of text that no model of ours has learnt from, drawn by a seed."""
    text = dataset("models/stdlib-5m/validation.txt").read_text("utf-8")
    places = np.random.default_rng(seed).integers(0, len(text) - LETTERS, count)
    return [text[at : at + LETTERS] for at in places]


def rate(log: Log) -> float:
    """Accepted tokens a second."""
    return serving(log).tokens_per_second


def described(config: InferenceConfig, more: Changes) -> InferenceConfig:
    """`config` on the described devices."""
    told = {**DESCRIBED, **more}
    if config.speculation.drafts:
        told["speculation.model"] = SMALL
    return update(config, told)


def rates(config: InferenceConfig, run_config: RunConfig) -> list[float]:
    """Tokens a second of each workload."""
    seeds = range(config.seed, config.seed + SEEDS)
    return [rate(run_config(update(config, {"seed": seed}))) for seed in seeds]


def serially(config: InferenceConfig) -> list[InferenceConfig]:
    """The same drafts before each step, so many at a time."""
    said = config.speculation
    acceptance = said.rightness if said.drafts else 0.7
    own: Changes = {**SERIAL, "speculation.model": SMALL, "speculation.acceptance": acceptance}
    return [update(config, {**own, "speculation.tokens": length}) for length in LENGTHS]


def best(ways: list[InferenceConfig], run_config: RunConfig) -> list[float]:
    """Tokens a second of each workload, of the way that has most of all."""
    return max((rates(way, run_config) for way in ways), key=sum)


def judged(expected: str, figure: Figure) -> Outcome:
    """Whether all of a figure's interval lies above one."""
    return Outcome(
        expected,
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}, {figure.n} workloads)",
        figure.low > 1.0,
        figure=figure,
        needed=1.0,
    )


def below_serial(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second over serial speculation's, with the draft length that suits that best."""
    return beside_serial(described(config, {}), run_config)


def equal_devices(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second over the best that two devices split by tensor parallelism give: plain
    decoding, or serial speculation at its best length."""
    config = described(config, {})
    split = [update(way, SPLIT) for way in (update(config, PLAIN), *serially(config))]
    figure = Figure.ratio(rates(config, run_config), best(split, run_config))
    return judged("more tokens a second than both devices on one model at a time", figure)


def beside_serial(config: InferenceConfig, run_config: RunConfig) -> Outcome:
    """`config` over the same drafts before each step, on the target's device."""
    theirs = best(serially(config), run_config)
    figure = Figure.ratio(rates(config, run_config), theirs)
    return judged("more tokens a second than serial speculation at its best length", figure)


def over_plain(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second over plain decoding's."""
    return beside_plain(described(config, {}), run_config)


def beside_plain(config: InferenceConfig, run_config: RunConfig) -> Outcome:
    """`config` over one token a step."""
    figure = Figure.ratio(rates(config, run_config), rates(update(config, PLAIN), run_config))
    return judged("more tokens a second than plain decoding", figure)


def at_acceptance(
    config: InferenceConfig, acceptance: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """Beside serial speculation, both with so many of their drafts right."""
    return beside_serial(described(config, {"speculation.acceptance": acceptance}), run_config)


def at_batch(which: str) -> At:
    """So many requests at once, beside plain decoding or serial speculation."""

    def there(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
        many: Changes = {"max_running": int(size), "workload.count": max(4, int(size))}
        config = described(config, {**many, "pages": 4000, "step_tokens": 8192})
        ask = beside_plain if which == "plain" else beside_serial
        return ask(config, run_config)

    return there
