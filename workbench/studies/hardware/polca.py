"""POLCA: more servers than the power budget has room for, and clocks capped when it runs short."""

from engine.fleet.config import FleetConfig
from engine.fleet.power.polca import Polca
from engine.fleet.routers.by_priority import ByPriority
from engine.fleet.run import run
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from workbench.studies.hardware._polca import (
    ANSWERS,
    LOADS,
    PEAK,
    RIVALS,
    SHORT,
    SPARED,
    headroom,
    spared,
    thirty_more,
)
from workbench.studies.hardware._power_maps import (
    at_share,
    over,
    peaks_at,
    peaks_with,
    room_at,
    room_with,
    spared_over,
)
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

SHARES = (
    "load", (0.5, 0.75, 1.0, 1.25, 1.5, 2.0), (0.5, 1.0, 2.0),
    "requests a second over the claim's", 1.0,
)  # fmt: skip
DELAYS = (
    "power.delay", (0.5, 1, 2, 4, 8, 15, 30), (1, 4, 15),
    "until a cap reaches the devices, of a swing of 30 s (s)", 4,
)  # fmt: skip
DRAWS = (
    "power.memory", (0.25, 0.4, ANSWERS, 0.66, 0.75, 0.86, 1.0), (0.25, ANSWERS, 1.0),
    "power of reading memory over that of computing", ANSWERS,
)  # fmt: skip
STUDY = Study(
    slug="polca",
    driver=run,
    config=FleetConfig(
        replicas=13,
        router=ByPriority(),
        tokens=False,
        power=Polca(**SHORT),
        engine=InferenceConfig(
            model="llama-3.1-8b",
            dtype="bfloat16",
            executor=Modelled(device="a100-sxm-80gb"),
            workload=Poisson(
                count=156,
                rate=5.2,
                swing=0.6,
                period=30.0,
                prompt=Lengths(median=1500, spread=0.6, shortest=512, longest=4000),
                output=Lengths(median=400, spread=0.6, shortest=64, longest=1024),
            ),
            page_size=64,
            pages=6000,
            max_running=64,
            step_tokens=2048,
        ),
    ),
    views=("levels", "fleet"),
    about=(
        "A row of servers is given the power that all could draw at once, and hardly ever draws "
        "it: prompts take a device to its limit, answers do not, and not all servers are busy. "
        "POLCA puts more servers into the row and watches its power. Above a first threshold the "
        "clocks of servers with low priority are capped, above a second further, and those of high "
        "priority a little, if that does not help. A lower clock stretches prompts and hardly "
        "answers, which wait for memory. Caps take long to reach the devices; if power passes the "
        "budget first, the row's brake cuts every clock to a fifth."
    ),
    tries=(
        ("No caps, only the brake", {"power": {"kind": "brake_only", **SHORT}}),
        ("Caps come as late as the swing", {"power.delay": 30.0}),
        ("Half as many servers more", {"replicas": 15, "engine.workload.rate": 6.0}),
    ),
    claims=(
        Claim(
            id="thirty-more",
            sentence="30% more servers run under the same power budget with minimal loss of speed.",
            paper="deploy 30% more servers in the same GPU cluster for inference, with minimal "
            "performance loss (abstract)",
            grade="modelled",
            check=thirty_more,
            reported=Reported(0.3, none=0.0, unit="%"),
            held=Comparison(tuple(RIVALS), tuple(LOADS)),
            finding="undecided",
            quick="reproduced",
            fails=("full",),
            why="24% [7%, 41%] of five draws, in steps of a tenth, of either load, and 24% and 26% "
            "with the brake alone: where a row is given so much power that it peaks at 79% of it, "
            "as the paper's production rows did, and answers draw above idle 0.54 of what prompts "
            "do, as its authors measured of BLOOM-176B on eight A100, both find as much room. It "
            "rests on the peak: at 70% of the power 42% more fit and 50%, at 85% 16% and 20%; and "
            "on what answers draw: at a quarter of prompts 28% and 30%, reproduced, at as much 16% "
            "and 18%, weaker (maps). "
            "Clocks locked low never brake, but slow half of the urgent requests by more than the "
            "1% allowed. The small check has one draw of the load that swings",
            broken=(
                Break(
                    {"power.first": 0.01, "power.second": 0.02, "power.high_clock": 0.787},
                    True,
                    "all are capped as far, whatever the row draws",
                ),
            ),
        ),
        Claim(
            id="headroom",
            sentence="A row that serves peaks at 79% of the power that it is given.",
            paper="average and peak power utilization in LLM clusters for inference should not be "
            "very high, as data of production clusters show (abstract); 79% is what we recall of "
            "those",
            grade="modelled",
            check=headroom,
            reported=Reported(PEAK, "less", none=1.0, unit="%"),
            held=Comparison(
                (), tuple(LOADS), "a reading of a row that nothing slows: it has no rival"
            ),
            finding="undecided",
            fails=("small", "full"),
            why="68% [66%, 70%] of five draws of a load that swings, 74% [73%, 75%] of a steady "
            "one, by which the finding goes, with answers that draw above idle 0.54 of what "
            "prompts do, as the paper's authors measured of BLOOM-176B on eight A100, which read "
            "memory at half its bandwidth. From a quarter, about what an H200's answers were "
            "measured at (137 to 300 of 700 W, arXiv 2605.11999), to as much, which the interval "
            "holds, it is 57% to 94% and 61% to 95%: a line through the authors' figures of other "
            "sizes gives 0.86 at all the bandwidth, which is what these replicas read at",
            broken=(
                Break({"power.fault": "alike"}, True, "answers draw what prompts do, all there is"),
                Break({"idle_power": 1.0}, True, "a device that waits draws all that it can"),
            ),
        ),
        Claim(
            id="spared",
            sentence="Capped by priority, urgent requests lose less than where all are capped.",
            paper="power oversubscription with minimal performance loss (abstract)",
            grade="modelled",
            check=spared,
            reported=Reported(1.0, none=1.0, unit="×"),
            held=Comparison(tuple(SPARED), tuple(LOADS)),
            finding="undecided",
            fails=("small", "full"),
            why="a direction: our sources hold the abstract alone, which states no figure for it. "
            "Of a load that swings 1.02 [1.00, 1.03] times as soon as by one threshold, 1.02 "
            "[0.99, 1.05] as by the brake alone; of a steady one with lengths like those of "
            "Azure's trace 1.07 [0.99, 1.15] and 1.04 [0.97, 1.13]: a row that peaks at 79% of its "
            "power seldom passes a threshold with 30% more servers. The small check has one draw "
            "of the load that swings",
            broken=(
                Break(
                    {"power.low_clock": 1.0, "power.lowest_clock": 0.99, "power.high_clock": 0.4},
                    True,
                    "the caps of low priority fall on high priority",
                ),
                Break({"power": {"kind": "one_threshold", **SHORT}}),
            ),
        ),
    ),
    regimes=tuple(
        Regime(
            claim="thirty-more",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="servers more that keep their speed (%)",
            less="30% or none of one draw",
            default=default,
            series=LOADS,
            judged=judged,
            log_x=log_x,
        )
        for knob, values, coarse, x, default, judged, log_x in (
            (*SHARES, at_share, False),
            (*DELAYS, over("power.delay"), True),
        )
    )
    + tuple(
        Regime(
            claim="thirty-more",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="servers more that keep their speed (%)",
            less="each load by itself",
            default=default,
            paper=default,
            paper_is=paper_is,
            series=LOADS,
            judged=judged,
        )
        for knob, values, coarse, x, default, judged, paper_is in (
            (*DRAWS, room_with, "the paper's model on its A100"),
            (
                "peak",
                (0.6, 0.7, PEAK, 0.85, 0.9, 1.0),
                (0.6, PEAK, 1.0),
                "highest reading before any are added, of the power that the row is given",
                PEAK,
                room_at,
                "the paper's production row",
            ),
        )
    )
    + tuple(
        Regime(
            claim="headroom",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="highest reading over the row's budget (%)",
            less="a load that swings",
            default=default,
            judged=judged,
        )
        for knob, values, coarse, x, default, judged in (
            ("memory", *DRAWS[1:], peaks_with),
            (*SHARES, peaks_at),
        )
    )
    + tuple(
        Regime(
            claim="spared",
            knob=knob,
            values=values,
            coarse=coarse,
            x=x,
            y="time of urgent requests under the better of one threshold for all and the brake "
            "over ours (×)",
            less="each load by itself",
            default=default,
            series=LOADS,
            judged=spared_over(knob),
            log_x=log_x,
        )
        for knob, values, coarse, x, default, log_x in (
            (*SHARES, False),
            (*DELAYS, True),
            (*DRAWS, False),
        )
    ),
    limits=(
        "The paper was not read, its abstract was: thresholds (80% and 89%, caps go 5% below), "
        "clocks (1275, 1110 and 1305 of 1410 MHz, brake 288 MHz), the out-of-band delay (40 s), "
        "readings (2 s) and the slowdowns allowed (half of high priority 1%, 99 in 100 5%; low "
        "priority 5% and 50%; no brake) are as recalled. A day is a swing of 30 s here, and "
        "delays are a tenth of the recalled ones, while requests last as long as they do. Power is "
        "that of the devices, not of fans and hosts: idle a fifth of the sheet's, in proportion to "
        "time spent computing and 0.54 of that while reading memory, so that answers draw what "
        "they drew of the sheet's in the authors' measurements of BLOOM-176B on eight A100 (0.63; "
        "Llama 2 70B 0.43 to 0.73, by how many devices share it), though here one device reads at "
        "all its bandwidth; it never passes the sheet's. Where servers are added, a row is given "
        "as much power as lets it peak at 79% of it before, found on other draws, for each load by "
        "itself. What is drawn above idle goes with the clock to the power of 1.2, so "
        "that 1110 MHz saves a fifth, as recalled. A row has ten servers of one device, not forty "
        "of eight."
    ),
)
