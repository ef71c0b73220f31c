"""Shift Parallelism's claims: settings they are checked under and what each check runs."""

import numpy as np

from engine.cluster.shifting_ranks import Step, alone, on_ranks
from engine.core.config import update
from engine.fleet.config import FleetConfig
from engine.fleet.measure import Served, served
from engine.inference.executors.modelled import Modelled
from engine.inference.policies.parallelism import Parallelism
from engine.inference.workloads.trace import FromTrace
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
# Rivals on the same eight devices, each with the pages that nine tenths of their memory leave.
HOW, STEP = "engine.executor.parallelism", "engine.step_tokens"
THRESHOLD = f"{HOW}.threshold"  # new tokens of a step above which it is shared by tokens
STUDYS = 8192  # tokens of a step as the study has them; one that is set otherwise is everybody's
TENSOR: Changes = {HOW: "tensor", "engine.pages": 226_000}
TOKENS: Changes = {HOW: "sequence", "engine.pages": 117_000}
DATA: Changes = {
    HOW: "tensor",
    "engine.executor.tensor_parallel": 1,
    "replicas": 8,
    "engine.pages": 14_600,
    "engine.max_running": 128,
    STEP: 1024,
}
QUARTERS: Changes = {
    HOW: "tensor",
    "engine.executor.tensor_parallel": 2,
    "replicas": 4,
    "engine.pages": 44_800,
    "engine.max_running": 256,
}
HALVES: Changes = {
    HOW: "tensor",
    "engine.executor.tensor_parallel": 4,
    "replicas": 2,
    "engine.pages": 105_000,
    "engine.max_running": 512,
}
RIVALS: dict[str, Changes] = {
    "tensor parallelism": TENSOR,
    "sequence parallelism": TOKENS,
    "eight replicas": DATA,
    "four of two devices each": QUARTERS,
    "two of four devices each": HALVES,
}
OURS = "shift parallelism"
SOONER, MORE = "time to a whole answer over ours", "tokens a second over"
# Of 256 to 16,384 tokens a step (powers of two), at each load those with which answers are soonest
# complete, and of requests that come at once (0) those with most tokens a second: on two draws
# (seeds 2000 and 2001) that nobody is judged by.
CHOSEN_AT = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # requests a second
CHOSEN: dict[str, tuple[int, ...]] = {
    OURS: (16384, 16384, 16384, 16384, 8192, 4096, 4096, 4096, 8192),
    "tensor parallelism": (16384, 16384, 16384, 16384, 8192, 8192, 8192, 4096, 4096),
    "sequence parallelism": (16384, 2048, 1024, 1024, 1024, 1024, 2048, 2048, 2048),
    "eight replicas": (1024, 2048, 2048, 1024, 256, 256, 256, 256, 256),
    "four of two devices each": (4096, 16384, 4096, 2048, 512, 256, 512, 512, 512),
    "two of four devices each": (8192, 8192, 16384, 16384, 4096, 4096, 4096, 4096, 4096),
}
RATE, CROWD, ALL = 2.0, 32.0, 800  # requests a second of interactive work, of a crowd; at once
LOADS, FEW_LOADS = (1.0, 4.0, 16.0, 32.0, 64.0), (2.0, 32.0)
# The shipped trace like Azure's: 5 requests a second, from each of `WINDOWS`.
TRACE: Changes = {"engine.workload": {"kind": "trace", "file": "azure-like.csv", "count": 80}}
TRACED, WINDOWS = 5.0, (0, 80, 160, 240, 320)
WORKS = DRAWN, TRACE_OF = "drawn requests", "the trace"
# Really run: a shipped model on two ranks, and at full size a larger one on four.
PROMPTS, ANSWER, EVERY = (9, 17, 5), 8, 2  # tokens; steps after which the next request joins
PAIRS: dict[str, tuple[int, int]] = {"stdlib-draft-1m": (2, 2)}  # model: ranks, groups
FOURS: dict[str, tuple[int, int]] = {"stdlib-5m": (4, 2)}
FEW = 2  # tokens of a step there above which it is shared by tokens
ROUNDING = 1e-5  # of the largest logit: sums over two ranks are added up in another order


def how(config: FleetConfig) -> Parallelism:
    """The policy of a config's replicas."""
    executor = config.engine.executor
    assert isinstance(executor, Modelled)
    return executor.parallelism


def same_answers(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Requests that come and go on real ranks, which share steps by tokens and by tensors, beside
    one process that has one request at a time: tokens and logits."""
    says = how(config)
    told, worst, other, kinds = [], 0.0, 0, set()
    for model, (ranks, groups) in {**PAIRS, **({} if fast else FOURS)}.items():
        random = np.random.default_rng(config.engine.seed)
        prompts = [random.integers(2, 4000, count).tolist() for count in PROMPTS]
        steps = planned(says)
        kinds |= {step.by_tokens for step in steps}
        wrong = getattr(says, "fault", "") == "head_order"
        truth = alone(model, prompts, ANSWER)
        for each in on_ranks(model, prompts, steps, ranks, groups, wrong):
            worst = max(worst, each.apart(truth))
            other += sum(a != b for a, b in zip(each.tokens, truth.tokens, strict=True))
        share = sum(step.by_tokens for step in steps)
        told.append(f"{model} on {ranks} ranks, {share} of {len(steps)} steps by tokens")
    return Outcome(
        "every answer that of one process, logits within rounding, both ways taken",
        f"{other} answers differ, logits by {worst:.2g} of the largest ({'; '.join(told)})",
        other == 0 and worst <= ROUNDING and len(kinds) == 2,
        figure=Figure.exact(other, "answers that differ"),
        needed=0.0,
    )


def planned(says: Parallelism) -> list[Step]:
    """Steps in which a request joins every so often, each as the policy shares it."""
    few = says.model_copy(update={"threshold": FEW})
    steps, asked = [], len(PROMPTS)
    for number in range(ANSWER + EVERY * (asked - 1)):
        here = [one for one in range(asked) if EVERY * one <= number < EVERY * one + ANSWER]
        tokens = sum(PROMPTS[one] if number == EVERY * one else 1 for one in here)
        steps.append(Step(here, few.by_tokens(tokens)))
    return steps


def drawn(config: FleetConfig, fast: bool, rate: float) -> list[FleetConfig]:
    """Draws of the study's requests at a load; 0: all at once."""
    count = ALL if not rate else int(np.clip(20 * rate, 60, 400))
    load = {"engine.workload.rate": rate, "engine.workload.count": count // 4 if fast else count}
    one = update(config, {**load, "tokens": False})
    seeds = range(1 if fast else SEEDS)
    return [update(one, {"engine.seed": config.engine.seed + seed}) for seed in seeds]


def works(config: FleetConfig, fast: bool, rate: float) -> dict[str, list[FleetConfig]]:
    """Draws of requests at a load and, at full size, parts of the trace at it."""
    return {
        DRAWN: drawn(config, fast, rate),
        **({} if fast else {TRACE_OF: traced(config, rate)}),
    }


def traced(config: FleetConfig, rate: float) -> list[FleetConfig]:
    """Parts of the trace at a load; 0: all at once."""
    one = update(config, {**TRACE, "engine.workload.speed": rate / TRACED if rate else 1e6})
    one = update(one, {"tokens": False})
    return [update(one, {"engine.workload.first": first}) for first in WINDOWS]


def chosen(name: str, config: FleetConfig) -> Changes:
    """A way's step at the searched load nearest to a config's; one that is set is everybody's."""
    if config.engine.step_tokens != STUDYS:
        return {STEP: config.engine.step_tokens}
    load = config.engine.workload
    rate = TRACED * load.speed if isinstance(load, FromTrace) else getattr(load, "rate", 0.0)
    if rate > 2 * CHOSEN_AT[-1]:
        rate = 0.0  # a trace so fast comes at once
    at = min(CHOSEN_AT, key=lambda one: abs(np.log((one + 0.01) / (rate + 0.01))))
    return {STEP: CHOSEN[name][CHOSEN_AT.index(at)]}


def ran(configs: list[FleetConfig], name: str, run: RunConfig, step: int) -> list[Served]:
    """What each comes to under ours or a rival's way, in steps of so many tokens; 0: of as many as
    suit it at that load."""
    way = RIVALS.get(name, {})
    asked = [
        update(one, {**way, **({STEP: step} if step else chosen(name, one))}) for one in configs
    ]
    return [served(run(one), one) for one in asked]


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Ours over theirs of each draw; of one draw a number without an interval."""
    if len(ours) == 1:
        return Figure.exact(ours[0] / theirs[0], "×")
    return Figure.ratio(ours, theirs)


def told(found: dict[str, Figure]) -> str:
    """Ratios by rival, each with its interval."""
    return ", ".join(f"{n} {f.value:.2f}× [{f.low:.2f}, {f.high:.2f}]" for n, f in found.items())


def sooner(
    configs: list[FleetConfig], run: RunConfig, step: int = 0
) -> tuple[dict[str, Figure], Figure]:
    """Each rival's mean time to a whole answer over ours, and by tensors to the first token."""
    ours, found = ran(configs, OURS, run, step), {}
    first = Figure.exact(1.0)
    for name, changes in RIVALS.items():
        theirs = ran(configs, name, run, step)
        found[name] = ratio(
            [each.end_to_end.mean for each in theirs], [each.end_to_end.mean for each in ours]
        )
        if changes is TENSOR:
            first = ratio([each.ttft.mean for each in theirs], [each.ttft.mean for each in ours])
    return found, first


def interactive(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Whole answers at low traffic, on drawn requests and, at full size, on a trace."""
    found: list[Figure] = []
    words = []
    for work, configs in works(config, fast, RATE).items():
        ratios, first = sooner(configs, run)
        found += ratios.values()
        words.append(
            f"{work}: {told(ratios)}; first tokens by tensor parallelism {first.value:.2f}×"
        )
    return over_nearest(found, SOONER, "; ".join(words))


def over_nearest(found: list[Figure], what: str, words: str) -> Outcome:
    """Judged beside the rival that comes nearest to us."""
    figure = min(found, key=lambda one: one.value)
    return Outcome(
        f"better than the best of {', '.join(RIVALS)} (95% interval)",
        f"{what}: {words}; n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def batch(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Tokens a second of requests that all come at once, over those of each rival."""
    found: list[Figure] = []
    words = []
    for work, configs in works(config, fast, 0.0).items():
        ratios = more_tokens(configs, run)
        found += ratios.values()
        words.append(f"{work}: {told(ratios)}")
    return over_nearest(found, MORE, "; ".join(words))


def more_tokens(configs: list[FleetConfig], run: RunConfig, step: int = 0) -> dict[str, Figure]:
    """Tokens a second over each rival's."""
    ours = [each.tokens_per_second for each in ran(configs, OURS, run, step)]
    return {
        name: ratio(ours, [each.tokens_per_second for each in ran(configs, name, run, step)])
        for name in RIVALS
    }


def every_load(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Whole answers at each of several loads, of drawn requests and, at full size, of the trace,
    beside whoever is quickest there; of each rival, where it comes nearest."""
    found, words = [], []
    nearest_of: dict[str, tuple[float, str]] = {}
    for rate in FEW_LOADS if fast else LOADS:
        for work, configs in works(config, fast, rate).items():
            ratios, _ = sooner(configs, run)
            nearest = min(ratios, key=lambda name: ratios[name].value)
            found.append(ratios[nearest])
            words.append(f"{work} at {rate:g}/s {told({nearest: ratios[nearest]})}")
            for name, each in ratios.items():
                here = each.value, f"{name} {each.value:.2f}× ({work} at {rate:g}/s)"
                nearest_of[name] = min(here, nearest_of.get(name, here))
    words.append("nearest of each: " + ", ".join(text for _, text in nearest_of.values()))
    return over_nearest(found, SOONER, "; ".join(words))


def at_load(config: FleetConfig, rate: float, run: RunConfig, fast: bool, step: int = 0) -> Outcome:
    """At one load; the small map has one draw."""
    ratios, _ = sooner(drawn(config, fast, rate), run, step)
    return over_nearest(list(ratios.values()), SOONER, told(ratios))


def at_prompt(config: FleetConfig, median: float, run: RunConfig, fast: bool) -> Outcome:
    """Interactive work with other prompts."""
    return at_load(update(config, {"engine.workload.prompt.median": int(median)}), RATE, run, fast)


def answers_at(config: FleetConfig, tokens: float, run: RunConfig, fast: bool) -> Outcome:
    """Interactive work where steps of more tokens than that are shared by tokens."""
    return at_load(update(config, {THRESHOLD: int(tokens)}), RATE, run, fast)


def tokens_at(config: FleetConfig, tokens: float, run: RunConfig, fast: bool) -> Outcome:
    """The same of requests that come at once."""
    return at_once(drawn(update(config, {THRESHOLD: int(tokens)}), fast, 0.0), run)


def tokens_of(config: FleetConfig, count: float, run: RunConfig, fast: bool) -> Outcome:
    """So many requests that come at once, in the steps that suit the claim's."""
    many: Changes = {"engine.workload.count": int(count)}
    return at_once([update(one, many) for one in drawn(config, fast, 0.0)], run)


def answers_in_steps(config: FleetConfig, tokens: float, run: RunConfig, fast: bool) -> Outcome:
    """Whole answers in a crowd where everybody's steps have so many tokens."""
    return at_load(config, CROWD, run, fast, int(tokens))


def tokens_in_steps(config: FleetConfig, tokens: float, run: RunConfig, fast: bool) -> Outcome:
    """Requests that come at once where everybody's steps have so many tokens."""
    return at_once(drawn(config, fast, 0.0), run, int(tokens))


def at_once(configs: list[FleetConfig], run: RunConfig, step: int = 0) -> Outcome:
    """Tokens a second of drawn requests beside the best rival."""
    ratios = more_tokens(configs, run, step)
    return over_nearest(list(ratios.values()), MORE, told(ratios))
