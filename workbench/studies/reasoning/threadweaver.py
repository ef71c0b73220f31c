"""ThreadWeaver: forks and joins by ordinary requests, and training on the trie they make."""

from pathlib import Path

import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.models.loading.find import find
from engine.models.reference import dense
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.fork_join.fork_join import ForkJoinConfig, run
from engine.recipes.folder import saved_weights
from engine.recipes.from_examples.fork_and_join import units
from engine.tasks.part_sums import forked
from engine.training.losses.language import fresh_weights
from workbench.studies._read import said_by
from workbench.studies.reasoning._threadweaver import (
    FIRST,
    SERIAL,
    TIMED,
    difference,
    fewer_tokens,
    shared,
    sooner,
    with_parts,
)
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Regime,
    Reported,
    RunConfig,
    Study,
    Taught,
)

FORKS = Taught({"model": "part-sums-500k"})
EXACT = {torch.float64: 1e-9, torch.float32: 1e-5}
PAGE = ForkJoinConfig().page_size
TURNS: Changes = {"together": 1}
SEEN: Changes = {"siblings_apart": False}


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
        before, after = tokenizer.encode(prompt), tokenizer.encode(said.get(name, ""))
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
            "token latency (abstract): the best of six benchmarks, 1.22× over all (README)",
            grade="measured",
            taught=FORKS,
            check=fewer_tokens,
            reported=Reported(1.53, none=1.0, unit="×"),
            finding="reproduced",
            why="four parts that are independent by construction, which the paper's are not; two "
            "come to 1.21×, three to 1.45× (map). Of one part forking only costs, 0.84× in traces "
            "as they are written: the model was taught two parts and more and makes up a second, "
            "so that its own lengths tell nothing there. On par is within 3 points and the check "
            "asks for 1.3×: both are ours. Five trainings come to 1.63× each, since traces are "
            "written so; on par are two of them. One is right in 93.7% forked and 99.2% serially, "
            "two in 41.3% against 67.0% and 42.6% against 64.5% of sums longer than they were "
            "taught",
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
            reported=Reported(0.0, "less", tolerance=PAGE, unit="tokens"),
            finding="reproduced",
            why="tokens of a prompt computed beyond those that differ: at most a page, since whole "
            "pages are shared; fewer, since what a thread has said is in the cache where the join "
            "reads it. The paper gives no figure",
            broken=(
                Break({"prefix_sharing": False}, True, "a prefix is computed for each request"),
            ),
        ),
        Claim(
            id="sooner",
            sentence="Threads end a problem 1.14× sooner by the clock.",
            paper="162.34 s to 142.21 s, 1.14×: 50 problems of MATH500 on four GPUs (the authors' "
            "README); the abstract has tokens alone, up to 1.53×",
            grade="modelled",
            taught=FORKS,
            check=sooner,
            reported=Reported(1.14, none=1.0, unit="×"),
            finding="reproduced",
            why="modelled, of four parts that are independent by construction; the paper's seconds "
            "are measured, of problems that divide less: see the map over the threads at once. The "
            "check's 1.3× is ours, above the paper's",
            broken=(Break(TURNS, True, "threads take turns"),),
        ),
    ),
    regimes=(
        Regime(
            claim="fewer-tokens",
            knob="task.parts",
            values=(1, 2, 3, 4, 5),
            coarse=(1, 2, 4),
            x="parts of a problem that do not depend on each other (2 to 4 were taught)",
            y="times the tokens to wait for, serial over forked",
            default=4,
            judged=with_parts,
            noun="parts",
        ),
        Regime(
            claim="sooner",
            knob="together",
            values=(1, 2, 3, 4),
            coarse=(1, 2, 4),
            x="threads of a fork under way at once",
            y="times the seconds, serial over forked",
            default=4,
            noun="threads",
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
