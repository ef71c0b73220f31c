"""LeanAttention: the decode step's key tiles in equal runs, whatever the heads and contexts."""

from engine.kernels.paged_attention.run import DecodeConfig, run
from workbench.studies.attention._lean_attention import (
    DESCRIBED,
    MEAN,
    RAGGED,
    SINGLE,
    at_context,
    at_reach,
    described,
    equal_work,
    exact,
    here,
    with_others,
)
from workbench.study import Break, Claim, Regime, Reported, Study

PAPER = "1.73× FlashDecoding on average (revised abstract), 2.6× FlashAttention-2 (the first)"

STUDY = Study(
    slug="lean-attention",
    driver=run,
    config=DecodeConfig(),
    views=("schedule", "curves", "roofline"),
    about=(
        "One new token a sequence attends to everything before it. There is one query row, so the "
        "only parallelism is over heads and over keys. One worker a head leaves workers idle when "
        "heads are few or one context is long; cutting every head into the same number of parts "
        "leaves the last wave half empty. LeanAttention lists the key tiles of all heads one after "
        "another and cuts the list into equal runs, one a worker: a run may begin in the middle of "
        "a head, because partial results merge exactly by their log-sum-exps. Each row is a "
        "worker, each block a run of one head's keys; the curves compare the three splits."
    ),
    tries=(
        ("One worker a head", {"split": "per_head"}),
        ("Two requests of 56 heads on an A100", DESCRIBED),
        ("A 64k context among short ones", RAGGED),
    ),
    presets={"described": DESCRIBED, "ragged": RAGGED},
    claims=(
        Claim(
            id="exact",
            sentence="Wherever the keys are cut, the merged result is the same attention.",
            paper="softmax re-scaling is associative and so serves as a reduction (abstract)",
            reported=Reported(0.0, "equal", tolerance=SINGLE),
            finding="reproduced",
            why=f"equal as far as float32 goes: {SINGLE:.0e}",
            grade="exact",
            check=exact,
            broken=(Break({"rescale": False}, True, "parts merge by a plain mean"),),
        ),
        Claim(
            id="equal-work",
            sentence="Every worker gets as many key tiles as any other, but for one.",
            paper="near-perfect occupancy whatever the context (abstract)",
            reported=Reported(1.0, "less", unit="tiles"),
            finding="reproduced",
            grade="exact",
            check=equal_work,
            broken=(
                Break({"split.whole": True}, True, "runs end where heads do"),
                Break({"split": "per_head"}, why="a head each"),
            ),
        ),
        Claim(
            id="makespan-described",
            sentence="On an A100 a decode step is 1.73× as fast as FlashDecoding's on average, "
            "from 4k to 512k tokens.",
            paper=PAPER,
            reported=Reported(MEAN, unit="×"),
            finding="undecided",
            fails=("small", "full"),
            why="how much of the bandwidth one processor reaches is assumed: 2.0× at its share, "
            "1.6× at 1.5 shares, 1.1× at four (map), and the check asks for all of that. Over one "
            "worker a head, FlashAttention-2's way, 4.3×",
            grade="modelled",
            check=described,
            broken=(
                Break({"split.whole": True}, True, "runs end where heads do"),
                Break({"split": "fixed_split"}, why="FlashDecoding"),
            ),
        ),
        Claim(
            id="makespan-here",
            sentence="On this machine's threads a ragged decode step is 1.73× as fast as "
            "FlashDecoding's.",
            paper=PAPER,
            reported=Reported(MEAN, none=1.0, unit="×"),
            finding="weaker",
            fails=("small", "full"),
            why="1.68× [1.64, 1.72] on an Intel Xeon, 1.57× [1.53, 1.62] on an AMD EPYC: two "
            "threads, one ragged batch, against as many parts as FlashAttention-2's launcher has",
            grade="measured",
            timed=True,
            check=here,
            broken=(
                Break({"split.whole": True}, True, "runs end where heads do"),
                Break({"split": "per_head"}, why="a head each"),
            ),
        ),
    ),
    regimes=(
        Regime(
            "makespan-described",
            "reach",
            (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0),
            x="bandwidth that one processor reaches, over its share (×)",
            y="FlashDecoding's time over ours (×)",
            less="one reach at a time",
            coarse=(1.0, 2.0, 4.0),
            default=1.0,
            judged=at_reach,
        ),
        Regime(
            "makespan-described",
            "context",
            tuple(2.0**n for n in range(10, 20)),
            x="longest context (tokens)",
            noun="tokens",
            y="FlashDecoding's time over ours (×)",
            coarse=(2.0**12, 2.0**15, 2.0**18),
            paper=2.0**18,
            paper_is="the paper, for its 2.18×,",
            changes=DESCRIBED,
            series={"a processor reaches its share": {}, "twice its share": {"workers.reach": 2.0}},
            judged=at_context,
            log_x=True,
        ),
        Regime(
            "makespan-here",
            "others",
            tuple(2.0**n for n in (10, 12, 14, 15, 16)),
            x="tokens of the seven other sequences, beside one of 65,536",
            y="FlashDecoding's time over ours, two threads (×)",
            coarse=(2.0**10, 2.0**14, 2.0**16),
            default=2.0**10,
            judged=with_others,
            log_x=True,
            noun="tokens",
        ),
    ),
    limits=(
        "A modelled processor has its share of the bandwidth real kernels reach and no more while "
        "others idle (reach lifts that and shrinks all gains); item cost is assumed, and the fixed "
        "split takes as many parts as FlashAttention-2's launcher would, not the best. Here merges "
        "follow after a barrier, where the paper's workers merge inside the kernel. On a busy "
        "machine a thread held up holds up the step, unless runs are cut into several for the free."
    ),
)
