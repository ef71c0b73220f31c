"""DualMap: two hashes of a prompt's beginning name the two replicas that it may go to."""

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.fleet.config import FleetConfig
from engine.fleet.life import PREFILL
from engine.fleet.measure import served
from engine.fleet.routers.dual_map import DualMap
from engine.fleet.run import REQUESTS, run
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.workloads.shared_prefix import SharedPrefix
from engine.inference.workloads.synthetic import Lengths
from engine.inference.workloads.workload import Source
from workbench.study import Break, Claim, Figure, Outcome, Regime, Reported, RunConfig, Study

SEEDS = 5
SCATTERED = Break(
    {"router.beginning": 1 << 20}, True, "whole prompts are hashed, so equal beginnings scatter"
)
LEAST = {"router": "least_loaded"}


def quiet(config: FleetConfig) -> FleetConfig:
    return update(config, {"tokens": False})


def beginnings(config: FleetConfig) -> np.ndarray:
    """Of each request, by arrival: the number of its prompt's beginning."""
    engine = config.engine
    source = Source(vocab=1 << 15, context=1 << 20, sampling=engine.sampling)
    asked = sorted(engine.workload.requests(source, engine.seed), key=lambda r: r.arrival)
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(r.prompt[:64].tobytes(), len(known)) for r in asked])


def spread(config: FleetConfig, log: Log) -> int:
    """Most replicas that the requests of one beginning were computed on."""
    begins, place = beginnings(config), log.blobs[REQUESTS][PREFILL]
    return max(len(set(place[begins == each].tolist())) for each in np.unique(begins))


def two_places(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How many replicas the requests of one beginning meet."""
    one = quiet(config)
    most = spread(one, run_config(one))
    return Outcome(
        "equal beginnings meet two replicas at most",
        f"at most {most} of {one.replicas}",
        most <= 2,
        figure=Figure.exact(most, "replicas"),
        needed=2.0,
    )


def sooner(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Mean time to first token of the least-loaded router over ours, same requests."""
    ours, theirs, hits = [], [], []
    for seed in range(SEEDS):
        one = update(quiet(config), {"engine.seed": config.engine.seed + seed})
        rival = update(one, LEAST)
        mine, other = served(run_config(one), one), served(run_config(rival), rival)
        ours.append(mine.ttft.mean)
        theirs.append(other.ttft.mean)
        hits.append((mine.hit_rate, other.hit_rate))
    ratio = Figure.ratio(theirs, ours)
    found, usual = np.mean(hits, axis=0)
    return Outcome(
        "first tokens sooner than where the least loaded replica is taken (95% interval)",
        f"{ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}] as soon; {found:.0%} of prompt "
        f"tokens found in a cache, {usual:.0%} there; n = {ratio.n}",
        ratio.low > 1,
        figure=ratio,
        needed=1.0,
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
            sentence="First tokens come sooner than by a router that looks at load alone.",
            paper="up to 2.25× the request capacity under the same TTFT objective (abstract)",
            grade="modelled",
            check=sooner,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="reproduced",
            why="a direction: mean time to first token at one load; the paper's capacity under an "
            "objective was not looked for",
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
            y="time to first token of the least loaded router over ours (×)",
            default=60,
            log_x=True,
        ),
    ),
    limits=(
        "Predicted times to first token are tokens that wait over one speed, the router knows "
        "every replica's cache as it is, and moving a waiting request costs nothing. Scaling up "
        "and down is not there. Every beginning is asked for equally often here: against a router "
        "that looks at caches alone DualMap is no better then (modelled, 512 requests on eight "
        "replicas: 19 to 22 ms at the median both), and that under skewed popularity it is was not "
        "tried."
    ),
)
