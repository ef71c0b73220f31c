"""1-bit Adam: the variance frozen after warm-up, momentum in one bit with error compensation."""

from functools import partial
from statistics import mean

from engine.core.config import update
from engine.core.events import Span
from engine.core.log import Log
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.methods.one_bit_adam import OneBitAdam
from engine.training.low_communication.run import run as driver
from workbench.studies.communication._low_communication import (
    excess,
    interval,
    on_the_wire,
    run,
)
from workbench.study import Changes, Claim, Outcome, RunConfig, Study

ADAM: Changes = {"method": "synchronous", "method.codec": "float16"}
# Gradients take some three times as long as a step: a network where volume is what matters.
SLOW: Changes = {
    "executor": "modelled",
    "executor.bandwidth": 6e5,
    "executor.latency": 0.002,
    "replicas": 3,
}
SHORT: Changes = {"steps": 32, "method.exact": 5}
WORSE, FASTER = 0.025, 2.0


def same_loss(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Held-out loss after the same steps on the same windows, against Adam in half precision."""
    found = excess(config, run_config, ADAM, fast)
    return Outcome(
        f"held-out loss on average at most {WORSE:.1%} above Adam's",
        interval(found),
        mean(found) <= WORSE,
    )


def volume(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """All bytes of a run, warm-up included, against gradients in half precision at every step."""
    method = config.method
    exact = max(1, round(0.15 * 40))
    share = exact / 40
    turned: Changes = {"steps": 40, "learning.rows": 1}
    ours = {**turned, "method.exact": exact} if isinstance(method, OneBitAdam) else turned
    cut = metrics.sent(run(config, run_config, {**turned, **ADAM})) / metrics.sent(
        run(config, run_config, ours)
    )
    formula = 1 / (share + (1 - share) / 16)
    return Outcome(
        f"within 5% of 1 / (w + (1 - w) / 16) = {formula:.2f} for warm-up w = {share:.0%}",
        f"{cut:.2f} times less",
        abs(cut / formula - 1) <= 0.05,
    )


def pace(log: Log, exact: int) -> float:
    """Seconds a step of the first replica after the warm-up."""
    ends = [span.stop for span in log.of(Span) if span.name == "update" and span.lane == "rank 0"]
    return (ends[-1] - ends[exact]) / (len(ends) - 1 - exact)


def faster(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same training over a described slow network, steps after the warm-up compared."""
    turned = {**SHORT, **SLOW}
    exact = SHORT["method.exact"]
    ours = pace(run(config, run_config, turned), exact)
    theirs = pace(run(config, run_config, {"steps": 32, **SLOW, **ADAM}), exact)
    return Outcome(
        f"steps after the warm-up at least {FASTER:.0f} times faster than Adam's",
        f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms: {theirs / ours:.1f} times",
        theirs / ours >= FASTER,
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
            sentence="It learns nearly as fast per step as Adam.",
            paper="the same convergence speed as uncompressed Adam (abstract)",
            grade="measured",
            check=same_loss,
            broken={"method.compensate": False},
        ),
        Claim(
            id="volume",
            sentence="With a warm-up of 15% it sends nearly five times less than Adam.",
            paper="communication volume reduced by up to 5 times (abstract)",
            grade="exact",
            check=volume,
            broken={"method.codec": "float16"},
        ),
        Claim(
            id="faster",
            sentence="On a slow network its steps are faster.",
            paper="up to 3.3 times higher throughput for BERT-Large pre-training (abstract)",
            grade="modelled",
            check=faster,
            broken={"method.codec": "float16"},
        ),
        Claim(
            id="on-the-wire",
            sentence="Real processes send these bytes, and find these losses.",
            paper="communication volume reduced by up to 5 times (abstract); counted as sent",
            grade="exact",
            check=partial(on_the_wire, most=5),
            broken={"method": "synchronous"},
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
