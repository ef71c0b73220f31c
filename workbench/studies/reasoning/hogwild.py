"""Hogwild! Inference: workers think side by side and read each other's cache as it is written."""

from engine.inference.requests.request import Sampling
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.run import run
from workbench.studies.reasoning._hogwild import (
    CLOSE,
    DEARER,
    PLAIN,
    alone,
    beside,
    beside_cost,
    beside_plain,
    beside_requests,
    fork,
    from_scratch,
    sharing_cost,
    step_cost,
    stored_once,
    with_workers,
)
from workbench.studies.reasoning._shared_queue import (
    CREW,
    SHARED,
    fewer_steps,
    over_fixed_shares,
    over_shares_of,
    steps_of,
)
from workbench.study import (
    Break,
    Claim,
    Regime,
    Reported,
    Study,
    Taught,
)

DIVIDES = Taught({"model": SHARED})
UNTURNED = "queries are not turned to where a block stands"
COPIED = Break({"fault": "copied"}, True, "a page is copied for each who comes to see it")
APART = Break({"fault": "apart"}, True, "each worker takes a forward pass of its own")


STUDY = Study(
    slug="hogwild",
    driver=run,
    config=ReasoningConfig(
        workers=4, budget=64, sampling=Sampling(temperature=0.6), attention_every=4
    ),
    views=("threads", "token_river", "page_map", "levels"),
    about=(
        "Several workers, one model, one cache. Each worker writes its own blocks, and every block "
        "is stored once, its keys rotated as if it began at position 0. A worker's view is a list "
        "of blocks with the position at which it sees each; instead of turning keys, its query is "
        "turned by minus the block's offset, attended to each block apart, and the parts are "
        "merged by log-sum-exp. New keys are stored before attention, so a worker reads what the "
        "others write in the same step. Contiguous puts the others' words before one's own, "
        "interleaved shows finished steps only, combined shows both."
    ),
    tries=(
        ("Eight workers, contiguous", {"workers": 8, "layout": "contiguous", "budget": 32}),
        ("Beside four ordinary requests", {"requests": 4, "budget": 48}),
        ("Fork, join, prune", {"workers": 3, "fork_at": 10, "join_at": 26, "prune_at": 34}),
    ),
    presets={
        "independent": {"layout": "independent"},
        "contiguous": {"layout": "contiguous"},
        "finished-steps": {"layout": "interleaved", "step_tokens": 16},
        "shared-queue": {
            "model": SHARED,
            "layout": "contiguous",
            "header": "{worker}",
            "step_end": "\n",
            "prompt": "6a8b7c5d1e9f:",
            "sampling.temperature": 0.0,
            "attention_every": 1,
        },
        "modelled": {"model": "llama-3.1-8b", "dtype": "bfloat16", "executor": "modelled"},
        "beside-requests": {"requests": 4, "budget": 48},
    },
    claims=(
        Claim(
            id="from-scratch",
            sentence="Every worker's logits equal a forward from scratch over its own view.",
            paper="turning queries is stated to equal turning keys; no figure is given",
            grade="exact",
            check=from_scratch,
            reported=Reported(0.0, "equal", tolerance=CLOSE),
            finding="reproduced",
            why="the paper states the equality in words",
            broken=(Break({"turn_queries": False}, True, UNTURNED),),
        ),
        Claim(
            id="alone",
            sentence="Workers who see nothing of each other are ordinary requests.",
            paper="views that hold nobody else; the equality is that of turned queries",
            grade="exact",
            check=alone,
            reported=Reported(0.0, "equal", unit="texts"),
            finding="reproduced",
            why="the paper states the equality of its views in words, not of views without others",
            broken=(Break({"turn_queries": False}, True, UNTURNED),),
        ),
        Claim(
            id="stored-once",
            sentence="However many workers see a token, its keys and values are stored once.",
            paper="workers share one attention cache and read it without recomputation (abstract)",
            grade="exact",
            check=stored_once,
            reported=Reported(0.0, "equal", unit="pages"),
            finding="reproduced",
            broken=(COPIED, Break({"layout": "independent"})),
        ),
        Claim(
            id="fork",
            sentence="A fork shares all pages, copies one when it writes, and stays exact.",
            paper="no forks in the paper; the equality is that of turned queries",
            grade="exact",
            check=fork,
            reported=Reported(0.0, "equal", tolerance=CLOSE),
            finding="reproduced",
            why="the paper's equality of views, held where a thread forks by copy on write, which "
            "the paper has not",
            broken=(Break({"turn_queries": False}, True, UNTURNED), COPIED),
        ),
        Claim(
            id="fewer-steps",
            sentence="Workers who read each other divide a queue of work and need fewer steps.",
            paper="LIMO and LiveCodeBench solved within fewer forward passes (section 4, figures)",
            grade="direction",
            taught=DIVIDES,
            check=fewer_steps,
            reported=Reported(0.0, "less", none=0.0, unit="steps"),
            finding="reproduced",
            why="a direction, the paper's figures are curves: a small model taught to divide a "
            "queue, where the paper's find out by themselves. The two points are ours",
            broken=(
                Break({"turn_queries": False}, True, UNTURNED),
                Break({"layout": "independent"}),
            ),
        ),
        Claim(
            id="over-fixed-shares",
            sentence="They need fewer steps than workers whose shares were fixed beforehand.",
            paper="independent sub-tasks fixed by a framework do not suit every task (abstract)",
            grade="modelled",
            taught=DIVIDES,
            check=over_fixed_shares,
            reported=Reported(0.0, "less", none=0.0, unit="steps"),
            finding="contrary",
            fails=("small", "full"),
            why="this project's own condition: the paper's rival is one worker. Entries of this "
            "queue cost the same and are known from the start, so that a fixed share leaves nobody "
            "idle, while workers who read each other begin a step apart. The rival is counted, "
            "without an error; where entries cost more or less than was thought is not tried",
            broken=(Break({"turn_queries": False}, True, UNTURNED),),
        ),
        Claim(
            id="beside-requests",
            sentence="Threads and ordinary requests share steps, and each says what it says alone.",
            paper="not in the paper, whose workers have a loop of their own",
            grade="exact",
            check=beside,
            reported=Reported(0.0, "equal", unit="texts"),
            finding="reproduced",
            why="the paper's equality of views, held where requests share the step: its workers "
            "have a loop of their own",
            broken=(Break({"shared_steps": False}, True, "threads and requests take turns"),),
        ),
        Claim(
            id="beside-cost",
            sentence="Sharing steps with requests is cheaper than taking turns with them.",
            paper="a pass over four workers takes little longer than over one (Table 1)",
            grade="measured",
            timed=True,
            check=beside_cost,
            reported=Reported(1.0, "less", none=1.0, unit="×"),
            finding="reproduced",
            why="a direction: more rows in a pass cost less than a pass of their own. The paper's "
            "are all workers, with a loop of their own",
            broken=(APART, Break({"shared_steps": False}, why="threads and requests take turns")),
        ),
        Claim(
            id="step-cost",
            sentence="A step of four workers costs 1.17 times one of a single worker.",
            paper="58.1 ms a forward for 4 workers, 49.7 ms for 1, at 1,024 tokens (Table 1)",
            grade="measured",
            timed=True,
            check=step_cost,
            reported=Reported(DEARER, "less", unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="on two cores four rows cost more than one, shared or not: 1.54× [1.51, 1.57] on "
            "an Intel Xeon; on an AMD EPYC 1.27× [1.09, 1.47] of one day and 2.38× [2.20, 2.58] "
            "of another. What sharing costs comes next",
            broken=(APART,),
        ),
        Claim(
            id="sharing-cost",
            sentence="Reading each other costs a step no more than a quarter over plain requests.",
            paper="not in the paper, whose rival is one worker alone (Table 1); queries are turned "
            "so that keys need not be computed again (section 3.4)",
            grade="measured",
            timed=True,
            check=sharing_cost,
            finding="not tried",
            why="this project's own condition: the paper has no such figure. A worker's view is "
            "many blocks, each attended to apart and merged, where a plain request's is one: "
            "1.17× [1.13, 1.21] on an Intel Xeon; on an AMD EPYC all of the interval was above a "
            "quarter (1.36× in the mean), on the Xeon that of eight workers is (map)",
            broken=(APART,),
        ),
    ),
    regimes=(
        *(
            Regime(
                claim=claim,
                knob="crew",
                values=(2, 3, 4),
                coarse=(2, 4),
                x="workers who divide the queue (the model was taught four at most)",
                y=f"steps more than {rival}",
                default=CREW,
                judged=judged,
                noun="workers",
            )
            for claim, rival, judged in (
                ("fewer-steps", "one worker takes", steps_of),
                ("over-fixed-shares", "fixed shares take", over_shares_of),
            )
        ),
        Regime(
            claim="beside-cost",
            knob="requests",
            values=(1, 2, 4, 8, 16),
            coarse=(1, 4, 16),
            x="requests in the steps of four workers",
            y="time of shared steps over that of both in turn (×)",
            default=PLAIN,
            judged=beside_requests,
            log_x=True,
            noun="requests",
        ),
        Regime(
            claim="step-cost",
            knob="workers",
            values=(1, 2, 3, 4, 6, 8),
            coarse=(2, 4, 8),
            x="workers",
            y="time of a step over that of one worker (×)",
            paper=4,
            default=4,
            judged=with_workers,
            noun="workers",
        ),
        Regime(
            claim="sharing-cost",
            knob="workers",
            values=(1, 2, 3, 4, 6, 8),
            coarse=(2, 4, 8),
            x="workers, and plain requests beside them",
            y="time of a step over that of as many plain requests (×)",
            default=4,
            judged=beside_plain,
            noun="workers",
        ),
    ),
    limits=(
        "The paper's models find out by themselves how to divide work. The one of the claim about "
        "steps, 170 thousand parameters, learnt it from examples: a queue of entries, four workers "
        "at most, who begin a step apart so that no two choose at once. The model of the picture "
        "writes Python of the standard library and does not cooperate. The paper's prompts (who "
        "works on what, am I repeating others) are left out. Views need rotary positions whose "
        "angle grows with the position alone, and plain keys and values. A thread never yields its "
        "pages, since what it wrote depends on what it saw then and cannot be computed again: "
        "requests of its engine yield theirs, and where none is left the thread ends. The prompt "
        "is read in a step of its own. `workbench serve` answers requests alone: OpenAI's protocol "
        "has no word for threads that read each other. Threads that fork and join by requests do "
        "run on it, and on any such server: `workbench fork`."
    ),
)
