"""Checks of Mirror-SD's claims, and the settings they are made in."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np
import torch

from engine.core.config import update
from engine.core.events import Level, Span, Token
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from engine.inference.kept_tokens import kept
from engine.models.loading.find import find
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.folder import saved_weights
from workbench.regime import At
from workbench.studies._read import said_by
from workbench.study import Changes, Figure, Outcome, RunConfig

PLAIN: Changes = {"speculation": "none"}
SERIAL: Changes = {"speculation": "draft_model"}  # on the target's own device, before each step
# A pair of the paper's sizes, its smallest, on alike devices.
DESCRIBED: Changes = {
    "executor": "modelled",
    "executor.device": "a100-sxm-80gb",
    "executor.curves": False,
    "model": "qwen3-14b",
    "dtype": "bfloat16",
    "pages": 1000,
    "max_running": 1,
    "workload.count": 4,
    "workload.shortest": 64,
    "workload.longest": 64,
    "sampling.max_tokens": 128,
}
SMALL = "qwen3-0.6b"
LENGTHS = (2, 3, 4, 6, 8, 10, 12)  # drafts a step among which each side has its best …
BRANCHES = (1, 2)  # … in a chain; before the target also two side by side, as EAGLE-3's trees
CHOOSING = 3  # draws that a side's drafts are chosen by, and nothing is judged by
SPLIT: Changes = {"executor.tensor_parallel": 2}  # the second device helps the first
SEEDS = 5
LETTERS = 160  # of a piece of text that is gone on from
SAID = 10  # tokens of a drawn answer
SHIPPED = "stdlib-draft-1m"
UNTRIED = 2000  # seed of the first of the draws that drafts are chosen by
Ask: TypeAlias = Callable[[InferenceConfig, RunConfig, bool], Outcome]
Place: TypeAlias = tuple[list[int], list[int]]  # a request's tokens, and the places looked at


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
    its early exit, less how often it is among the draft model's own likeliest, or among those that
    a table has behind the token before, whichever knows more: of answers that are drawn after text
    the target has not learnt, since greedy ones repeat themselves and are all foreseen. The table
    is made from that text."""
    return drawn_at(config, 1.0, run_config, fast)


def drawn_at(
    config: InferenceConfig, temperature: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same of answers drawn at a temperature."""
    shares, plain = [], dict[str, list[float]](draft=[], table=[])
    likeliest = config.speculation.mirrors.candidates if config.speculation.mirrors else 1
    table = followers(config.model, likeliest)
    for seed in range(config.seed, config.seed + SEEDS):
        asked = {"workload": {"kind": "prompts", "texts": beginnings(2 if fast else 24, seed)}}
        drawn = {
            **asked,
            "seed": seed,
            "sampling.temperature": temperature,
            "sampling.max_tokens": SAID,
        }
        log = run_config(update(config, drawn))
        told = [level.value for level in log.of(Level) if level.name == "foreseen"]
        rows = [int(s.tag.rpartition("=")[2]) for s in log.of(Span) if s.name == "verify"]
        shares.append(float(np.average(told, weights=rows)) if told else 0.0)
        places = after_drafts(log)
        behind = [ids[at] in table.get(ids[at - 1], ()) for ids, ends in places for at in ends]
        plain["table"].append(float(np.mean(behind)))
        plain["draft"].append(by_draft(config, places, likeliest))
    rival = max(plain, key=lambda name: sum(plain[name]))
    figure = Figure.mean(np.subtract(shares, plain[rival]), "%")
    return Outcome(
        f"oftener than by the draft model's {likeliest} likeliest, or by the {likeliest} that "
        "follow the one before most often",
        f"{np.mean(shares):.1%} foreseen, {np.mean(plain['draft']):.1%} by the draft "
        f"model, {np.mean(plain['table']):.1%} by the table: difference "
        f"{figure.value:+.1%} [{figure.low:+.1%}, {figure.high:+.1%}], {SEEDS} workloads",
        figure.low > 0,
        figure=figure,
        needed=0.0,
    )


def with_candidates(
    config: InferenceConfig, count: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same where an early exit, and whoever it stands beside, names so many."""
    return foreseen(update(config, {"speculation.candidates": int(count)}), run_config, fast)


def by_draft(config: InferenceConfig, places: Sequence[Place], likeliest: int) -> float:
    """How often the draft model by itself has those tokens among so many of its likeliest."""
    folder = find(config.speculation.model if config.speculation.drafts else SHIPPED).folder
    assert folder is not None
    shape, weights = saved_weights(folder)
    found = []
    for ids, ends in places:
        with torch.inference_mode():
            likely_TK = dense(shape, weights, torch.tensor([ids]))[0].topk(likeliest).indices
        found += [ids[at] in likely_TK[at - 1].tolist() for at in ends]
    return float(np.mean(found))


def followers(model: str, count: int) -> dict[int, set[int]]:
    """Of each token so many that follow it most often in held-out text."""
    folder = find(model).folder
    assert folder is not None
    ids = Tokenizer(folder).encode(dataset("models/stdlib-5m/validation.txt").read_text("utf-8"))
    behind: dict[int, Counter[int]] = {}
    for before, token in pairwise(ids):
        behind.setdefault(before, Counter())[token] += 1
    return {
        before: {token for token, _ in own.most_common(count)} for before, own in behind.items()
    }


def after_drafts(log: Log) -> list[Place]:
    """Of each request its tokens, and where each verification's own stands behind the kept
    drafts."""
    times: dict[str, list[float]] = {}
    for token in log.of(Token):
        if token.accepted:
            times.setdefault(token.thread, []).append(token.time)
    found, tokens = [], kept(log.blobs)
    for thread, own in times.items():
        ids = tokens[thread].tolist()
        # Those of one verification come at one time; the first comes of the prompt, and the last
        # that may be said has no drafts before it where it comes by itself.
        ends = [n for n in range(1, len(own)) if own[n : n + 2] != [own[n]] * 2]
        if len(own) == SAID and ends[-2:] == [SAID - 2, SAID - 1]:
            ends.pop()
        found.append((ids, [len(ids) - len(own) + n for n in ends]))
    return found


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


def rates(config: InferenceConfig, run_config: RunConfig, count: int = SEEDS) -> list[float]:
    """Tokens a second of each workload."""
    seeds = range(config.seed, config.seed + count)
    return [rate(run_config(update(config, {"seed": seed}))) for seed in seeds]


def drafted(config: InferenceConfig) -> list[InferenceConfig]:
    """The same with more drafts a step or fewer, in chains and, where none are made beside the
    target, in trees; what drafts nothing is as it is."""
    if not config.speculation.drafts:
        return [config]
    widths = BRANCHES[:1] if config.speculation.mirrors else BRANCHES
    return [
        update(config, {"speculation.tokens": length, "speculation.branches": wide})
        for length, wide in product(LENGTHS, widths)
    ]


def before(config: InferenceConfig) -> list[InferenceConfig]:
    """Drafts before each step: a draft model's on the target's device, and the same that `config`
    has beside the target, as many from a pass, while the target waits."""
    if not config.speculation.mirrors:
        return serially(config)
    return [*serially(config), *drafted(update(config, {"speculation.mirror_fault": "in_turn"}))]


def serially(config: InferenceConfig) -> list[InferenceConfig]:
    """A draft model's drafts before each step, on the target's device."""
    said = config.speculation
    acceptance = said.rightness if said.drafts else 0.7
    model: Changes = {"speculation.model": SMALL, "speculation.acceptance": acceptance}
    return drafted(update(config, {**SERIAL, **model}))


def best(ways: list[InferenceConfig], run_config: RunConfig, fast: bool) -> InferenceConfig:
    """The way with most tokens a second in draws by which nothing is judged; in small of one."""

    count = 1 if fast else CHOOSING
    others = {"seed": ways[0].seed + UNTRIED}
    return max(ways, key=lambda way: sum(rates(update(way, others), run_config, count)))


def over(
    config: InferenceConfig, rivals: list[InferenceConfig], than: str, run_config: RunConfig,
    fast: bool,
) -> Outcome:  # fmt: skip
    """Tokens a second with the drafts that suit `config` best, over the best rival's, and whether
    all of the interval lies above one."""
    ours, theirs = best(drafted(config), run_config, fast), best(rivals, run_config, fast)
    figure = Figure.ratio(rates(ours, run_config), rates(theirs, run_config))
    told = f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}, {figure.n} workloads)"
    told += f", {said(ours)}; there {said(theirs)}"
    than = f"more tokens a second than {than}"
    return Outcome(than, told, figure.low > 1.0, figure=figure, needed=1.0)


def said(config: InferenceConfig) -> str:
    """What was chosen for a side."""
    how = config.speculation
    more = f"{how.mirrors.streamed} from a pass" if how.mirrors else f"{how.width} side by side"
    return f"{how.drafts} drafts, {more}"


def beside_split(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """`config` over the best that two devices split by tensor parallelism give: plain decoding, or
    serial speculation."""
    split = [update(way, SPLIT) for way in (update(config, PLAIN), *serially(config))]
    return over(config, split, "both devices on one model at a time", run_config, fast)


def beside_serial(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """`config` over the best drafts before each step."""
    return over(config, before(config), "serial speculation at its best", run_config, fast)


def beside_plain(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """`config` over one token a step."""
    return over(config, [update(config, PLAIN)], "plain decoding", run_config, fast)


def modelled(ask: Ask, more: Changes) -> Ask:
    """Beside a rival, on the described devices."""

    def there(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
        return ask(described(config, more), run_config, fast)

    return there


def at_acceptance(ask: Ask) -> At:
    """Beside a rival, both with so many of their drafts right."""

    def there(config: InferenceConfig, right: float, run_config: RunConfig, fast: bool) -> Outcome:
        return modelled(ask, {"speculation.acceptance": right})(config, run_config, fast)

    return there


def at_batch(ask: Ask) -> At:
    """Beside a rival, with so many requests at once."""

    def there(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
        many: Changes = {"max_running": int(size), "workload.count": max(4, int(size))}
        room = {"pages": 4000, "step_tokens": 8192}
        return modelled(ask, {**many, **room})(config, run_config, fast)

    return there


below_serial, equal_devices, over_plain = (
    modelled(ask, {}) for ask in (beside_serial, beside_split, beside_plain)
)
