"""CoSine: several specialised drafters on nodes of their own, drafting beside the target."""

from engine.inference.config import InferenceConfig
from engine.inference.policies.batching.alternating import Alternating
from engine.inference.policies.drafters.collaborative import Collaborative
from engine.inference.run import run
from engine.inference.workloads.uniform import Uniform
from workbench.studies.decoding._cosine import (
    DESCRIBED,
    GENERAL,
    IN_TURN,
    MODELS,
    NODE,
    PLAIN,
    SMALL,
    SPECIAL,
    above_one,
    adaptive,
    adaptive_at,
    at_acceptance,
    at_batch,
    at_general,
    at_rent,
    latency,
    latency_at,
    pipelined,
    pipelined_at,
    routed,
    same_answers,
    throughput,
)
from workbench.study import Break, Changes, Claim, Regime, Reported, Study, Taught

NODES: Changes = {
    **DESCRIBED,
    "speculation.models": (SMALL,) * len(MODELS),
    "speculation.node": NODE,
    "max_running": 16,
    "workload.count": 16,
}
MISROUTED = Break(
    {"speculation.collaboration_fault": "misrouted", "speculation.routed": 1},
    mechanism=True,
    why="each request is drafted for by the model that is worst at it",
)
TAKEN_IN_TURN = Break(
    {"speculation.collaboration_fault": "in_turn"},
    True,
    "nodes draft for a group only while the target waits: nothing overlaps",
)
TOGETHER = Break(IN_TURN, why="nodes wait for the target and the target for them, as one group")

TAUGHT = Taught({"model": "stdlib-5m"}, rivals=MODELS)
STUDY = Study(
    slug="cosine",
    driver=run,
    config=InferenceConfig(
        workload=Uniform(count=6, shortest=8, longest=32),
        speculation=Collaborative(tokens=6),
        batching=Alternating(),
        max_running=4,
        pages=512,
        sampling={"max_tokens": 32},
    ),
    views=("token_river", "acceptance", "schedule", "levels"),
    about=(
        "One small model drafts well for some requests and badly for others, and while it drafts "
        "the target waits. CoSine lets several specialised models draft, each on a cheap node of "
        "its own. A request is routed to those that foretold it best; what the surest of them say "
        "comes together in one tree, which all of them go on from. And the target verifies one "
        "group of requests while the nodes draft for the other."
    ),
    tries=(
        ("One model for each request, the best at it", {"speculation.routed": 1}),
        ("Qwen3-32B on four A100s, three cards that draft", NODES),
        ("The same in turn: draft, then verify", {**NODES, **IN_TURN}),
    ),
    presets={"plain": PLAIN, "described": NODES},
    claims=(
        Claim(
            id="same-answers",
            sentence="Every request says what plain decoding says, token for token.",
            paper="reducing latency and costs while preserving generation quality (abstract)",
            grade="exact",
            check=same_answers,
            reported=Reported(0.0, "equal", unit="answers that differ"),
            finding="reproduced",
            broken=(
                Break(
                    {"speculation.branches": 1, "speculation.fault": "one_length"},
                    mechanism=True,
                    why="every row takes as many drafts as the luckiest: answers are wrong",
                ),
            ),
        ),
        Claim(
            id="above-one",
            sentence="Models that draft together have more accepted than the best of them alone.",
            paper="confidence-based token fusion ensures high-quality draft generation (abstract)",
            grade="measured",
            taught=TAUGHT,
            check=above_one,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            quick="undecided",
            fails=("small", "full"),
            why="two specialists learnt on from the general model are 0.14 and 0.24 nats better at "
            "held-out text of their kind, but they learnt that text and not what the target says, "
            "and one that is sure of something wrong takes a place in the tree: 0.985 [0.971, "
            "0.999] of the general model with as many drafts and as wide a tree, by which it is "
            "only just contrary: of draws of a third as many requests 0.975 [0.951, 0.9994], 0.97 "
            "[0.95, 1.00] and 0.99 [0.96, 1.01]. It is of one training of models taught here, and "
            "their recipe is none that `--trainings` makes again; 12 requests are too few to say",
            broken=(MISROUTED,),
        ),
        Claim(
            id="throughput",
            sentence="As much money gives 1.325 times the tokens a second.",
            paper="a 32.5% increase in throughput with equivalent resource costs (abstract)",
            grade="modelled",
            check=throughput,
            reported=Reported(1.325, none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="0.95 [0.91, 0.99] of a draft model on the target's own devices, 16 requests at "
            "once. Of two or three nodes, one or two for a request, 2 to 6 drafts in chains or "
            "trees, beside the target or in turn with it, two nodes in turn were best on draws by "
            "which nothing is judged; so were the rival's drafts chosen. Pipelined three nodes and "
            "6 drafts come to 0.67 (the small check): each group's verification reads all weights, "
            "so that two groups read them twice. That specialists have 7 of 10 drafts right and "
            "one for all 6 is our choice: where that one has 5 to 3 it is level, 1.00 [0.93, "
            "1.07] to 1.02 [0.96, 1.08], with 2 a gain of 1.04 [1.02, 1.07], and nowhere the "
            "paper's (map)",
            broken=(MISROUTED, Break(PLAIN)),
        ),
        Claim(
            id="latency",
            sentence="As much money gives answers in 0.768 of the time.",
            paper="a 23.2% decrease in latency with equivalent resource costs (abstract)",
            grade="modelled",
            check=latency,
            reported=Reported(0.768, "less", none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="1.04 [1.03, 1.06] between tokens of a request, 16 at once, of the nodes and "
            "drafts that were best on other draws, in turn with the target. Pipelined 1.51 (the "
            "small check): it waits while the other group is verified, which takes nearly as long "
            "as verifying all",
            broken=(MISROUTED, Break(PLAIN)),
        ),
        Claim(
            id="pipelined",
            sentence="Verifying one group while the other is drafted for beats taking turns.",
            paper="drafting and verification in a pipelined manner (abstract)",
            grade="modelled",
            check=pipelined,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="a pass of few requests is bound by reading weights, which groups that take turns "
            "read twice, and drafting is a smaller part. From 128 requests on, passes bound by "
            "arithmetic, it pays by 1.03, where plain decoding pays more",
            broken=(TAKEN_IN_TURN, TOGETHER),
        ),
        Claim(
            id="adaptive",
            sentence="Drafts that follow the load give more tokens a second than the best fixed "
            "number of them.",
            paper="adaptive speculation control to minimize idle periods (abstract)",
            grade="modelled",
            check=adaptive,
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="undecided",
            fails=("small", "full"),
            why="a step in which the target waits for drafts shortens the next ones, another "
            "lengthens them: it finds the best number without being told, and no better one, and "
            "at 64 requests at once a tenth less comes of it (map). The paper's rule is not in its "
            "abstract",
            broken=(
                Break(
                    {"speculation.collaboration_fault": "contrary"},
                    mechanism=True,
                    why="drafts grow where the target waits for them and shrink where it does not",
                ),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="throughput",
            knob="batch",
            values=(2, 4, 8, 16, 32, 64),
            coarse=(4, 16),
            x="requests at once",
            y="tokens a second over what as much money gives without nodes (×)",
            default=16,
            log_x=True,
            noun="requests",
            judged=at_batch,
        ),
        Regime(
            claim="pipelined",
            knob="requests",
            values=(8, 16, 32, 64, 128, 256),
            coarse=(16, 64),
            x="requests at once",
            y="tokens a second over the same nodes in turn (×)",
            default=16,
            log_x=True,
            noun="requests",
            judged=pipelined_at,
        ),
        Regime(
            claim="adaptive",
            knob="requests",
            values=(2, 4, 8, 16, 32, 64),
            coarse=(4, 16),
            x="requests at once",
            y="tokens a second over the best fixed number of drafts (×)",
            default=16,
            log_x=True,
            noun="requests",
            judged=adaptive_at,
        ),
        Regime(
            claim="throughput",
            knob="rent",
            values=(0.05, 0.1, 0.15, 0.25, 0.5, 1.0),
            coarse=(0.05, 0.5),
            x="rent of a node, in those of one of the target's devices",
            y="tokens a second over what as much money gives without nodes (×)",
            default=0.15,
            judged=at_rent(16),
        ),
        Regime(
            claim="throughput",
            knob="acceptance",
            values=(0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
            coarse=(0.3, 0.9),
            x="share of a specialist's drafts that are right",
            y="tokens a second over what as much money gives without nodes (×)",
            default=SPECIAL,
            judged=at_acceptance,
        ),
        Regime(
            claim="throughput",
            knob="general",
            values=(0.2, 0.3, 0.4, 0.5, 0.55, GENERAL, 0.65, SPECIAL),
            coarse=(0.3, GENERAL),
            x="share of one model's drafts for all requests that are right; a specialist's is 0.7",
            y="tokens a second over what as much money gives without nodes (×)",
            default=GENERAL,
            judged=at_general,
        ),
        Regime(
            claim="latency",
            knob="batch",
            values=(2, 4, 8, 16, 32, 64),
            coarse=(4, 16),
            x="requests at once",
            y="seconds between a request's tokens over what as much money gives (×)",
            default=16,
            log_x=True,
            noun="requests",
            judged=latency_at,
        ),
        Regime(
            claim="above-one",
            knob="routed",
            values=(1, 2, 3),
            coarse=(1, 3),
            x="models that draft for each request",
            y="tokens of a verification over those with the best model alone (×)",
            less="72 requests",
            default=2,
            noun="models",
            judged=routed,
        ),
    ),
    limits=(
        "On this machine the models draft in turn, and every one of them keeps up with every "
        "request; nodes of their own are on the virtual clock alone. There a node is routed its "
        "share of the requests, a tree's levels are told around after each pass, and a group "
        "waits for the last of its drafts. Drafts follow the load where `adaptive` says so, by a "
        "rule of ours and as many for every request; rents are our choice."
    ),
)
