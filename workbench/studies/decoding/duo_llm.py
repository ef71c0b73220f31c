"""Duo-LLM: a small and a big feed-forward in every layer, and who says which one a token takes."""

from engine.inference.config import InferenceConfig
from engine.inference.oracle.run import run
from engine.inference.policies.modules import ByRouter
from engine.inference.workloads.prompts import Prompts
from workbench.studies.decoding._duo_llm import (
    MODEL,
    at_budget,
    nearer_at,
    nearer_chance,
    one_beside,
    one_beside_many,
    one_big,
    one_big_over_plain,
    one_big_with,
    oracle_over_fixed,
    oracle_over_router,
    over_fixed_at,
    over_plain_with,
    router_at,
    router_over_fixed,
)
from workbench.studies.decoding._modules_served import flops, plain_parity, same_answers
from workbench.study import Break, Claim, Regime, Reported, Study

LATE = Break(
    {"modules.fault": "late"},
    mechanism=True,
    why="each token goes the way that was best for the one before it",
)
SHIFTED = Break(
    {"modules.fault": "shifted"},
    mechanism=True,
    why="a token's modules are chosen by what the router reads of the token before it",
)
REVERSED = Break(
    {"modules.fault": "reversed"},
    mechanism=True,
    why="tokens get the small one where the router means the big one, as far as they may",
)
SUBOPTIMAL = "trained routers often yield suboptimal solutions (abstract)"
ONE_LAYER = (
    "activating a large module in just one layer outperforms models that use large modules across "
    "all layers (abstract)"
)
STUDY = Study(
    slug="duo-llm",
    driver=run,
    config=InferenceConfig(
        model=MODEL,
        modules=ByRouter(big=1),
        workload=Prompts(texts=("def main(", "class Queue:", "import os")),
        pages=128,
        sampling={"max_tokens": 32, "ignore_eos": True},
    ),
    views=("modules", "curves", "token_river", "request_lanes"),
    about=(
        "Every layer of this transformer has two feed-forwards, one an eighth as wide as the "
        "other, and a token takes either or none. The model was trained with choices at random, so "
        "that any route through the layers works. A router then learns to say which tokens are "
        "worth the big one, with a fixed number of big ones for each. Afterwards an oracle tries "
        "every route of every token and takes the one that foretold the next token best: nobody "
        "could have known it in time, and it shows how much there is to be had at the same compute."
    ),
    tries=(
        ("The big one in two layers", {"modules.big": 2}),
        ("Layers drawn at random", {"modules": "drawn", "modules.big": 1}),
        ("Half of them left out", {"modules": "routes", "modules.routes": "B-s- -B-s"}),
    ),
    presets={
        "all-big": {"modules": "routes", "modules.routes": "BBBB"},
        "all-small": {"modules": "routes", "modules.routes": "ssss"},
        "drawn": {"modules": "drawn", "modules.big": 1},
    },
    claims=(
        Claim(
            id="plain-parity",
            sentence="With the big one everywhere, or the small one, it is the plain transformer "
            "that has those alone, bit for bit.",
            paper="smaller auxiliary modules within each feed-forward layer (abstract)",
            grade="exact",
            check=plain_parity,
            reported=Reported(0.0, "equal", unit="tokens that differ"),
            finding="reproduced",
            why="this project's own condition, in a busy batch on pages",
            broken=(
                Break(
                    {"modules.fault": "swapped"},
                    mechanism=True,
                    why="in the last layer the small one stands for the big one and it for that",
                ),
            ),
        ),
        Claim(
            id="same-answers",
            sentence="In a busy batch on pages, every token takes the modules it takes alone.",
            paper="tokens are processed by the small or big modules at each layer (abstract)",
            grade="exact",
            check=same_answers,
            reported=Reported(0.0, "equal", unit="answers that differ"),
            finding="reproduced",
            why="this project's own condition, with chunked prompts and pages taken away",
            broken=(SHIFTED,),
        ),
        Claim(
            id="flops",
            sentence="A module that a token does not take costs no flops, and none are told.",
            paper="tokens may bypass certain layers entirely (abstract)",
            grade="exact",
            check=flops,
            reported=Reported(0.0, "equal", unit="flops apart"),
            finding="reproduced",
            why="this project's own condition: flops told are those of the products that were done",
            broken=(
                Break(
                    {"modules.fault": "computed"},
                    mechanism=True,
                    why="what a token leaves out is computed all the same and thrown away",
                ),
            ),
        ),
        Claim(
            id="oracle-over-router",
            sentence="An oracle loses less than the trained router at equal compute.",
            paper=SUBOPTIMAL,
            grade="measured",
            check=oracle_over_router,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="reproduced",
            why="a direction; the oracle knows the next token, which no router does, so that part "
            "of the gap is luck of many tries",
            broken=(LATE,),
        ),
        Claim(
            id="one-big",
            sentence="The big one in one layer, and the small one or none in the others, where the "
            "oracle says, loses less than the big one in every layer.",
            paper=ONE_LAYER,
            grade="measured",
            check=one_big,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="reproduced",
            why="by 0.33 nats [0.31, 0.35], a direction; tokens may bypass layers, as in the "
            "paper: the oracle takes the best of 32 routes after the fact, where with all big "
            "there is one. What gains is that choice, not that few are big: without leaving out "
            "it is 0.10 of four routes (map), and with no big one at all 0.20 of sixteen",
            broken=(LATE,),
        ),
        Claim(
            id="one-beside-many",
            sentence="It loses less than the big one in all layers but one, with as many routes to "
            "choose from.",
            paper=ONE_LAYER,
            grade="measured",
            check=one_beside_many,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="contrary",
            quick="undecided",
            fails=("small", "full"),
            why="this project's own condition, without leaving out, so that both have four routes: "
            "the paper's rival has one. An oracle of three "
            "big ones loses 0.021 nats less than that of one; of two, with six routes, 0.050 less; "
            "with the paper's four, a single route, 0.10 more (map)",
            broken=(LATE,),
        ),
        Claim(
            id="one-big-over-plain",
            sentence="It also loses less than a model of big ones alone, trained as long by "
            "itself.",
            paper=ONE_LAYER,
            grade="measured",
            check=one_big_over_plain,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="reproduced",
            why="by 0.18 nats [0.13, 0.22], a direction, over five models that each began at "
            "weights of their own, where tokens may bypass layers, as in the paper. It rests on "
            "that: where each layer takes the small one at least it is 0.05 more [0.00, 0.10], "
            "since any route has to work, which costs the model 0.15 where all are big (map). Any "
            "choice after the fact does: with no big one at all, of sixteen routes, it is 0.05 "
            "below. Whether the paper's rival was trained by itself its abstract does not say",
            broken=(LATE,),
        ),
        Claim(
            id="oracle-over-fixed",
            sentence="The oracle loses less than the best layers for all tokens.",
            paper="computational demands vary with the input (abstract)",
            grade="measured",
            check=oracle_over_fixed,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="reproduced",
            why="a direction; the layers are chosen on other text, the oracle's of each token "
            "after the next one is known: part of it is luck of four tries, as beside the router",
            broken=(LATE,),
        ),
        Claim(
            id="router-over-fixed",
            sentence="The trained router loses less than the best layers for all tokens.",
            paper="dynamic routing of tokens based on task complexity (abstract)",
            grade="measured",
            check=router_over_fixed,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="undecided",
            fails=("small", "full"),
            why="by 0.007 nats of 1.84 [-0.002, 0.015], over 3,000 tokens and five models: hardly "
            "more than the layer that is best for all, and less than what seeds do",
            broken=(REVERSED,),
        ),
        Claim(
            id="nearer-chance",
            sentence="The trained router stays nearer to routes at random than to the oracle's.",
            paper="trained routers operate differently from oracles (abstract)",
            grade="measured",
            check=nearer_chance,
            reported=Reported(0.5, "less", unit="%"),
            finding="reproduced",
            why="half of the way is ours; the paper's figure was not read",
            broken=(LATE,),
        ),
    ),
    regimes=(
        *(
            Regime(
                claim=claim,
                knob="big",
                values=(1, 2, 3),
                x="big feed-forwards of a token",
                y=y,
                default=1,
                noun="layers of four",
                judged=judged,
            )
            for claim, judged, y in (
                ("oracle-over-router", at_budget, "nats that the oracle is below the router"),
                ("oracle-over-fixed", over_fixed_at, "nats that it is below the best layers"),
                ("router-over-fixed", router_at, "nats that the router is below the best layers"),
                ("nearer-chance", nearer_at, "of the way from chance to the oracle"),
            )
        ),
        Regime(
            claim="one-beside-many",
            knob="the rival's big ones",
            values=(2, 3, 4),
            x="big feed-forwards of the rival's token, which has 6, 4 and 1 routes",
            y="nats that the oracle with one big one is below",
            paper=4,
            paper_is="the paper's rival",
            default=3,
            noun="layers of four",
            judged=one_beside,
        ),
        *(
            Regime(
                claim=claim,
                knob="without",
                values=(0, 1, 2, 3),
                coarse=(0, 3),
                x="layers of four in which a token may take neither",
                y=f"nats that the oracle with one big one is below {rival}",
                default=3,
                paper=3,
                noun="layers",
                judged=judged,
            )
            for claim, judged, rival in (
                ("one-big", one_big_with, "all big ones"),
                ("one-big-over-plain", over_plain_with, "a model trained with big ones alone"),
            )
        ),
    ),
    limits=(
        "The paper's abstract alone was read. Its oracle and its router are our reading: the "
        "oracle tries every route of a token and takes the one with the least loss of the next "
        "token, from left to right, not the best for a whole text; the router is linear, one for "
        "each layer, and learns the loss that its choices are expected to have over all routes, "
        "with the model standing still. Every token has the same number of big ones: how compute "
        "is shared out among tokens is not tried. Layers are left out by the oracle with one big "
        "one beside all big ones and the plain model; elsewhere a layer takes the small one at "
        "least. Leaving out is of the feed-forward; attention always runs. Five models of 76,000 "
        "parameters, trained here for a million bytes of "
        "Python, and five plain ones of 70,000; the paper's are far larger. What an "
        "oracle gains by knowing the next token a router cannot gain."
    ),
)
