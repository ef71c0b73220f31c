"""MSCCL++: collectives written as puts, signals and waits, the algorithm chosen by size."""

from engine.cluster.collective import CollectiveConfig, compared, whole
from engine.cluster.collective_real import beside_library
from engine.cluster.collective_run import in_words, run
from engine.core.config import update
from engine.distributed.flows.collective_work import algorithms, alone
from workbench.study import (
    Break,
    Claim,
    Figure,
    Outcome,
    RunConfig,
    Study,
)

UNREAD = "the paper was not read here, so no figure of its own is held against ours"
EXACT = 1e-9
# On nodes these have a closed form that is met exactly where each device has an adapter.
FORMS = ("ring", "tree", "halving_doubling", "hierarchical")
SIZES = (256.0, 1e5, 1e9)


def same_results(config: CollectiveConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every all-reduce on real ranks: numbers beside the library's, bytes beside the plan's."""
    small = update(config, {"operation": "all_reduce", "ranks": 4 if fast else 8})
    chosen = [
        each for each in algorithms("all_reduce").values() if each.fits(small.ranks, small.node())
    ]
    found = beside_library(small, chosen)
    worst = max(found, key=lambda kind: found[kind].difference)
    counted = sum(held.sent == held.planned for held in found.values())
    return Outcome(
        f"{len(found)} algorithms within 1e-6 of the library's sum, every byte as planned",
        f"{found[worst].difference:.2g} at most ({worst}); bytes as planned for {counted} of "
        f"{len(found)}, {small.ranks} ranks",
        found[worst].difference <= 1e-6 and counted == len(found),
        figure=Figure.exact(found[worst].difference),
        needed=1e-6,
    )


def closed_forms(config: CollectiveConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Message by message on the cluster's clock against alpha and beta."""
    worst, cases = 0.0, 0
    for ranks in (8, 16) if fast else (8, 16, 32, 64):
        here = update(config, {"ranks": ranks, "algorithm": "fastest"})
        topology, node = here.topology(), here.node()
        for kind in FORMS:
            each = algorithms("all_reduce")[kind]
            if not each.fits(ranks, node):
                continue
            plan = whole(here, each)
            for size in SIZES:
                clock = alone(topology, plan, range(ranks), size)
                form = each.seconds(topology.near, topology.far, ranks, node, size)
                worst, cases = max(worst, abs(clock / form - 1)), cases + 1
    return Outcome(
        f"{cases} cases equal to 1e-9",
        f"largest difference {worst:.2g}",
        worst <= EXACT,
        figure=Figure.exact(worst),
        needed=EXACT,
    )


def crossover(config: CollectiveConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The fastest at the smallest and at the largest size, and what taking one for all costs."""
    found = compared(config)
    by_size = found.chosen()
    costs = {kind: float((took / by_size).max()) for kind, took in found.seconds.items()}
    best = min(costs, key=costs.__getitem__)
    first, last = found.fastest()[0], found.fastest()[-1]
    return Outcome(
        "another algorithm is the fastest for the smallest tensor than for the largest; any one of "
        "them for all takes twice as long somewhere",
        f"{in_words(found)}; {best} for all: up to {costs[best]:.1f} times",
        first != last and costs[best] >= 2.0,
        figure=Figure.exact(costs[best], "×"),
        needed=2.0,
    )


STUDY = Study(
    slug="mscclpp",
    driver=run,
    config=CollectiveConfig(),
    views=("curves", "topology", "schedule"),
    about=(
        "A collective is a plan: who puts which piece of the tensor where, in which round, and who "
        "waits for whose signal. All-pairs in one phase or two, ring, tree, halving and doubling, "
        "hierarchical and star are such plans. Each is played on a described cluster, where "
        "messages in flight share ports, adapters and switches, and carried out on real ranks of "
        "this machine. Small tensors want few rounds, large ones few bytes: the curves show where "
        "one algorithm overtakes another, the other views one collective message by message."
    ),
    tries=(
        ("64 devices on eight nodes", {"ranks": 64}),
        ("Eight devices share two adapters", {"cluster": "ethernet-pods", "size": 1e8}),
        ("A parameter server", {"algorithm": "star", "size": 1e8}),
    ),
    presets={
        "gather": {"operation": "all_gather"},
        "all-to-all": {"operation": "all_to_all", "ranks": 32},
        "real-ranks": {"real": True, "ranks": 4},
    },
    claims=(
        Claim(
            id="same-results",
            sentence="Collectives written as puts and waits give what the library gives.",
            paper="a drop-in replacement of NCCL's collectives (abstract, as the catalogue tells)",
            grade="exact",
            check=same_results,
            why=UNREAD,
            broken=(Break({"left_out": 1}, True, "one message of a plan is left out"),),
        ),
        Claim(
            id="closed-forms",
            sentence="Alone on its links a plan takes what latency and bandwidth say.",
            paper="Thakur, Rabenseifner and Gropp, IJHPCA 2005: the alpha-beta forms",
            grade="exact",
            check=closed_forms,
            why=UNREAD,
            broken={"adapters": 1},
        ),
        Claim(
            id="crossover",
            sentence="Which algorithm is the fastest depends on the size.",
            paper="algorithms chosen by message size, as the catalogue tells",
            grade="modelled",
            check=crossover,
            why=UNREAD,
            broken={"smallest": 5e8},
        ),
    ),
    limits=(
        "The paper itself was not read: the primitives are those the catalogue names, and no speed "
        "of the paper is claimed. A put and its signal are one message of gloo's here, a wait is "
        "its receive; there are no GPU kernels, channels or switch reductions. Rounds are not "
        "pipelined: a tree carries the whole tensor each time. Flows share links as fluids, at "
        "once and fairly; switches spread load perfectly, and packets, protocols, collisions and "
        "the time that adding takes are left out. Latencies of the clusters' sheets are assumed."
    ),
)
