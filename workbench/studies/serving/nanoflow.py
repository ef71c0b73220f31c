"""NanoFlow: a step in two parts, so that one computes while the other reads its cache or sends."""

from engine.inference.config import InferenceConfig
from engine.inference.executors.nano_batches import NanoBatches
from engine.inference.run import run
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from workbench.studies.serving._nanoflow import (
    CONTEXT,
    DRAWN,
    HERE,
    IN_TURN,
    PLAIN,
    PUBLISHED,
    ROWS,
    at,
    at_rows,
    gain_here,
    of_optimal,
    same_tokens,
    throughput,
)
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

PARTS_IN_TURN = Break({"executor.overlap": "in_turn"}, True, "the parts' operations go in turn")
# Of maps: a knob, its values, those of the small map, what they are, the study's.
SHARES = (
    (
        "executor.memory_units",
        (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
        (0.2, 0.8),
        "part of the units with which attention reaches memory's rate",
        0.4,
    ),
    (
        "executor.network_units",
        (0.0, 0.08, 0.15, 0.3, 0.5),
        (0.08, 0.3),
        "part of the units that a collective takes",
        0.15,
    ),
)
REAL = {**HERE, "executor": "nano_batches_here"}
STUDY = Study(
    slug="nanoflow",
    driver=run,
    config=InferenceConfig(
        model="llama-2-70b",
        dtype="bfloat16",
        executor=NanoBatches(device="a100-sxm-80gb", tensor_parallel=8),
        workload=Poisson(
            count=12,
            rate=0.0,
            prompt=Lengths(median=1500, spread=0.3, longest=3500),
            output=Lengths(median=10, spread=0.3, longest=40),
        ),
        pages=8000,
        max_running=256,
        step_tokens=2048,
        profile_every=1,
    ),
    views=("schedule", "levels", "request_lanes", "latency"),
    about=(
        "A step of a language model computes products, reads the cache to attend, and sends sums "
        "to other ranks, one after another, and while one of a device's resources is busy the "
        "others wait. NanoFlow cuts the step's tokens in two parts that depend on one another in "
        "nothing: while one part computes products, the other attends or sends, each on some of "
        "the device's units. Weights are read twice for it, and products have fewer units; how "
        "tokens and units are best shared is found by a search."
    ),
    tries=(
        ("In turn: parts without overlap", {"executor.overlap": "in_turn"}),
        ("One part, as engines do", {"executor.overlap": "none"}),
        ("Really, on two workers", REAL),
    ),
    presets={"here": REAL},
    claims=(
        Claim(
            id="same-tokens",
            sentence="Two workers that share a step say what one pass says.",
            paper="NanoFlow splits requests into nano-batches at the granularity of operations "
            "(abstract)",
            grade="exact",
            check=same_tokens,
            reported=Reported(1.0, "equal", unit="%"),
            finding="reproduced",
            broken=(
                Break(
                    {"executor": {"kind": "nano_batches_here", "fault": "swapped"}},
                    True,
                    "the parts' rows are put back in the wrong order",
                ),
            ),
        ),
        Claim(
            id="throughput",
            sentence="It serves 1.91 times the tokens a second.",
            paper="NanoFlow provides 1.91x throughput boost compared to state-of-the-art serving "
            "systems (abstract)",
            grade="modelled",
            check=throughput,
            reported=Reported(1.91, none=1.0, unit="×"),
            held=Comparison(
                (PLAIN, *IN_TURN), (*(f"{p} and {a} tokens" for p, a in PUBLISHED), DRAWN)
            ),
            finding="weaker",
            why="beside the same devices and kernels with operations one after another; the "
            "paper's rivals are engines. Beside one kernel for the attention of prompts and "
            "answers, which is how the runs that our curves are fitted to do it, 1.6 to 1.9",
            broken=(PARTS_IN_TURN,),
        ),
        Claim(
            id="of-optimal",
            sentence="Every model reaches at least 59% of the optimal throughput.",
            paper="achieving 59% to 72% of optimal throughput across ported models (abstract)",
            grade="modelled",
            check=of_optimal,
            reported=Reported(0.59, unit="%"),
            held=Comparison(
                ("in one part",),
                why="a steady step of each model at the published figure's lengths, beside the "
                "share that is published",
            ),
            finding="contrary",
            fails=("small", "full"),
            why="mixtral-8x7b, by which the finding goes: what experts take on an A100 is told by "
            "an H100's curves. The three without experts come to 64% and 65%, 0.81 to 0.95 of "
            "what was published of them; operations in one part to 55 to 57%. What units memory "
            "and network take, which is assumed, moves it by three points at most (maps)",
            broken=(PARTS_IN_TURN,),
        ),
        Claim(
            id="gain-here",
            sentence="On this machine a batch is decoded sooner by two workers whose operations "
            "overlap.",
            paper="overlaps the usage of resources including compute, memory, and network within "
            "a single device (abstract)",
            grade="measured",
            timed=True,
            check=gain_here,
            reported=Reported(1.0, none=1.0, unit="×"),
            held=Comparison(
                ("one pass, the same kernels", "one pass, fused"),
                (f"{ROWS} answers of {CONTEXT:,} tokens",),
                "one step, timed; other batches are on the map",
            ),
            finding="contrary",
            fails=("small", "full"),
            why="our quickest pass runs all layers in one call on all cores, and neither products "
            "nor attention leave a core idle that the other could use",
            broken=(
                Break(
                    {"executor": {"kind": "nano_batches_here", "fault": "in_turn"}},
                    True,
                    "one part waits for the other throughout",
                ),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="gain-here",
            knob="answers",
            values=(2, 4, 8, 16, ROWS, 48),
            coarse=(4, ROWS),
            x=f"answers of a batch, {CONTEXT:,} tokens each",
            y="time of the quickest pass in one part over that of two workers (×)",
            default=ROWS,
            judged=at_rows,
            log_x=True,
            noun="answers",
        ),
    )
    + tuple(
        Regime(
            claim="of-optimal",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="share of the optimum that the model furthest from it reaches (%)",
            default=default,
        )
        for knob, values, coarse, x, default in SHARES
    )
    + tuple(
        Regime(
            claim="throughput",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="tokens a second over those of the best rival (×)",
            less="steady steps",
            default=default,
            judged=at(knob),
            log_x=log,
        )
        for knob, values, coarse, x, default, log in (
            (
                "workload.output.median",
                (16, 64, 256, 512, 1024, 2048),
                (64, 1024),
                "answer (tokens); prompts have 512",
                256,
                True,
            ),
            (
                "step_tokens",
                (256, 512, 1024, 2048, 4096, 8192),
                (512, 2048),
                "tokens of a step",
                2048,
                True,
            ),
            *((*each, False) for each in SHARES),
        )
    ),
    limits=(
        "The paper's abstract was read, and the repository's figures and code, not the paper: its "
        "interference tables and its solver are not here. How much slower operations get beside "
        "one another is a model of shared units and shared memory, not measured: attention "
        "reaches memory's rate with 40% of the units (assumed), a collective takes 16 of 108 "
        "multiprocessors (the code has 8, 16 or 32). The step has two parts; the code cuts keys "
        "and queries into four. The engine waits for a step's answers before it plans the next, "
        "while NanoFlow plans ahead and computes one token too many of each request; caches of "
        "ended requests are not kept on disk. On this machine two threads share the cores."
    ),
)
