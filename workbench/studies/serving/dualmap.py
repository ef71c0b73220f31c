"""DualMap: two hashes of a prompt's beginning name the two replicas that it may go to."""

from engine.fleet.config import FleetConfig
from engine.fleet.routers.dual_map import DualMap
from engine.fleet.run import run
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.workloads.shared_prefix import SharedPrefix
from engine.inference.workloads.synthetic import Lengths
from workbench.studies.serving._dualmap import (
    LEAST,
    RIVALS,
    WORKS,
    at_objective,
    at_rate,
    at_replicas,
    at_skew,
    capacity,
    keeping_at,
    sooner,
    two_places,
)
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

SCATTERED = Break(
    {"router.beginning": 1 << 20}, True, "whole prompts are hashed, so equal beginnings scatter"
)

STUDY = Study(
    slug="dualmap",
    driver=run,
    config=FleetConfig(
        replicas=6,
        router=DualMap(),
        engine=InferenceConfig(
            model="llama-3.1-8b",
            dtype="bfloat16",
            executor=Modelled(),
            workload=SharedPrefix(
                groups=24,
                per_group=5,
                prefix=Lengths(median=3000, spread=0.4, longest=9000),
                suffix=Lengths(median=200, spread=0.5, longest=1000),
                output=Lengths(median=30, spread=0.5, longest=120),
                rate=60.0,
            ),
            page_size=64,
            pages=500,
            max_running=64,
            step_tokens=2048,
        ),
    ),
    views=("fleet", "request_lanes", "topology", "latency"),
    about=(
        "A prompt whose beginning lies in a replica's cache is computed faster there, but if "
        "every such request went there it would be overrun. DualMap hashes the beginning twice, "
        "onto two rings of replicas: equal beginnings meet the same two, and every replica shares "
        "its load with many others; one that is asked for too often is told apart by more of its "
        "tokens. A request goes where its beginning is cached unless it would wait there beyond "
        "the objective, then to where it waits less; requests that wait on a replica which is "
        "behind move to their other one."
    ),
    tries=(
        ("The least loaded replica", LEAST),
        ("Only the cache matters", {"router": "prefix_aware", "router.balance": 0.0}),
        ("Twice the load", {"engine.workload.rate": 120.0}),
    ),
    claims=(
        Claim(
            id="two-places",
            sentence="Requests that begin alike meet two replicas at most.",
            paper="two independent hash functions of the prompt give two candidates (abstract)",
            grade="exact",
            check=two_places,
            reported=Reported(2.0, "less", unit="replicas"),
            finding="reproduced",
            broken=(SCATTERED, Break(LEAST)),
        ),
        Claim(
            id="sooner",
            sentence="First tokens come sooner than by other routers.",
            paper="a request goes where its beginning is cached unless that breaks its TTFT "
            "objective, then to the less loaded of two (abstract)",
            grade="modelled",
            check=sooner,
            reported=Reported(1.0, none=1.0, unit="×"),
            held=Comparison(tuple(RIVALS), WORKS),
            finding="contrary",
            fails=("small", "full"),
            why="of drawn prompts 2.1 times as soon as by load alone, but a router that looks into "
            "every replica's cache is quicker: 0.88 of our time by caches alone, 0.91 by caches "
            "and load. Of conversations over one system prompt, by which the finding goes, "
            "caches and load take 0.77 [0.73, 0.82] of it, load alone 0.95, and caches alone 41 "
            "times as long. DualMap asks two replicas; the abstract states capacity under an "
            "objective and no time to first token, so a direction is held against it",
            broken=(SCATTERED, Break(LEAST)),
        ),
        Claim(
            id="capacity",
            sentence="More requests a second keep a time to first token than by other routers.",
            paper="up to 2.25× the request capacity under the same TTFT objective (abstract)",
            grade="modelled",
            check=capacity,
            reported=Reported(2.25, none=1.0, unit="×"),
            held=Comparison(tuple(RIVALS), WORKS),
            finding="contrary",
            quick="undecided",
            fails=("small", "full"),
            why="in the paper's setting, eight instances, Qwen2.5-7B and 5 s for nine in ten, as "
            "public notes have it. No other router is as good on both workloads, but beside each "
            "there is one: of drawn prompts, whose beginnings are asked for equally often, caches "
            "alone serve more (ours 0.93 [0.88, 0.98] of theirs, 1.16 times caches and load, 1.60 "
            "times the least loaded), of conversations caches and load as many (1.01 [0.96, 1.07]; "
            "least loaded 1.51, caches alone 3.7). By the former the finding goes. With six "
            "replicas of an 8B model on H100 and 0.5 s, all ours, it was 1.00 [0.93, 1.08], "
            "undecided, of bursts over in a second. Four to sixteen replicas and 1 to 5 s give "
            "0.87 to 0.91 of fewer prompts, undecided on four and at 1 and 2 s (maps; at 0.5 s "
            "nobody serves any, since such a prompt takes 0.53 s alone); asked as unevenly as its "
            "agents' it is 0.99, undecided (map). The paper's 2.25 is of requests that keep 5 s "
            "at one rate (map: 1.00 to 0.83 here); of the rate that nine in ten keep it has 1.14 "
            "to 1.48",
            broken=(SCATTERED, Break(LEAST)),
        ),
    ),
    regimes=(
        Regime(
            claim="sooner",
            knob="engine.workload.rate",
            values=(5, 15, 30, 60, 90, 120),
            coarse=(15, 60, 120),
            x="requests a second, of six replicas",
            y="time to first token of the quickest other router over ours (×)",
            less="drawn prompts",
            default=60,
            judged=at_rate,
            log_x=True,
        ),
        Regime(
            claim="capacity",
            knob="engine.workload.skew",
            values=(0.0, 0.7, 1.34),
            coarse=(0.0, 1.34),
            x="Zipf's exponent of how often each beginning is asked for",
            y="requests a second over the strongest other router's (×)",
            less="400 drawn prompts",
            paper=1.34,
            paper_is="the paper's agent trace",
            default=0.0,
            judged=at_skew,
        ),
        Regime(
            claim="capacity",
            knob="replicas",
            values=(4, 8, 16),
            coarse=(4, 8),
            x="replicas, each with five more beginnings",
            y="requests a second over the strongest other router's (×)",
            less="fifty drawn prompts a replica",
            paper=8,
            paper_is="the paper's fleet",
            default=8,
            judged=at_replicas,
            log_x=True,
            noun="replicas",
        ),
        Regime(
            claim="capacity",
            knob="objective",
            values=(0.5, 1.0, 2.0, 5.0),
            coarse=(0.5, 5.0),
            x="time to the first token that nine in ten keep (s)",
            y="requests a second over the strongest other router's (×)",
            less="400 drawn prompts",
            paper=5.0,
            paper_is="the paper's objective",
            default=5.0,
            judged=at_objective,
            log_x=True,
        ),
        Regime(
            claim="capacity",
            knob="engine.workload.rate",
            values=(15, 20, 25, 30, 35, 40, 60),
            coarse=(20, 40),
            x="requests a second, of eight replicas",
            y="requests within 5 s over the strongest other router's (×)",
            less="400 drawn prompts",
            judged=keeping_at,
        ),
    ),
    limits=(
        "Predicted times to first token are tokens that wait over one speed, the router knows "
        "every replica's cache as it is, and moving a waiting request costs nothing. Scaling up "
        "and down is not there. A beginning is hashed twice as far while over a quarter of the "
        "last requests have it (two in as many as there are replicas), by the rule of a public "
        "port of the authors' router, which counts the last 1,000; ours counts 100, since a draw "
        "has 400. No beginning of the claims' own loads is so hot. Asked as unevenly as the "
        "paper's agents' (two beginnings of 38% and 15%) it serves 0.99 [0.77, 1.26] of the "
        "strongest (map), without that rule 0.63 [0.43, 0.92]. "
        "Preble, a rival of the paper's, is not here. Conversations are the shipped trace's, made "
        "like Mooncake's, which is not shipped, with prompts 0.39 as long as the paper's and "
        "5 s as much tighter for capacity. With 512 tokens hashed, which all of them share, every "
        "request would have the same two replicas. First tokens are timed on six replicas of an "
        "8B model on H100, with 0.5 s, which are ours; capacity on the Ascend 910C's die, the "
        "nearest to the paper's 910B of which we have a sheet, with 768,000 tokens cached, not a "
        "million."
    ),
)
