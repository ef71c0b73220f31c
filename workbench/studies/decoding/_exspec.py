"""EXSPEC beside EQSPEC as its authors run it: the setting of the paper's table, and its checks."""

from engine.core.config import update
from engine.core.log import Log
from engine.core.measure import serving
from engine.inference.config import InferenceConfig
from workbench.regime import At
from workbench.studies.decoding._batch_speculative import (
    DESCRIBED,
    EQSPEC,
    SEEDS,
    judged,
    over,
    seconds,
)
from workbench.study import Break, Changes, Claim, Outcome, Regime, Reported, RunConfig

# What the paper's 1.64 is of. Its authors' repository (eBay/spec_dec at 96e1d12) keeps the log of
# EQSPEC's 95.6 tokens a second (c_overhead_b.py): batches of 4, 1,469 passes, 7,836 tokens of
# SpecBench's first 100 questions, at most 128 each, 1.14 of 5 drafts right; EXSPEC takes 952 passes
# (table 2) out of a window of 48. Prompts are as long as those questions at 4.2 characters a token,
# answers as the log's mean says. EQSPEC's batches run until their last answer is done there.
SMALL, WINDOW, QUESTIONS = 4, 48, 100
EXSPEC, EQSPECS = 156.4, 95.6  # tokens a second
ALIGNING = (0.146 / EXSPEC) / (0.277 / EQSPECS)  # seconds that a token of either is realigned
# At each spread of answers' lengths, which is ours, the median of the log's mean.
MEDIANS = {0.0: 78, 0.25: 76, 0.5: 74, 1.0: 76, 2.0: 93}
LESS = 0.9  # of the time: rows that join in any order differ by a hundredth
PUBLISHED: Changes = {
    **{knob: value for knob, value in DESCRIBED.items() if not knob.startswith("workload.")},
    "workload": {
        "kind": "poisson",
        "count": QUESTIONS,
        "rate": 0.0,
        "prompt": {"median": 46, "spread": 0.76, "shortest": 9, "longest": 391},
        "output": {"median": 76, "spread": 1.0, "longest": 128},
    },
    "speculation.acceptance": 0.545,  # of each place: 1.14 of five in a row
}
REFILLED: Changes = {"batching": "decode_first", "max_running": SMALL}
TO_THEIR_END: Changes = {**REFILLED, "batching": "static_batch", "batching.size": SMALL}


def published(config: InferenceConfig, fast: bool) -> InferenceConfig:
    """`config` in the setting of the paper's table, a pool or a batch of its size; in small with a
    third of its requests."""
    kind = config.batching.kind
    pool: Changes = {"batching.size": SMALL, "max_running": WINDOW}
    own = {"same_length": pool, "static_batch": TO_THEIR_END}.get(kind, REFILLED)
    few: Changes = {"workload.count": QUESTIONS // 3} if fast else {}
    return update(config, {**PUBLISHED, **own, **few})


def level_faster(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second of EXSPEC over EQSPEC's as published, whose batches run to their end."""
    return against(published(config, fast), TO_THEIR_END, run_config, fast)


def beside_refilled(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same over an EQSPEC that lets the next request in as soon as one ends."""
    return against(published(config, fast), REFILLED, run_config, fast)


def against(
    config: InferenceConfig, rival: Changes, run_config: RunConfig, fast: bool, times: float = 1.0
) -> Outcome:
    """The same where realigning takes so many times a copy at the device's bandwidth. Requests are
    all there at once, so that batches are the same however long it takes."""

    def slower(log: Log) -> float:
        seen = serving(log)
        return seen.tokens / (seen.makespan + (times - 1) * seconds(log, "align"))

    figure = over(config, rival, slower, run_config, SEEDS)
    return judged("more tokens a second than realigning after every step", figure)


def at_realigning(rival: Changes) -> At:
    """The published setting where realigning takes so many times a copy."""

    def there(config: InferenceConfig, times: float, run_config: RunConfig, fast: bool) -> Outcome:
        return against(published(config, fast), rival, run_config, fast, times)

    return there


def at_questions(
    config: InferenceConfig, count: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The published setting with so many requests."""
    many = update(published(config, fast), {"workload.count": int(count)})
    return against(many, TO_THEIR_END, run_config, fast)


def at_published_batch(
    config: InferenceConfig, size: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The published setting with batches of so many, out of the same window."""
    here = update(published(config, fast), {"batching.size": int(size)})
    rival = {**TO_THEIR_END, "batching.size": int(size), "max_running": int(size)}
    return against(here, rival, run_config, fast)


def at_spread(rival: Changes) -> At:
    """The published setting with answers whose lengths spread so far, as long in the mean."""

    def there(config: InferenceConfig, spread: float, run_config: RunConfig, fast: bool) -> Outcome:
        median = MEDIANS[min(MEDIANS, key=lambda one: abs(one - spread))]
        answers: Changes = {"workload.output.spread": spread, "workload.output.median": median}
        return against(update(published(config, fast), answers), rival, run_config, fast)

    return there


def grouping(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Seconds of realignment under EXSPEC, over EQSPEC's as published."""
    return less_aligning(published(config, fast), run_config, fast)


def at_pool(config: InferenceConfig, times: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same with so many times a batch's requests at hand."""
    pool: Changes = {"max_running": int(times) * SMALL}
    return less_aligning(update(published(config, fast), pool), run_config, fast)


def less_aligning(config: InferenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of a setting."""

    def aligning(log: Log) -> float:
        return max(seconds(log, "align"), 1e-9)

    figure = over(config, TO_THEIR_END, aligning, run_config, SEEDS)
    return judged("at least a tenth less time realigning for the same tokens", figure, LESS, True)


def at_enough(rival: Changes) -> At:
    """The published setting where such a share of a batch has to be level."""

    def there(config: InferenceConfig, share: float, run_config: RunConfig, fast: bool) -> Outcome:
        here = update(published(config, fast), {"batching.enough": share})
        return against(here, rival, run_config, fast)

    return there


APART = Break({"batching.fault": "in_turn"}, True, "each row takes a pass of its own")
# EQSPEC's batches as its authors run them, and as an engine of today would.
RIVALS = (("level-faster", TO_THEIR_END), ("beside-refilled", REFILLED))
LEVEL_CLAIMS = (
    Claim(
        id="grouping",
        sentence="Grouping requests of one length leaves a third of the time to realign.",
        paper="14.6% of EXSPEC's run, 27.7% of EQSPEC's (table 2, second hand): 0.32 for the same "
        "tokens",
        grade="modelled",
        check=grouping,
        reported=Reported(ALIGNING, "less", none=1.0, unit="×"),
        finding="weaker",
        quick="undecided",
        why="0.80 in the setting of the paper's table, where four in five of EXSPEC's passes are "
        "still filled up and realigned: prompts and answers are of many lengths, and the next "
        "request joins as soon as one ends. Realigning is a copy at the device's bandwidth here, "
        "1% of either run. In small the interval is wide, and the check says no",
        fails=("small",),
        broken=(
            Break({"batching.fault": "any_length"}, True, "rows join in order, of any length"),
            Break({"batching": "static_batch"}),
        ),
    ),
    Claim(
        id="level-faster",
        sentence="Batches of one length yield 1.64 times the tokens that realigned ones do.",
        paper="156.4 tokens a second of EXSPEC, 95.6 of EQSPEC (table 2, second hand)",
        grade="modelled",
        check=level_faster,
        reported=Reported(EXSPEC / EQSPECS, none=1.0, unit="×"),
        finding="weaker",
        quick="undecided",
        why="1.54 [1.46, 1.62] in the setting of the paper's table, for as many passes: 1,436 of "
        "EQSPEC and 939 of EXSPEC, 1,469 and 952 in the paper; in batches of 8 and more the "
        "paper's figure (map). It is not the levelness: EQSPEC's batches run until their last "
        "answer is done, EXSPEC's are refilled, and beside one that is refilled, too, 1.02 is left "
        "(the next claim). Realigning is 1% of a run here, 28% in the paper; as dear as there it "
        "leaves 1.45, since level batches are rarer here (map). How far answers' lengths spread "
        "the log does not say, and that decides: all alike it is 1.11, at a spread of 2 1.58, "
        "reproduced (map); the passes of its EQSPEC speak for 1 to 2. A third of the requests "
        "leave it undecided",
        broken=(APART, Break({"batching": "static_batch"})),
    ),
    Claim(
        id="beside-refilled",
        sentence="They do beside realigned batches that are refilled as soon as a row ends.",
        paper="156.4 tokens a second of EXSPEC, 95.6 of EQSPEC, whose batches run to their end",
        grade="modelled",
        check=beside_refilled,
        reported=Reported(EXSPEC / EQSPECS, none=1.0, unit="×"),
        finding="weaker",
        why="this project's own condition: 1.02 [1.01, 1.04] of the paper's 1.64 is left where "
        "EQSPEC, too, lets the next request in as soon as one ends, as any engine does, however "
        "far answers spread (map); 1.18 with realigning as dear as in the paper (map). Of fewer "
        "requests it is undecided",
        quick="undecided",
        fails=("small",),
        broken=(APART, Break(EQSPEC)),
    ),
)
LEVEL_REGIMES = (
    *(
        Regime(
            claim=claim,
            knob="realigning",
            values=(1, 3, 10, 30, 56, 100, 300),
            coarse=(1, 56),
            x="time that realigning takes, over a copy's at the device's bandwidth (×)",
            y="tokens a second of EXSPEC over EQSPEC's (×)",
            default=1,
            paper=56,
            paper_is="the paper's share of 28% of a run",
            log_x=True,
            judged=at_realigning(rival),
        )
        for claim, rival in RIVALS
    ),
    *(
        Regime(
            claim=claim,
            knob="batching.enough",
            values=(0.0, 0.25, 0.5, 0.75, 1.0),
            coarse=(0.5, 1.0),
            x="share of a batch that has to be level, else it is filled up",
            y="tokens a second of EXSPEC over EQSPEC's (×)",
            default=1.0,
            paper=1.0,
            paper_is="the authors' code",
            judged=at_enough(rival),
        )
        for claim, rival in RIVALS
    ),
    *(
        Regime(
            claim=claim,
            knob="spread",
            values=tuple(MEDIANS),
            coarse=(0.0, 1.0),
            x="spread of answers' lengths (of their logarithm), 78 tokens in the mean",
            y="tokens a second of EXSPEC over EQSPEC's (×)",
            default=1.0,
            judged=at_spread(rival),
        )
        for claim, rival in RIVALS
    ),
    Regime(
        claim="grouping",
        knob="pool",
        values=(1, 2, 4, 8, WINDOW // SMALL, 24),
        coarse=(1, WINDOW // SMALL),
        x="requests at hand, over those of a batch",
        y="time that realigning takes with groups of one length over that without (×)",
        default=WINDOW // SMALL,
        paper=WINDOW // SMALL,
        log_x=True,
        judged=at_pool,
    ),
    Regime(
        claim="level-faster",
        knob="questions",
        values=(8, 24, 48, QUESTIONS, 192, 400),
        coarse=(8, 24),
        x="requests of the job",
        y="tokens a second of EXSPEC over EQSPEC's (×)",
        default=QUESTIONS,
        paper=QUESTIONS,
        log_x=True,
        noun="requests",
        judged=at_questions,
    ),
    Regime(
        claim="level-faster",
        knob="batch",
        values=(2, SMALL, 8, 16, 32),
        coarse=(2, SMALL),
        x="requests in a batch, out of a window of 48",
        y="tokens a second of EXSPEC over EQSPEC's (×)",
        default=SMALL,
        paper=SMALL,
        log_x=True,
        noun="requests",
        judged=at_published_batch,
    ),
)
