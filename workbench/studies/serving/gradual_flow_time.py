"""Flow time of gradually revealed jobs: an operation's size is known as the one before ends."""

from engine.fleet.flow_time.run import FlowTimeConfig, run
from workbench.studies.serving._gradual_flow_time import (
    BLIND,
    WORKS,
    at_size,
    best_possible,
    bounded,
    knows_more,
    over,
    tested,
)
from workbench.study import Break, Claim, Comparison, Regime, Reported, Study

LATE = Break(
    {"order": {"kind": "operation_srpt", "late": True}},
    True,
    "a size is known one operation late",
)
EARLY = Break(
    {"order": {"kind": "operation_srpt", "early": True}},
    True,
    "a size is known one operation early",
)

STUDY = Study(
    slug="gradual-flow-time",
    driver=run,
    config=FlowTimeConfig(),
    views=("schedule", "levels"),
    about=(
        "Jobs come to one machine and may be interrupted; what counts is the sum of the times "
        "from a job's coming to its end. Who knows all sizes runs the job with the least left, and "
        "nobody does better. Who knows none does badly. In between, a job is a sequence of "
        "operations (a prompt, a tool's call, an answer), and the size of one is known when the "
        "one before is done. Operations are grouped into chunks: a larger one than those before "
        "begins a new chunk, so the chunk under way is known to within the number of its "
        "operations. The lowest chunk goes first. Where every job begins with a test of one size, "
        "the shortest operation first is enough."
    ),
    tries=(
        ("Nobody knows any size", {"order": "round_robin"}),
        ("Long jobs that begin short", {"jobs": "bait"}),
        ("An adversary of tests", {"order": "operation_srpt", "jobs": {"kind": "unlucky"}}),
    ),
    presets={"clairvoyant": {"order": "srpt"}, "operation-level": {"order": "operation_srpt"}},
    claims=(
        Claim(
            id="tested",
            sentence="With uniform obligatory tests, SRPT at the operation level is 2-competitive.",
            paper="SRPT at the operation level is 2-competitive (abstract)",
            grade="exact",
            check=tested,
            reported=Reported(2.0, "less", unit="×"),
            finding="reproduced",
            why="the worst of the instances that are played, an adversary's among them; no proof",
            broken=(LATE,),
        ),
        Claim(
            id="best-possible",
            sentence="Two is the best that is possible.",
            paper="which is best possible (abstract)",
            grade="exact",
            check=best_possible,
            reported=Reported(2.0, none=1.0, unit="×"),
            finding="weaker",
            why="an adversary of so many jobs that adapts to each of five orders: what the order "
            "has not tested when half could be done needs nothing more. It comes ever nearer to "
            "two as they grow (map); at least 1.5×, half of the way, is ours; five orders are no "
            "proof for all",
            broken=(EARLY, Break({"order": "srpt"}, why="all sizes are known: the optimum")),
        ),
        Claim(
            id="bounded",
            sentence="By chunks the total flow time is O(m1·m2) times the optimum.",
            paper="a refined competitive ratio in O(m1·m2) (abstract)",
            grade="exact",
            check=bounded,
            reported=Reported(1.0, "less", none=1.0),
            finding="reproduced",
            why="a direction: an O has no figure, and the constant of one that is asked for is "
            "ours; the worst of the instances that are played, no proof",
            broken=(
                Break(
                    {"order.grow": False}, True, "a job stays in the class of its first operation"
                ),
                Break({"order": "first_come"}),
            ),
        ),
        Claim(
            id="knows-more",
            sentence="Sizes revealed as jobs run make the flow time less than none do.",
            paper="non-clairvoyant scheduling suffers from strong lower bounds, which motivates "
            "intermediate models (abstract)",
            grade="exact",
            check=knows_more,
            reported=Reported(1.0, none=1.0, unit="×"),
            held=Comparison(tuple(BLIND), WORKS),
            finding="reproduced",
            why="a direction: the abstract states no figure. It rests on sizes that differ, a "
            "spread of 1.0 being ours: from 0.5 on it holds; at 0.25 it is contrary, 0.97 [0.95, "
            "1.00] beside first come first served, which interrupts nobody, and where all sizes "
            "are alike nothing is revealed and nothing gained (map). On drawn jobs the shortest "
            "operation first is nearer to the optimum than chunks are",
            broken=(LATE, Break({"order": "round_robin"})),
        ),
    ),
    regimes=(
        Regime(
            claim="knows-more",
            knob="jobs.load",
            values=(0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.2),
            coarse=(0.2, 0.6, 0.9, 1.2),
            x="work that arrives in a second (s)",
            y="flow time where no size is known over ours (×)",
            default=0.9,
            judged=over("jobs.load", knows_more),
        ),
        Regime(
            claim="knows-more",
            knob="jobs.spread",
            values=(0.0, 0.25, 0.5, 1.0, 2.0, 3.0),
            coarse=(0.0, 0.5, 1.0, 2.0),
            x="standard deviation of a size's logarithm",
            y="flow time where no size is known over ours (×)",
            default=1.0,
            judged=over("jobs.spread", knows_more),
        ),
        Regime(
            claim="best-possible",
            knob="jobs at once",
            values=(2, 5, 10, 20, 40, 60),
            coarse=(2, 5, 10, 20),
            x="jobs that come at once",
            y="least flow time of five orders over the optimum (×)",
            judged=at_size,
            log_x=True,
        ),
    ),
    limits=(
        "The paper was not read, its abstract was: how chunks are formed (a higher power of two "
        "begins one) and which goes first (the lowest class, of its class the one begun) is ours "
        "after that description, and proves nothing of the paper's algorithm. m1 is taken as the "
        "most chunks of a job and m2 as the most operations of one. Bounds are held on the "
        "instances played, not proven. Interrupting a job costs nothing, sizes are exact once "
        "known, and the machine is one: a batch that decodes many at once is another problem."
    ),
)
