"""1-bit Adam: the variance frozen after warm-up, momentum in one bit with error compensation."""

from functools import partial

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.methods.one_bit_adam import OneBitAdam
from engine.training.low_communication.run import run as driver
from workbench.studies.communication._low_communication import (
    BROKEN_WIRE,
    SAME,
    SEEDS,
    SMALL,
    excess,
    interval,
    losses,
    on_the_wire,
    run,
)
from workbench.study import (
    Break,
    Changes,
    Claim,
    Figure,
    Outcome,
    Regime,
    Reported,
    RunConfig,
    Study,
)

ADAM: Changes = {"method": "synchronous", "method.codec": "float16"}
# Gradients take some three times as long as a step: a network where volume is what matters.
SLOW: Changes = {
    "executor": "modelled",
    "executor.bandwidth": 6e5,
    "executor.latency": 0.002,
    "replicas": 3,
}
# The port on which Adam's gradients take 13 times as long as a replica computes, as in the paper's
# table 1: on 64 GPUs with 40 Gbit/s Ethernet 2275 ms beside 172.
ETHERNET = 1.2e5
WARM = 0.15  # of all steps, as the paper's
SHORT: Changes = {"steps": 32, "method.exact": 5, "learning.judged": 128}
PLAIN: Changes = {"method": "one_bit_adam", "method.compensate": False, "method.fault": "none"}


def same_loss(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Held-out loss after the same steps on the same windows, against Adam in half precision; it
    holds where compensation does what it is for, so against the same without."""
    return by_seeds(config, SEEDS, run_config, fast)


def by_seeds(
    config: LowCommunicationConfig, seeds: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with another number of seeds."""
    warm = warm_up(config, fast)
    ours = losses(config, run_config, warm, fast, int(seeds))
    figure = excess(ours, losses(config, run_config, ADAM, fast, int(seeds)))
    same = update(config, PLAIN) == config
    bare = ours if same else losses(config, run_config, {**warm, **PLAIN}, fast, int(seeds))
    gain = excess(ours, bare)
    return Outcome(
        "held-out loss equal to Adam's; at the least, all of the interval below that of one bit "
        "without compensation",
        f"against Adam {interval(figure)}; against no compensation {interval(gain)}",
        gain.high < 0,
        figure=figure,
        needed=0.0,
    )


def warm_up(config: LowCommunicationConfig, fast: bool) -> Changes:
    """As large a share of the small setting's steps as of the config's."""
    method = config.method
    if not fast or not isinstance(method, OneBitAdam):
        return {}
    return {"method.exact": max(1, round(method.exact / config.steps * SMALL["steps"]))}


def volume(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All bytes of a run, warm-up included, against gradients in half precision at every step."""
    method = config.method
    exact = max(1, round(WARM * 40))
    share = exact / 40
    turned: Changes = {"steps": 40, "learning.rows": 1, "learning.judged": 128}
    ours = {**turned, "method.exact": exact} if isinstance(method, OneBitAdam) else turned
    cut = metrics.sent(run(config, run_config, {**turned, **ADAM})) / metrics.sent(
        run(config, run_config, ours)
    )
    formula = 1 / (share + (1 - share) / 16)
    return Outcome(
        f"within 5% of 1 / (w + (1 - w) / 16) = {formula:.2f} for warm-up w = {share:.0%}",
        f"{cut:.2f} times less",
        abs(cut / formula - 1) <= 0.05,
        figure=Figure.exact(cut, "×"),
        needed=formula,
    )


def pace(log: Log, exact: int) -> float:
    """Seconds a step of the first replica after the warm-up."""
    ends = [span.stop for span in log.of(Span) if span.name == "update" and span.lane == "rank 0"]
    return (ends[-1] - ends[exact]) / (len(ends) - 1 - exact)


def faster(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same training over a network as slow beside its steps as the paper's, warm-up and all."""
    return at_bandwidth(config, ETHERNET, run_config, fast)


def at_bandwidth(
    config: LowCommunicationConfig, bandwidth: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with another link."""
    turned = {**SHORT, **SLOW, "executor.bandwidth": bandwidth}
    exact = SHORT["method.exact"]
    plain = {name: value for name, value in turned.items() if name != "method.exact"}
    mine = pace(
        run(config, run_config, turned if isinstance(config.method, OneBitAdam) else plain), exact
    )
    theirs = pace(run(config, run_config, {**plain, **ADAM}), exact)
    whole = theirs / (WARM * theirs + (1 - WARM) * mine)
    return Outcome(
        f"training with {WARM:.0%} of its steps in warm-up faster than Adam's",
        f"{mine * 1e3:.0f} ms a step after it against {theirs * 1e3:.0f} ms: "
        f"{theirs / mine:.1f} times, {whole:.1f} with warm-up",
        round(whole, 6) > 1.0,
        figure=Figure.exact(whole, "×"),
        needed=1.0,
    )


STUDY = Study(
    slug="one-bit-adam",
    driver=driver,
    config=update(
        LowCommunicationConfig(),
        {
            "method": "one_bit_adam",
            "method.exact": 24,
            "steps": 96,
            "learning.rows": 4,
            "learning.rate": 6e-3,
            "learning.beta2": 0.99,
            "learning.decay": 24,
        },
    ),
    views=("curves", "schedule", "levels", "topology"),
    about=(
        "Four replicas of a tiny language model train together and average at every step. For the "
        "first steps they exchange gradients, as Adam needs; then Adam's variance is frozen, and "
        "from there the momentum alone travels, one bit a number: its sign, and a scale for each "
        "block. What the bit cannot say is kept and added to the next momentum, at the replica "
        "that sends and at the one that averages. Turn compensation off to see what that is worth."
    ),
    tries=(
        ("Plain Adam in half precision", ADAM),
        ("No error compensation", {"method.compensate": False}),
        ("On a slow network", SLOW),
    ),
    presets={"described": SLOW, "ranks": {"executor": "real", "replicas": 2}},
    claims=(
        Claim(
            id="same-loss",
            sentence="It converges as fast as uncompressed Adam.",
            paper="the same convergence speed as uncompressed Adam (abstract)",
            grade="measured",
            check=same_loss,
            reported=Reported(0.0, "equal"),
            finding="contrary",
            quick="undecided",
            why="after 24 steps of warm-up the variance of so short a training is not settled. "
            "The abstract states no margin; without one a measured difference can only be "
            "undecided or contrary. That compensation is what keeps it near holds, which is what "
            "the check asks",
            broken=(
                Break(
                    {"method.fault": "negated"},
                    mechanism=True,
                    why="what packing lost is taken away in place of added",
                ),
                Break(PLAIN, why="the error buffer is skipped"),
            ),
        ),
        Claim(
            id="volume",
            sentence="It reduces the communication volume by up to five times.",
            paper="communication volume reduced by up to 5 times (abstract)",
            grade="exact",
            check=volume,
            reported=Reported(5.0, none=1.0),
            finding="weaker",
            why="with a warm-up of 15%, not that of the claim on losses, the formula itself gives "
            "4.92, and scales take a little",
            broken=(
                Break(
                    {"method.fault": "gradients_too"},
                    mechanism=True,
                    why="gradients go on travelling beside the momentum",
                ),
                Break({"method.codec": "float16"}),
            ),
        ),
        Claim(
            id="faster",
            sentence="On a slow network its throughput is up to 3.3 times higher.",
            paper="up to 3.3 times higher throughput for BERT-Large pre-training (abstract)",
            grade="modelled",
            check=faster,
            reported=Reported(3.3, none=1.0),
            finding="reproduced",
            why="with the paper's 15% of warm-up, on a link as slow beside a step as its Ethernet "
            "(table 1, second hand); nothing is lost to packing, and 30,000 parameters stand for "
            "BERT-Large. With the 25% that losses are judged at it is 2.8 times, short of the "
            "paper's; and the figure follows the link (map)",
            broken=(
                Break(
                    {"method.fault": "gradients_too"},
                    mechanism=True,
                    why="gradients go on travelling beside the momentum",
                ),
                Break({"method.codec": "float16"}),
            ),
        ),
        Claim(
            id="on-the-wire",
            sentence="Real processes send these bytes, and find these losses.",
            paper="communication volume reduced by up to 5 times (abstract); counted as sent",
            grade="exact",
            check=partial(on_the_wire, most=5),
            reported=SAME,
            finding="reproduced",
            why="no difference, but for rounding; the paper's figure of bytes is against half "
            "precision and stands at the volume",
            broken=BROKEN_WIRE,
        ),
    ),
    regimes=(
        Regime(
            claim="same-loss",
            knob="method.exact",
            values=(4, 8, 14, 24, 36, 48, 72),
            coarse=(8, 24),
            x="steps of warm-up, of 96",
            y="held-out loss above Adam's",
            paper=14,
            paper_is="the paper's 15%",
            default=24,
            noun="steps",
        ),
        Regime(
            claim="same-loss",
            knob="seeds",
            values=(2, 3, 5, 8, 12, 16),
            coarse=(2, 5),
            x="seeds of training",
            y="held-out loss above Adam's",
            default=SEEDS,
            judged=by_seeds,
            noun="seeds",
        ),
        Regime(
            claim="faster",
            knob="bandwidth",
            values=(3e4, ETHERNET, 3e5, 6e5, 1e6, 2e6, 4e6, 1e7, 1e8),
            coarse=(ETHERNET, 6e5, 1e7),
            x="bandwidth of a replica's port (B/s)",
            y="steps a second, times Adam's",
            paper=ETHERNET,
            paper_is="the paper's Ethernet, beside a step,",
            default=ETHERNET,
            judged=at_bandwidth,
            log_x=True,
        ),
    ),
    limits=(
        "The model has some 30,000 parameters and trains for 96 steps, a quarter of them in full "
        "before the variance is frozen (the paper takes 15 to 25%). With 15% the volume falls as "
        "far as the paper says, but so early a variance is not yet settled and the loss ends a few "
        "percent higher: here the two figures are not reached at one setting. Scales are shared by "
        "blocks of numbers, where others take one a tensor. The volume is against half-precision "
        "gradients; against float32 ones it would be twice as much. Step times on the slow network "
        "are described ones."
    ),
)
