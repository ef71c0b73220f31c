"""ParScale: parallel streams of one model, told apart by learnt prefixes and mixed into one."""

from engine.inference.config import InferenceConfig
from engine.inference.run import run
from engine.inference.workloads.prompts import Prompts
from workbench.studies.decoding._parscale import (
    CONTEXT,
    DESCRIBED,
    FOUR,
    LARGER,
    LATER,
    PLAIN,
    WINDOW,
    again_within,
    at_batch,
    at_context,
    at_count,
    base_bits,
    equal_parameters,
    equal_within,
    falls,
    latency,
    logarithm,
    memory,
    same_answers,
)
from workbench.study import Break, Claim, Regime, Reported, Study

PAPER = (
    "up to 22 times less memory increase and 6 times less latency increase than scaling the "
    "parameters to the same performance (abstract)"
)
WORTH_OF_THE_PAPER = (
    "what streams are worth is the paper's: eight of 1.6 billion parameters are as good as 4.4 "
    "billion (second hand). Here Qwen3-1.7B stands beside Qwen3-4B, whose 4.0 are less than those"
)
ONE_PREFIX = Break(
    {"streams.fault": "one_prefix"},
    mechanism=True,
    why="all streams stand behind the first one's prefix, so that they are one stream four times",
)
SUMMED = Break(
    {"streams.fault": "summed"},
    mechanism=True,
    why="what streams say is added up, not mixed in shares",
)
ONE_CACHE = Break(
    {"streams.fault": "one_cache"},
    mechanism=True,
    why="streams share the prompt's pages, whose keys differ from stream to stream",
)

STUDY = Study(
    slug="parscale",
    driver=run,
    config=InferenceConfig(
        model="streams/p4-0",
        workload=Prompts(texts=("def main(", "class Queue:", "import "), repeat=2),
        pages=128,
        sampling={"max_tokens": 40},
    ),
    views=("token_river", "page_map", "request_lanes", "levels"),
    about=(
        "A model can be made better by more parameters, which cost memory, or by longer answers, "
        "which cost time. ParScale runs the same parameters P times over each token, side by side: "
        "every stream stands behind a learnt prefix of keys and values of its own, and a small "
        "network mixes what they say. A step reads the weights once for all streams, and a device "
        "that decodes few requests waits for weights and computes almost for nothing. The streams "
        "of a request are rows of the engine's own batch; a page holds the keys and values of all "
        "of them, so that prefixes are shared, requests forked and pages taken away as ever."
    ),
    tries=(
        ("One stream", {"model": "streams/p1-0"}),
        ("Four of Qwen3-1.7B on an H100", {**DESCRIBED, **FOUR}),
        ("Four streams behind one prefix", ONE_PREFIX.changes),
    ),
    presets={
        "one": {"model": "streams/p1-0"},
        "two": {"model": "streams/p2-0"},
        "described": {**DESCRIBED, **FOUR},
        "described-one": {**DESCRIBED, **PLAIN},
    },
    claims=(
        Claim(
            id="base-bits",
            sentence="One stream behind an empty prefix is the plain model, bit for bit.",
            paper="P = 1 is the plain model (section 3.1, second hand)",
            grade="exact",
            check=base_bits,
            reported=Reported(0.0, "equal", unit="tokens that differ"),
            finding="reproduced",
            why="a share of 1 and a prefix of no tokens go the same way as any other",
            broken=(
                Break(
                    {"streams.fault": "undiscounted"},
                    mechanism=True,
                    why="shares are not lowered by what smoothing adds to each: they sum to more",
                ),
            ),
        ),
        Claim(
            id="same-answers",
            sentence="In a busy batch on pages, streams say what whole passes beside one another "
            "say.",
            paper="P passes, each behind its prefix, mixed (equations 2 and 3, second hand)",
            grade="exact",
            check=same_answers,
            reported=Reported(0.0, "equal", unit="answers that differ"),
            finding="reproduced",
            why="this project's own condition, with chunked prompts and pages taken away",
            broken=(
                ONE_PREFIX,
                ONE_CACHE,
            ),
        ),
        Claim(
            id="loss-falls",
            sentence="Four streams have less loss than one, trained on the same tokens.",
            paper="parallel streams are worth O(log P) times the parameters (abstract)",
            grade="measured",
            check=falls,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="undecided",
            why="half a million tokens are too few: what twice the parameters gain in them, 0.026 "
            "nats [-0.005, 0.057], is not told from nothing, either, at the rate that suits the "
            "plain model best",
            fails=("small", "full"),
            broken=(SUMMED,),
        ),
        Claim(
            id="logarithm",
            sentence="The second doubling of streams gains again.",
            paper="parallel streams are worth O(log P) times the parameters (abstract)",
            grade="measured",
            check=logarithm,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="undecided",
            why="the first doubling is not told from nothing, either, and windows of 8 tokens tell "
            "no more than those of 63 (map). Models of one, two and four streams are shipped: each "
            "other number would have to be trained",
            fails=("small", "full"),
            broken=(SUMMED,),
        ),
        Claim(
            id="equal-parameters",
            sentence="Four streams have less loss than a plain model of as many parameters.",
            paper="streams reuse existing parameters (abstract)",
            grade="measured",
            check=equal_parameters,
            reported=Reported(0.0, none=0.0, unit="nats"),
            finding="undecided",
            why="prefixes and mixing are a fifth of so small a model; a wider feed-forward is at "
            "least as good a place for them: in windows of 8 tokens streams are 0.006 nats below "
            "it, in those of 63 0.041 above, undecided in each (map). Another share of prefixes "
            "and mixing would be another model, trained anew",
            fails=("small", "full"),
            broken=(SUMMED,),
        ),
        Claim(
            id="latency",
            sentence="Eight streams add up to 6 times less latency than the parameters that they "
            "are worth.",
            paper=PAPER,
            grade="modelled",
            check=latency,
            reported=Reported(LATER, none=1.0, unit="×"),
            finding="reproduced",
            why=WORTH_OF_THE_PAPER
            + ". At 28 times it is five times past the paper's figure: arithmetic of the streams "
            "is hidden whole behind the weights on a described device, of one request, where "
            "kernels take no time of their own; of sixteen the parameters add less than twice as "
            "much, of 64 less than the streams (map)",
            broken=(
                Break(
                    {"streams.fault": "in_turn"},
                    mechanism=True,
                    why="streams pass one after another, and each reads the weights anew",
                ),
            ),
        ),
        Claim(
            id="memory",
            sentence="Eight streams take up to 22 times less memory than the parameters that they "
            "are worth.",
            paper=PAPER,
            grade="modelled",
            check=memory,
            reported=Reported(LARGER, none=1.0, unit="×"),
            finding="weaker",
            fails=("small", "full"),
            why=WORTH_OF_THE_PAPER + ". The longer the request, the more keys and values (map)",
            broken=(
                Break(
                    {"streams.fault": "copied"},
                    mechanism=True,
                    why="weights are not shared: each stream has some of its own",
                ),
                Break(
                    {"streams": {"kind": "parallel", "count": 8, "prefix": 4096}},
                    mechanism=True,
                    why="a whole context of its own stands before each stream",
                ),
            ),
        ),
    ),
    regimes=(
        Regime(
            claim="loss-falls",
            knob="count",
            values=(2, 4),
            x="streams",
            y="nats below one stream",
            default=4,
            log_x=True,
            noun="streams",
            judged=at_count,
        ),
        *(
            Regime(
                claim=claim,
                knob="window",
                values=(8, 16, 32, WINDOW),
                coarse=(16, WINDOW),
                x="tokens of a window by which models are judged",
                y=y,
                default=WINDOW,
                log_x=True,
                noun="tokens",
                judged=judged,
            )
            for claim, y, judged in (
                ("logarithm", "nats of four streams below two", again_within),
                ("equal-parameters", "nats below a plain model of as many", equal_within),
            )
        ),
        Regime(
            claim="latency",
            knob="batch",
            values=(1, 4, 16, 64, 128, 256),
            coarse=(1, 64),
            x="requests at once",
            y="latency of equal parameters over that of streams (×)",
            default=1,
            paper=1,
            paper_is="the paper's batch",
            log_x=True,
            log_y=True,
            noun="requests",
            judged=at_batch,
        ),
        Regime(
            claim="memory",
            knob="context",
            values=(64, 128, CONTEXT, 384, 768, 1536, 4096),
            x="tokens of the request",
            y="memory of equal parameters over that of streams (×)",
            default=CONTEXT,
            log_x=True,
            log_y=True,
            noun="tokens",
            judged=at_context,
        ),
    ),
    limits=(
        "Models of 31,000 to 64,000 parameters, trained here for half a million tokens of Python, "
        "in which not even twice the parameters gain for sure (1.902 nats against 1.928 of the "
        "plain models, five pairs), so that nothing is told of what streams are worth to a model "
        "that is trained out; "
        "the paper's have a billion and more, its prefixes 48 tokens, and its prefixes and mixing "
        "are a small part of them, which they are not here. Latency is that of Qwen3-1.7B with "
        "eight streams on a described H100, beside Qwen3-4B. The paper was read second hand. "
        "Keys of a prompt are shared between requests, never between streams. Attention is not "
        "sampled, batches are not padded and threads see no views where streams run."
    ),
)
