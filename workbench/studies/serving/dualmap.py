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
    at_rate,
    at_skew,
    capacity,
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
        "A prompt whose beginning lies in a replica's cache is computed faster there, but if every "
        "such request went there it would be overrun. DualMap hashes the beginning twice, onto "
        "two rings of replicas: equal beginnings meet the same two, and every replica shares its "
        "load with many others. A request goes where its beginning is cached unless it would wait "
        "there beyond the objective, then to where it waits less; requests that wait on a replica "
        "which is behind move to their other one."
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
            finding="undecided",
            quick="weaker",
            fails=("full",),
            why="the figure is beside the strongest router of each workload, and that is another "
            "one: of drawn prompts caches alone serve as many (1.04, and the least loaded replica "
            "is left 3.44 times behind), of conversations over one system prompt caches and load "
            "(1.00; least loaded 1.54; caches alone hold the objective at no load tried). Both "
            "look into every replica's cache; DualMap asks two. The objective, 0.5 s for nine in "
            "ten, is assumed; what is hashed has to reach beyond what all prompts share. Loads are "
            "those of bursts: 240 drawn requests are over in a second, 200 of conversations in "
            "three, and there ours and caches and load come near the highest load tried",
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
            values=(0.0, 0.5, 1.0, 1.5, 2.0),
            coarse=(0.0, 1.0, 2.0),
            x="Zipf's exponent of how often each beginning is asked for",
            y="requests a second over the strongest other router's (×)",
            less="one draw",
            default=0.0,
            judged=at_skew,
        ),
    ),
    limits=(
        "Predicted times to first token are tokens that wait over one speed, the router knows "
        "every replica's cache as it is, and moving a waiting request costs nothing. Scaling up "
        "and down is not there. Every beginning is asked for equally often unless the workload is "
        "skewed. Conversations are the shipped trace's, 200 requests of it, made like Mooncake's: "
        "Mooncake's own is not shipped. With 512 tokens hashed, which all its prompts share, every "
        "request would have the same two replicas."
    ),
)
