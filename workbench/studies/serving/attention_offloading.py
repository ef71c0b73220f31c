"""Attention offloading (Lamina): attention where memory is cheap, the rest where arithmetic is."""

from engine.inference.config import InferenceConfig
from engine.inference.executors.offloaded import Offloaded
from engine.inference.policies.batching.prefill_first import PrefillFirst
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from workbench.studies.serving._attention_offloading import (
    COMPUTE,
    GROUPED,
    HERE,
    HOMOGENEOUS,
    OWN,
    SHARED,
    WORKS,
    at_rent,
    over,
    over_compute,
    same_tokens,
    throughput,
    with_prompts,
)
from workbench.studies.serving._offloaded_ranks import run
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

IN_TURN = Break(
    {"executor.groups": 1}, True, "no group is computed while another's attention is under way"
)
ONE_ATTENDS = Break(
    {"executor.fault": "one_attends"}, True, "all requests are dealt to one attention device"
)
SLOW = Break({"executor.bandwidth": 1e9}, True, "the link is 25 times as slow")
SORTS = "H100 SXM", "GeForce RTX 3090"
PAPER = "1.48-12.1× higher estimated throughput per dollar than homogeneous solutions (abstract)"
REAL = {**HERE, "executor": "offloaded_here"}

BESIDE = (
    ("over-both", throughput, "the stronger of four H100 and four RTX 3090"),
    ("over-compute-devices", over_compute, "four H100"),
)
STUDY = Study(
    slug="attention-offloading",
    driver=run,
    config=InferenceConfig(
        model="llama-2-13b",
        dtype="bfloat16",
        executor=Offloaded(),
        workload=Poisson(
            count=100,
            rate=0.0,
            prompt=Lengths(median=1024, spread=0.4, longest=3500),
            output=Lengths(median=128, spread=0.5, longest=500),
        ),
        page_size=64,
        pages=1600,
        max_running=512,
        step_tokens=4096,
        batching=PrefillFirst(),
    ),
    views=("request_lanes", "page_map", "latency"),
    about=(
        "To generate a token, attention reads all keys and values of its request and computes "
        "little with them, while everything else of the model reads weights that a whole batch "
        "shares. Lamina puts the two on devices of different sorts: cheap ones that are rich in "
        "memory hold the cache and attend, a few dear ones hold the weights and do the rest. In "
        "every layer queries, keys and values go over a link and attention's output comes "
        "back; requests form groups, so that one is computed while another's attention is under "
        "way. Memory of the cheap devices sets how large batches are."
    ),
    tries=(
        ("Really, on two processes", REAL),
        ("One group: nothing overlaps", {"executor.groups": 1}),
        (
            "The same requests on one H100",
            {
                "executor": {"kind": "modelled", "device": "h100-sxm"},
                "pages": 800,
            },
        ),
    ),
    presets={"here": REAL, "grouped-heads": GROUPED},
    claims=(
        Claim(
            id="same-tokens",
            sentence="With the cache in another process every answer is what it is in one.",
            paper="the attention operator runs on devices of its own (abstract)",
            grade="exact",
            check=same_tokens,
            reported=Reported(1.0, "equal", unit="%"),
            finding="reproduced",
            broken=(
                Break(
                    {"executor": {"kind": "offloaded_here", "fault": "late"}},
                    True,
                    "a token's key is kept after it is looked for",
                ),
            ),
        ),
        Claim(
            id="over-compute-devices",
            sentence="It generates 1.48 to 12.1 times the tokens for a dollar of dear devices.",
            paper=PAPER,
            grade="modelled",
            check=over_compute,
            reported=Reported(1.48, none=1.0, unit="×"),
            held=Comparison(
                SORTS[:1],
                WORKS,
                "one sort of device, by its sentence; 1, 2, 4 and 8 of it, the best of these",
            ),
            finding="weaker",
            quick="reproduced",
            why="1.99 times the tokens of four H100 where heads have keys of their own (one H100 "
            "and sixteen RTX 3090); where eight share theirs (two H100 and sixteen), a token's "
            "cache is a fifth as large for three times the weights, memory is scarce no more and "
            "1.16 is left, which the finding goes by. Of 4 to 32 attention devices sixteen are "
            "the best beside one H100, and eight beside two leave 1.19 (maps). Nothing is left of "
            "that where an RTX 3090, with its share of a host and its card, rents for 0.30 $ an "
            "hour in place of 0.22, and hardly any of the 1.99 at 0.6 $ (map). The steps with "
            "prompts do not count, whose arithmetic the dear devices do alone: where all count, "
            "it generates 0.51 of the tokens for a dollar of one H100, with grouped heads 0.74 of "
            "four; it is ahead where a tenth of those steps counts, with grouped heads a "
            "twentieth (map). The small check asks the former of one draw",
            broken=(ONE_ATTENDS, SLOW),
        ),
        Claim(
            id="over-both",
            sentence="It generates 1.48 to 12.1 times the tokens for a dollar of either device.",
            paper=PAPER,
            grade="modelled",
            check=throughput,
            reported=Reported(1.48, none=1.0, unit="×"),
            held=Comparison(SORTS, WORKS),
            finding="contrary",
            fails=("small", "full"),
            why="at these rents four RTX 3090 alone, tensor-parallel over PCIe, generate most for "
            "a dollar where a model fits them: a dollar buys four times the memory, three times "
            "the bandwidth and as much arithmetic as of an H100. Beside them 0.95, and no other "
            "number of devices does better (map); where weights fill most of their memory (70 "
            "billion, grouped heads) eight of them are left 2.38 times behind, and the rival is "
            "the H100. It rests on the rent: the list has one to twelve in both its columns; at "
            "one to ten (0.26 $) it is 1.01 times as much, at 0.30 $ 1.06 and, of grouped heads, "
            "1.00. The paper's figure it reaches at no rent (map)",
            broken=(IN_TURN, ONE_ATTENDS, SLOW),
        ),
    ),
    regimes=tuple(
        Regime(
            claim=claim,
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y=f"tokens for a dollar over {rival} (×)",
            less="one draw, heads with keys of their own",
            default=default,
            judged=over(knob, check),
            log_x=True,
        )
        for claim, check, rival in BESIDE
        for knob, values, coarse, x, default in (
            (
                "workload.prompt.median",
                (128, 256, 512, 1024, 2048, 3000),
                (128, 1024),
                "prompt (tokens)",
                1024,
            ),
            ("max_running", (8, 32, 64, 128, 256, 512), (32, 512), "requests at once at most", 512),
            (
                "executor.bandwidth",
                (3e8, 1e9, 3e9, 1e10, 2.5e10, 5e10),
                (1e9, 2.5e10),
                "link of each device (B/s)",
                2.5e10,
            ),
        )
    )
    + tuple(
        Regime(
            claim=claim,
            knob="executor.attention_devices",
            values=(4, 8, 12, 16, 24, 32),
            coarse=(4, 16),
            x="attention devices beside one that computes, two with grouped heads",
            y=f"tokens for a dollar over {rival} (×)",
            less="one draw",
            default=16,
            series={OWN: {}, SHARED: GROUPED},
            judged=over("executor.attention_devices", check),
            log_x=True,
        )
        for claim, check, rival in BESIDE
    )
    + tuple(
        Regime(
            claim=claim,
            knob="rent",
            values=(0.1, 0.15, 0.22, 0.26, 0.3, 0.4, 0.5, 0.6),
            coarse=(0.22, 0.3),
            x="rent of an RTX 3090 where an H100 rents for 2.69 ($ an hour)",
            y=f"tokens for a dollar over {rival} (×)",
            less="one draw",
            default=0.22,
            series={OWN: {}, SHARED: GROUPED},
            judged=at_rent(rivals),
        )
        for claim, rivals, rival in (
            ("over-both", tuple(HOMOGENEOUS), "four H100 or four or eight RTX 3090"),
            ("over-compute-devices", (COMPUTE,), "four H100"),
        )
    )
    + (
        Regime(
            claim="over-compute-devices",
            knob="prompts",
            values=(0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            coarse=(0.0, 0.1, 1.0),
            x="share that counts of steps with prompts",
            y="tokens for a dollar over H100 (×)",
            less="one draw",
            default=0.0,
            series={OWN: {}, SHARED: GROUPED},
            judged=with_prompts,
        ),
    ),
    limits=(
        "The paper was not read, its abstract was, and articles about it that name H100 and RTX "
        "3090; its models, prices and numbers of devices we do not know. Prices are one rental "
        "list's of March 2026, second hand, interruptible, and on demand in the same proportion; "
        "hosts and switches cost nothing beside. What counts is generation: tokens of the steps "
        "that compute answers alone, once memory is full; prompts attend on the compute device "
        "and their keys are sent. Devices reach what the sheets' curves say, those of consumer "
        "cards the bare roofline; each sends over its own 200 Gb/s card, which nobody rents with "
        "an RTX 3090; kernels that issue messages take no time of the device. Requests lie whole "
        "on an attention device and even among them; groups are even. Homogeneous fleets are "
        "tensor-parallel, consumer cards over PCIe. At most 512 requests at once, ours, bind "
        "nobody where the claims stand: with 4,096 tokens for a dollar are the same. They do in "
        "maps, with prompts of 128 tokens, 1.04 of four H100 where the map has 1.11, and with 24 "
        "attention devices, 1.90 for 1.98 and 0.89 of the RTX 3090 for 0.93. On this machine "
        "the processes take turns: one group; where several attend, each has some of the heads."
    ),
)
