"""Redco: tensor-parallel plans from two rules, training programs from three functions."""

import math

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.models.loading.find import find
from engine.training.derived_plans.config import PUBLIC, ShardRulesConfig, small
from engine.training.derived_plans.run import ERROR, LOSS, otherwise, run
from engine.training.shard_rules.plan import bytes_of_rank
from engine.training.shard_rules.rules import derive
from workbench.study import Break, Claim, Figure, Outcome, Reported, RunConfig, Study

SINGLE = 1e-5  # relative, of logits and gradients in float32
LOSSES = 1e-4  # relative, of losses after five steps: what single steps leave adds up
SHARE = 1.05  # of an eighth: norms and, with few key heads, keys are on more ranks than one
PIPELINES = ("language_modelling", "preferences")


def values(log: Log, name: str) -> dict[str, list[float]]:
    """The levels of that name by lane, in order."""
    found: dict[str, list[float]] = {}
    for level in log.of(Level):
        if level.name == name:
            found.setdefault(level.lane, []).append(level.value)
    return found


def by_hand(config: ShardRulesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Small and public models of all families, every weight of every layer."""
    wrong, models, count = list[str](), 0, 0
    for family, public in PUBLIC.items():
        for name, model in ((f"small {family}", small(family)), (public, find(public).config)):
            for ranks in (2, 4):
                apart = otherwise(model, update(config, {"family": family, "ranks": ranks}))
                models += 1
                count += apart
                if apart:
                    wrong.append(f"{name} on {ranks}: {apart}")
    return Outcome(
        f"no weight of {len(PUBLIC)} families split otherwise than by hand ({models} plans)",
        "; ".join(wrong[:3]) or "none",
        not wrong,
        figure=Figure.exact(count, "weights"),
        needed=0.0,
    )


def exact(config: ShardRulesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Logits and gradients of all families; eight ranks share four key heads."""
    worst, wrong, runs = 0.0, [], 0
    for family in PUBLIC:
        for ranks in (8,) if fast else (2, 3, 4, 8):
            sized = {"family": family, "ranks": ranks, "steps": 1, "rows": 2, "tokens": 12}
            found = values(run_config(update(config, sized)), ERROR)
            runs += 1
            off = max(map(max, found.values())) if len(found) == 2 else math.inf
            if off > SINGLE:
                wrong.append(f"{family} on {ranks}")
            worst = max(worst, off)
    return Outcome(
        f"{runs} plans run and give the dense forward's logits and gradients within {SINGLE:g}",
        f"largest error {worst:.1e}; wrong or not running: {', '.join(wrong) or 'none'}",
        not wrong,
        figure=Figure.exact(worst),
        needed=SINGLE,
    )


def three_functions(config: ShardRulesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Two programs that know nothing of ranks, trained over shards and in one process."""
    apart, fell, count = [], [], 0
    for pipeline in PIPELINES:
        for ranks in (2,) if fast else (2, 4, 8):
            log = run_config(update(config, {"pipeline": pipeline, "ranks": ranks, "steps": 5}))
            found = values(log, LOSS)
            count += 1
            if len(found) == 2:
                ours, true = found["sharded"], found["one process"]
                apart.append(max(abs(a / b - 1) for a, b in zip(ours, true, strict=True)))
                fell.append(ours[-1] < ours[0])
    return Outcome(
        f"{count} trainings whose losses fall and are one process's within {LOSSES:g}",
        f"{len(apart)} ran; largest difference {max(apart, default=math.inf):.1e}",
        len(apart) == count and all(fell) and max(apart) <= LOSSES,
        figure=Figure.exact(max(apart) if len(apart) == count else math.inf),
        needed=LOSSES,
    )


def even(config: ShardRulesConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Weights of a rank of eight, against an eighth of the model."""
    shares = {}
    for public in ("llama-3.1-70b", "qwen3-32b", "gemma-2-27b", "mixtral-8x7b", "qwen3-30b-a3b"):
        model = find(public).config
        whole = bytes_of_rank(model, derive(model, 1, config.rules), 1)
        part = bytes_of_rank(model, derive(model, 8, config.rules), 8)
        shares[public] = 8 * part / whole
    most = max(shares, key=lambda name: shares[name])
    return Outcome(
        f"each of 8 ranks holds at most {SHARE} eighths of the weights, 5 models",
        f"at most {shares[most]:.3f} ({most})",
        shares[most] <= SHARE,
        figure=Figure.exact(shares[most], "×"),
        needed=SHARE,
    )


STUDY = Study(
    slug="redco",
    driver=run,
    config=ShardRulesConfig(),
    views=("schedule", "curves", "levels"),
    about=(
        "Which part of which matrix does a rank hold? Two rules read it off names and shapes. In a "
        "fully connected block matrices are split along outputs and inputs in alternation: the "
        "last one writes back what the ones before it have read. In attention, what makes queries, "
        "keys and values is split along whole heads, and what writes back along the same heads. "
        "The derived plan is compared with the plans people wrote, weight by weight; then each "
        "rank's shards really run, one rank after the other in one process, joined by sums, and a "
        "program of three functions (collate, loss, predict) is trained over them. Every bar is a "
        "rank's work; the curves show weights a rank holds and the loss."
    ),
    tries=(
        ("Latent attention and experts on 8 ranks", {"family": "deepseek_v3", "ranks": 8}),
        (
            "One rule for all: latents break",
            {"family": "deepseek_v3", "rules.attention": "as_fully_connected"},
        ),
        ("Fused queries, keys and values, stored the other way", {"family": "gpt2", "ranks": 4}),
    ),  # fmt: skip
    presets={"experts": {"family": "mixtral", "ranks": 4}, "pairs": {"pipeline": "preferences"}},
    claims=(
        Claim(
            id="by-hand",
            sentence="Two rules give the plans that people wrote, for every family.",
            paper="two rules cover GPT-J, LLaMA, T5 and OPT (abstract)",
            reported=Reported(0.0, "equal", unit="weights"),
            finding="reproduced",
            why="of ten families of decoders, with serving engines' plans as what people wrote; of "
            "the paper's own four LLaMA is among them, T5 has an encoder and is not run",
            grade="exact",
            check=by_hand,
            broken=(
                Break({"rules.attention": "as_fully_connected"}, True, "heads are not known of"),
                Break({"rules.fully_connected": "in_order"}, True, "what reads alike takes turns"),
            ),
        ),
        Claim(
            id="exact",
            sentence="Shards cut by the rules compute what the whole model computes.",
            paper="perplexity as without model parallelism (section 2)",
            grade="exact",
            reported=Reported(0.0, "equal", tolerance=SINGLE),
            finding="reproduced",
            why=f"equal as far as float32 goes: {SINGLE:g}; logits and gradients stand for the "
            "paper's perplexity",
            check=exact,
            broken=(
                Break({"rules.fully_connected": "in_order"}, True, "what reads alike takes turns"),
            ),
        ),
        Claim(
            id="three-functions",
            sentence="Programs of three functions train over shards without knowing of them.",
            paper="pipelines through merely three functions (abstract)",
            grade="exact",
            reported=Reported(0.0, "equal", tolerance=LOSSES),
            finding="reproduced",
            why="that a program need not know of ranks is seen from its losses, one process's "
            "within rounding; how many lines it saves is not counted",
            check=three_functions,
            broken=(Break({"rules.swapped": True}, True, "rows for columns"),),
        ),
        Claim(
            id="even",
            sentence="A rank holds little more than its share of the weights.",
            paper="models up to 66B parameters fit by being split (abstract)",
            grade="exact",
            reported=Reported(1.0, "equal", tolerance=SHARE - 1, unit="×"),
            finding="reproduced",
            why="what fits by being split has to be split evenly: an eighth of the weights on each "
            "of eight, within a twentieth, which is ours; the paper names sizes alone",
            check=even,
            broken=(Break({"rules.attention": "off"}, True, "attention's weights stay whole"),),
        ),
    ),
    limits=(
        "The paper's rules are known from its abstract and released code, which goes by names of "
        "weights and lets a compiler add what communication a split needs, so there any plan runs "
        "and a poor one is only slow; here a plan runs as it stands or not at all. Blocks are read "
        "in the order of the checkpoint's list. Ranks take turns in one process, so their bars say "
        "what each does, not how long real ranks would wait; those of the mesh of the Megatron-LM "
        "study hold the parts that the same rules give. Programs are trained by plain descent on "
        "one batch of random tokens. Only decoders; no encoder as in T5. Where a width does not "
        "divide by the ranks its block stays whole, as do heads."
    ),
)
