"""ThreadWeaver: forks and joins by ordinary requests, and training on the trie they make."""

from pathlib import Path

import numpy as np
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level
from engine.core.intervals import of_mean
from engine.core.measure import serving
from engine.models.loading.find import find
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.fork_join.fork_join import ForkJoinConfig, run
from engine.reasoning.solving.scores import scores_of
from engine.recipes.folder import saved_weights
from engine.recipes.from_examples.fork_and_join import units
from engine.tasks.part_sums import forked
from engine.training.losses.language import fresh_weights
from workbench.studies._read import said_by, share
from workbench.studies.reasoning._threadweaver import difference
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Reported,
    RunConfig,
    Study,
)

EXACT = {torch.float64: 1e-9, torch.float32: 1e-5}
WORSE = 0.03  # of accuracy, that forking may at most cost
FEWER = 1.3  # times the tokens on the critical path, at least
FIRST = 1 << 20  # the first problem that claims are judged on
FAST, FULL = 120, 2000
COLUMNS = ("right", "tokens", "critical", "forks")
SERIAL: Changes = {"mode": "serial"}
TURNS: Changes = {"together": 1}
SEEN: Changes = {"siblings_apart": False}
HARD: Changes = {"task.entries": 5}  # it was taught two to four
TIMED: Changes = {"timed_as": "qwen3-8b"}


def folder_of(config: ForkJoinConfig) -> Path:
    """Where the model lies. Raises BadInput where only its architecture is known."""
    folder = find(config.model).folder
    if folder is None:
        raise BadInput(f"model {config.model!r}: no weights and no tokenizer; give a trained one")
    return folder


def trie_equal(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Fresh weights, so that there is much to learn: the trie against each request by itself."""
    model, rules = find(config.model).config, Tokenizer(folder_of(config)).rules
    weights = fresh_weights(model, config.seed)
    problems = config.task.problems("train", 1 if fast else 20)
    mine = [units(rules, forked(problem)) for problem in problems]
    worst = {dtype: [0.0, 0.0] for dtype in EXACT}
    tokens = [0, 0]
    for dtype, worst_LG in worst.items():
        for one in mine:
            found = difference(model, weights, one, dtype, config.siblings_apart)
            worst_LG[:] = max(worst_LG[0], found.loss), max(worst_LG[1], found.gradient)
            tokens = [tokens[0] + found.trie_tokens, tokens[1] + found.separate_tokens]
    told = "; ".join(
        f"{str(dtype).removeprefix('torch.')}: loss {loss:.0e}, gradients {gradient:.0e} apart"
        for dtype, (loss, gradient) in worst.items()
    )
    return Outcome(
        f"loss and every gradient within 1e-9 in float64 and 1e-5 in float32; n = {len(mine)}",
        f"{told}; {tokens[0] / tokens[1]:.0%} of the tokens computed",
        all(max(worst[dtype]) <= bound for dtype, bound in EXACT.items()),
        figure=Figure.exact(max(worst[torch.float32])),
        needed=EXACT[torch.float32],
    )


def fewer_tokens(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same model and problems, serial and forked, problem by problem.

    At full size also with sums of more digits than it was taught, half of which it gets wrong.
    """
    size = {"problems": FAST if fast else FULL, "first": FIRST, "at_once": 64}
    ours_P4, theirs_P4 = _ways(update(config, size), run_config)
    told, is_kept = "", True
    if not fast:
        hard_P4, serial_P4 = _ways(update(config, {**size, **HARD}), run_config)
        (less,), (more_,) = of_mean(hard_P4[:, :1] - serial_P4[:, :1])
        is_kept = bool(hard_P4[:, 0].mean() >= serial_P4[:, 0].mean() - WORSE)
        told = (
            f"; sums of five: forked {share(hard_P4[:, 0])}, serial {share(serial_P4[:, 0])}, "
            f"difference [{less:+.1%}, {more_:+.1%}]"
        )
    low, high = of_mean(ours_P4[:, :1] - theirs_P4[:, :1])
    times_P1 = theirs_P4[:, 2:3] / np.maximum(ours_P4[:, 2:3], 1)
    low_times, high_times = of_mean(times_P1)
    more = ours_P4[:, 1].mean() / theirs_P4[:, 1].mean() - 1
    return Outcome(
        f"forked at most {WORSE:.0%} less often right and {FEWER}× fewer tokens on the critical "
        "path (95% intervals)",
        f"forked {share(ours_P4[:, 0])}, serial {share(theirs_P4[:, 0])}, difference "
        f"[{low[0]:+.1%}, {high[0]:+.1%}]; {times_P1.mean():.2f}× [{low_times[0]:.2f}, "
        f"{high_times[0]:.2f}] fewer, {more:+.0%} tokens in all; n = {len(ours_P4)} problems{told}",
        bool(low[0] >= -WORSE and low_times[0] >= FEWER and is_kept),
        figure=Figure(
            float(times_P1.mean()), float(low_times[0]), float(high_times[0]), "×", len(times_P1)
        ),
        needed=FEWER,
    )


def _ways(config: ForkJoinConfig, run_config: RunConfig) -> tuple[np.ndarray, np.ndarray]:
    """scores_P4 (right, tokens, critical, forks) of the config's own way, and of going serially."""
    serial: Changes = {**SERIAL, "together": 0, "siblings_apart": True}
    ours, theirs = (scores_of(run_config(update(config, each))) for each in ({}, serial))
    ours_P4, theirs_P4 = (np.stack([one[name] for name in COLUMNS], 1) for one in (ours, theirs))
    return ours_P4, theirs_P4


def ordinary(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Each request's tokens against the likeliest ones of a forward over its text from scratch."""
    config = update(config, {"problems": 3 if fast else 20, "first": FIRST})
    log = run_config(config)
    folder = folder_of(config)
    model, weights = saved_weights(folder)
    tokenizer = Tokenizer(folder)
    prompts = log.blobs["prompts"].tobytes().decode().split("\0")
    same, count = 0, 0
    said = said_by(log)
    for name, prompt in (line.split("\1") for line in prompts):
        before, after = tokenizer.encode(prompt), tokenizer.encode(said[name])
        with torch.inference_mode():
            logits_TV = dense(model, weights, torch.tensor([[*before, *after]]))[0]
        likeliest = logits_TV[len(before) - 1 : -1].argmax(-1).tolist()
        same, count = same + (likeliest == after), count + 1
    return Outcome(
        f"all {count} requests say what a forward over their text alone finds likeliest",
        f"{same} of {count}",
        same == count > 3 * config.problems,
        figure=Figure.exact(count - same, "requests"),
        needed=0.0,
    )


def shared(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Prompt tokens computed, from the log, against those sent and those that differ."""
    log = run_config(update(config, {"problems": 12 if fast else 100}))
    told = {level.name: int(level.value) for level in log.of(Level) if level.lane == "problems"}
    done = serving(log).prefilled
    most = told["different"] + told["requests"] * config.page_size
    return Outcome(
        f"of {told['prompt tokens']} prompt tokens sent at most {most} computed: those that differ "
        "and a page for each request",
        f"{done} computed ({done / told['prompt tokens']:.0%})",
        done <= most,
        figure=Figure.exact(done / told["prompt tokens"], "%"),
        needed=most / told["prompt tokens"],
    )


def sooner(config: ForkJoinConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The lengths really generated, timed request by request for a larger model on a device."""
    size = {"problems": 8 if fast else 60, "first": FIRST, **TIMED}
    ours_P = run_config(update(config, size)).blobs["modelled_seconds_P"]
    theirs_P = run_config(update(config, {**size, **SERIAL})).blobs["modelled_seconds_P"]
    times_P = theirs_P / ours_P
    low, high = of_mean(times_P[:, None])
    return Outcome(
        f"one problem at a time as Qwen3-8B on {config.device}: at least {FEWER}× sooner",
        f"{times_P.mean():.2f}× [{low[0]:.2f}, {high[0]:.2f}]: {ours_P.mean():.2f} s against "
        f"{theirs_P.mean():.2f} s (modelled); n = {len(times_P)} problems",
        bool(low[0] >= FEWER),
        figure=Figure(float(times_P.mean()), float(low[0]), float(high[0]), "×", len(times_P)),
        needed=FEWER,
    )


STUDY = Study(
    slug="threadweaver",
    driver=run,
    config=ForkJoinConfig(),
    views=("threads", "request_lanes", "levels", "page_map"),
    about=(
        "A small model has four sums to work out that do not depend on each other, and their "
        "total. Told to go serially it takes one after the other. Told to fork it writes outlines "
        "and stops; each outline is sent back as a request of its own, seeded with its number, and "
        "sees no sibling. When the last has closed, their texts stand one after the other in the "
        "next request, which says the total. The engine knows nothing of it: it finds the prefix "
        "that the requests share in its cache, so a thread costs little more than its own tokens. "
        "The model learnt both ways, forked traces as tries of the requests they take."
    ),
    tries=(
        ("One part after the other", SERIAL),
        ("Threads that take turns", TURNS),
        ("A fork of three threads, the fourth left out", {"threads": 3}),
    ),
    presets={"serial": SERIAL, "timed": TIMED},
    claims=(
        Claim(
            id="trie-equal",
            sentence="Training on the trie has the loss and gradients of training each request.",
            paper="trie-based training-inference co-design (abstract); no figure",
            grade="exact",
            check=trie_equal,
            reported=Reported(0.0, "equal", tolerance=EXACT[torch.float32]),
            finding="reproduced",
            why="the paper states the co-design in words; the tolerance is float32's rounding",
            broken=(Break(SEEN, True, "threads of a trie see their siblings"),),
        ),
        Claim(
            id="fewer-tokens",
            sentence="On par with serial answers in accuracy, at 1.53× fewer tokens to wait for.",
            paper="71.9% on average, on par with sequential models, up to 1.53× average speedup in "
            "token latency (abstract)",
            grade="measured",
            check=fewer_tokens,
            reported=Reported(1.53, none=1.0, unit="×"),
            finding="reproduced",
            why="parts that are independent by construction; the paper's traces are not",
            broken=(Break(SEEN, True, "a thread's request holds what its siblings have said"),),
        ),
        Claim(
            id="ordinary-engine",
            sentence="Every thread and join is an ordinary request: no position or cache changes.",
            paper="any off-the-shelf autoregressive inference engine, without modifying position "
            "embeddings or KV caches (abstract)",
            grade="exact",
            check=ordinary,
            reported=Reported(0.0, "equal"),
            finding="reproduced",
            broken=(
                Break({"fault": "short"}, True, "each request arrives without its last token"),
                Break({"temperature": 3.0}, why="tokens are drawn, not the likeliest"),
            ),
        ),
        Claim(
            id="shared-prefix",
            sentence="What requests share is computed once, so that forking is cheap.",
            paper="prefix caching makes parallel requests cheap; no figure in the abstract",
            grade="exact",
            check=shared,
            reported=Reported(1.0, "less", none=1.0, unit="%"),
            finding="reproduced",
            why="a direction: the paper gives no figure of what a shared prefix saves",
            broken=(
                Break({"prefix_sharing": False}, True, "a prefix is computed for each request"),
            ),
        ),
        Claim(
            id="sooner",
            sentence="Threads end a problem 1.53× sooner.",
            paper="up to 1.53× average speedup in token latency (abstract)",
            grade="modelled",
            check=sooner,
            reported=Reported(1.53, none=1.0, unit="×"),
            finding="reproduced",
            why="the paper's figure is of tokens on the critical path, ours of seconds; of four "
            "parts that are independent by construction",
            broken=(Break(TURNS, True, "threads take turns"),),
        ),
    ),
    limits=(
        "One model of half a million parameters on a task whose parts are independent by "
        "construction; nobody finds out here whether a problem can be divided, and traces are "
        "written by a program, not made from a large model's reasoning in two stages. The prompt "
        "says whether to fork; the paper's reinforcement with a reward for acceleration is left "
        "out. Decoded greedily the model hardly errs either way on the sizes it was taught; with "
        "sums of up to five digits it is right in 44.2% of 2,000 problems forked and in 40.7% "
        "serially. Drawn at temperature 1.8 it was right in 62% of 400 problems forked and in 70% "
        "serially: a fifth more tokens are there to go wrong. Texts have about a hundred tokens, "
        "so outlines weigh more than in long ones. Modelled seconds are those of Qwen3-8B "
        "generating as many tokens, one problem at a time."
    ),
)
