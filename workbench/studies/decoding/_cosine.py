"""Checks of CoSine's claims, and the settings they are made in."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from engine.core.config import update
from engine.core.events import Token
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from engine.models.loading.find import beside as lying_beside
from workbench.regime import At
from workbench.studies._read import said_by
from workbench.study import Changes, Figure, Outcome, RunConfig

MODELS = ("stdlib-draft-1m", "stdlib-draft-windows", "stdlib-draft-formats")
TEXTS = ("stdlib-5m", "stdlib-draft-windows", "stdlib-draft-formats")  # held out, of each kind
LETTERS = 240  # of a piece of text that is gone on from
PLAIN: Changes = {"speculation": "none", "batching": "decode_first"}
IN_TURN: Changes = {"batching": "decode_first", "speculation.collaboration_fault": "in_turn"}
# A target on four devices of a data centre, each drafting model on a player's card.
DESCRIBED: Changes = {
    "executor": "modelled",
    "executor.device": "a100-sxm-80gb",
    "executor.tensor_parallel": 4,
    "executor.curves": False,
    "model": "qwen3-32b",
    "dtype": "bfloat16",
    "pages": 4000,
    "step_tokens": 8192,
    "workload.shortest": 64,
    "workload.longest": 64,
    "sampling.max_tokens": 32,
}
SMALL = "qwen3-0.6b"
NODE = "rtx-3090"
DEVICES = 4  # of the target
RENT = 0.15  # of a node, in those of one of the target's devices
GENERAL = 0.6  # modelled drafts of one model for all requests that are right …
SPECIAL = 0.7  # … and of a specialist (the policy's default)
LENGTHS, BRANCHES = (2, 3, 4, 6), (1, 2)  # drafts a step, and side by side, to choose from
MORE = (2, 4, 6, 8, 12)  # drafts of nodes
ADAPTIVE: Changes = {"speculation.adaptive": True, "speculation.tokens": MORE[-1]}
SEEDS = 5
UNTRIED, CHOOSING = 2000, 1  # seed and number of draws to choose by: others judge both sides


def same_answers(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every request says greedily, in groups that take turns, what it says alone undrafted."""
    config = update(config, {"workload": asked(2 if fast else 12, 0), "sampling.max_tokens": 16})
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


def asked(count: int, seed: int) -> Changes:
    """A workload of `count` pieces of held-out text of each kind."""
    draw, texts = np.random.default_rng(seed), []
    for name in TEXTS:
        text = dataset(f"models/{name}/validation.txt").read_text("utf-8")
        places = draw.integers(0, len(text) - LETTERS, count)
        texts += [text[at : at + LETTERS] for at in places]
    return {"kind": "prompts", "texts": tuple(texts)}


def accepted(log: Log) -> list[float]:
    """Tokens that a verification gives, the mean of each request."""
    times: dict[str, list[float]] = {}
    for token in log.of(Token):
        if token.accepted:
            times.setdefault(token.thread, []).append(token.time)
    # The first comes of the prompt (some say no more); those of one verification come at one time.
    said = [own for _, own in sorted(times.items()) if len(own) > 1]
    return [(len(own) - 1) / max(1, len(set(own)) - 1) for own in said]


def alone_with(config: InferenceConfig, model: str) -> InferenceConfig:
    """As many drafts, as wide a tree, of one model for every request."""
    how = config.speculation
    one: Changes = {"kind": "draft_model", "tokens": how.drafts, "branches": how.width}
    return update(config, {"speculation": {**one, "model": model}, "batching": "decode_first"})


def above_one(config: InferenceConfig, run: RunConfig, fast: bool, each: int = 72) -> Outcome:
    """Tokens a verification, over those with the model that is the best for all requests alone."""
    text = asked(4 if fast else each, config.seed)
    here = update(config, {"workload": text, "sampling.max_tokens": 16 if fast else 32})
    how = here.speculation.collaborates
    models = [lying_beside(here.model, name) for name in (how.models if how else MODELS)]
    ours = accepted(run(update(here, {"speculation.models": models}) if how else here))
    theirs = {name: accepted(run(alone_with(here, name))) for name in models}
    most = max(theirs, key=lambda name: sum(theirs[name]))
    return judged(f"more than {most} alone", Figure.ratio(ours, theirs[most]), noun="requests")


def judged(expected: str, figure: Figure, less: bool = False, noun: str = "workloads") -> Outcome:
    """Whether all of a figure's interval lies on the right side of one."""
    return Outcome(
        expected,
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}, {figure.n} {noun})",
        figure.high < 1.0 if less else figure.low > 1.0,
        figure=figure,
        needed=1.0,
    )


def described(config: InferenceConfig, batch: int, general: float = GENERAL) -> InferenceConfig:
    """`config` on the described devices, `batch` requests at once out of twice as many."""
    told = {**DESCRIBED, "max_running": batch, "workload.count": 2 * batch}
    if config.speculation.collaborates is not None:
        told |= {"speculation.models": (SMALL,) * len(MODELS), "speculation.node": NODE}
        told |= {"speculation.apart": general}
    return update(config, told)


def runs(config: InferenceConfig, run_config: RunConfig, count: int = SEEDS) -> list[Log]:
    """One of each workload."""
    seeds = range(config.seed, config.seed + count)
    return [run_config(update(config, {"seed": seed})) for seed in seeds]


def rates(config: InferenceConfig, run_config: RunConfig, count: int = SEEDS) -> list[float]:
    """Tokens a second."""
    return [serving(log).tokens_per_second for log in runs(config, run_config, count)]


def rivals(config: InferenceConfig, batch: int, general: float) -> list[InferenceConfig]:
    """The target alone, of twice as many requests as it has at once: plain, and with the best of
    its drafting models on its own devices, in chains and in trees."""
    plain = update(config, {**PLAIN, "max_running": batch, "workload.count": 2 * batch})
    own: Changes = {"kind": "draft_model", "model": SMALL, "acceptance": general}
    serial: list[Changes] = [
        {**own, "tokens": length, "branches": wide} for length, wide in product(LENGTHS, BRANCHES)
    ]
    return [plain, *(update(plain, {"speculation": how}) for how in serial)]


def designs(config: InferenceConfig, fast: bool) -> list[InferenceConfig]:
    """Ways to let nodes draft: two or three of them, one or two for a request, with more drafts or
    fewer, beside the target or in turn with it. The small check asks the config's own alone."""
    how = config.speculation.collaborates
    if fast or how is None:
        return [config]
    ways = product((2, 3), (1, 2), LENGTHS, BRANCHES, (1, 2))
    return [
        update(config, {
            "speculation.models": how.models[:nodes], "speculation.routed": routed,
            "speculation.tokens": length, "speculation.branches": wide,
            "batching": {"kind": "alternating", "groups": groups},
        })
        for nodes, routed, length, wide, groups in ways
    ]  # fmt: skip


def best(ways: list[InferenceConfig], worth: Callable[[InferenceConfig], float]) -> InferenceConfig:
    """The way that is worth most in draws by which nothing is judged."""
    if len(ways) == 1:
        return ways[0]
    return max(ways, key=lambda way: worth(update(way, {"seed": way.seed + UNTRIED})))


def dearer(config: InferenceConfig, rent: float) -> float:
    """What target and nodes cost, in those of the target alone."""
    how = config.speculation.collaborates
    return 1.0 + len(how.models if how else MODELS) * rent / DEVICES


def at_equal_cost(
    config: InferenceConfig, run_config: RunConfig, fast: bool, rent: float = RENT,
    batch: int = 16, general: float = GENERAL,
) -> Outcome:  # fmt: skip
    """Tokens a second, over what as much money gives by targets alone: so many more of them, each
    with so many fewer requests at once. `general`: share of one model's drafts that are right."""

    def worth(way: InferenceConfig) -> float:
        return sum(rates(way, run_config, CHOOSING)) / dearer(way, rent)

    here = best(designs(described(config, batch, general), fast), worth)
    cost = dearer(here, rent)
    share = math.ceil(batch / cost)  # more than their share of the requests, which favours them
    there = best(rivals(here, share, general), worth)
    theirs = [cost * rate for rate in rates(there, run_config)]
    figure = Figure.ratio(rates(here, run_config), theirs)
    return beside("more tokens a second", figure, here, there)


def beside(
    expected: str, figure: Figure, here: InferenceConfig, there: InferenceConfig, less: bool = False
) -> Outcome:
    """The outcome at equal cost, with what was chosen for either side."""
    outcome = judged(f"{expected} than as much money gives without nodes", figure, less)
    how, own = here.speculation.collaborates, there.speculation
    groups = getattr(here.batching, "groups", 1)
    told = f"{len(how.models) if how else 0} nodes, {how.routed if how else 0} for a request, "
    told += f"{here.speculation.drafts} drafts, {here.speculation.width} side by side, {groups} "
    told += f"groups; without nodes {own.drafts} drafts, {own.width} side by side"
    return replace(outcome, measured=f"{outcome.measured}; {told}")


def throughput(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second at equal cost."""
    return at_equal_cost(config, run_config, fast)


def latency(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Mean seconds from a request's first token to its last, over what as much money gives."""
    return latency_at(config, 16, run_config, fast)


def latency_at(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many requests at once."""
    batch = int(size)

    def worth(way: InferenceConfig) -> float:
        return -sum(waits(way, run_config, CHOOSING))

    here = best(designs(described(config, batch), fast), worth)
    share = max(1, math.floor(batch / dearer(here, RENT)))
    there = best(rivals(here, share, GENERAL), worth)
    figure = Figure.ratio(waits(here, run_config), waits(there, run_config))
    return beside("fewer seconds a token", figure, here, there, less=True)


def waits(config: InferenceConfig, run_config: RunConfig, count: int = SEEDS) -> list[float]:
    """Mean seconds between a request's tokens."""
    return [serving(log).time_per_output_token.mean for log in runs(config, run_config, count)]


def pipelined(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second, over the same nodes drafting before each verification of all requests."""
    return pipelined_at(config, 16, run_config, fast)


def pipelined_at(
    config: InferenceConfig, size: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with so many requests at once."""
    here = described(config, int(size))
    figure = Figure.ratio(rates(here, run_config), rates(update(here, IN_TURN), run_config))
    return judged("more tokens a second than drafting and verifying in turn", figure)


def adaptive(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second with drafts that follow the load, over the best fixed number of them."""
    return adaptive_at(config, 16, run_config, fast)


def adaptive_at(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many requests at once."""
    here = described(config, int(size))
    ours = rates(update(here, ADAPTIVE), run_config)
    fixed: Changes = {"speculation.adaptive": False, "speculation.collaboration_fault": "none"}
    ways = [update(here, {**fixed, "speculation.tokens": length}) for length in MORE]
    there = best(ways, lambda way: sum(rates(way, run_config, CHOOSING)))
    figure = Figure.ratio(ours, rates(there, run_config))
    return judged("more tokens a second than with the best fixed number of drafts", figure)


def at_batch(config: InferenceConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
    """So many requests at once."""
    return at_equal_cost(config, run_config, fast, batch=int(size))


def at_acceptance(config: InferenceConfig, right: float, run: RunConfig, fast: bool) -> Outcome:
    """The share of a specialist's drafts that are right; a general model's falls and rises with it,
    as far behind."""
    if config.speculation.collaborates is not None:
        config = update(config, {"speculation.acceptance": right})
    return at_equal_cost(config, run, fast, general=right * GENERAL / SPECIAL)


def at_general(config: InferenceConfig, right: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The share of one model's drafts for all requests that are right, beside specialists'."""
    return at_equal_cost(config, run_config, fast, general=right)


def at_rent(batch: int) -> At:
    """A node's rent, in those of one of the target's devices, with so many requests at once."""

    def there(config: InferenceConfig, rent: float, run_config: RunConfig, fast: bool) -> Outcome:
        return at_equal_cost(config, run_config, fast, rent, batch)

    return there


def routed(config: InferenceConfig, models: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`above_one` where so many of the models draft for each request."""
    return above_one(update(config, {"speculation.routed": int(models)}), run_config, fast, 24)
