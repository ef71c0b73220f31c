"""1-bit Adam: the variance frozen after warm-up, momentum in one bit with error compensation."""

from functools import partial

from engine.core.config import update
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.run import run as driver
from workbench.studies.communication._low_communication import (
    BROKEN_WIRE,
    SAME,
    SEEDS,
    on_the_wire,
)
from workbench.studies.communication._one_bit_adam import (
    ADAM,
    ETHERNET,
    PLAIN,
    SLOW,
    at_bandwidth,
    by_seeds,
    faster,
    same_loss,
    volume,
)
from workbench.study import Break, Claim, Regime, Reported, Study

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
            finding="undecided",
            quick="contrary",
            fails=("small", "full"),
            why="after 24 steps of warm-up the variance of so short a training is not settled: "
            "five seeds leave it undecided, eight and more find it 1.5 to 1.9% above (map). "
            "The abstract states no margin; without one a measured difference can only be "
            "undecided or contrary. Without compensation it ends further above",
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
            why="at the 25% of warm-up that losses are judged at, where the formula itself gives "
            "3.37 and scales take a little; at the paper's 15% it is 4.84 (map), of losses that "
            "are further above Adam's",
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
            finding="weaker",
            why="at the 25% of warm-up that losses are judged at, on a link as slow beside a step "
            "as the paper's Ethernet (table 1, second hand); at its 15% it is 3.8 times, and the "
            "figure follows the link (maps). Nothing is lost to packing, and 30,000 parameters "
            "stand for BERT-Large",
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
            y="held-out loss above Adam's (share)",
            paper=14,
            paper_is="the paper (15% of its steps)",
            default=24,
            noun="steps",
        ),
        Regime(
            claim="same-loss",
            knob="seeds",
            values=(2, 3, 5, 8, 12, 16),
            coarse=(2, 5),
            x="seeds of training",
            y="held-out loss above Adam's (share)",
            default=SEEDS,
            judged=by_seeds,
            noun="seeds",
        ),
        *(
            Regime(
                claim=claim,
                knob="method.exact",
                values=(4, 8, 14, 24, 36, 48, 72),
                coarse=(8, 24),
                x="steps of warm-up, of 96",
                y=y,
                paper=14,
                paper_is="the paper (15% of its steps)",
                default=24,
                noun="steps",
            )
            for claim, y in (
                ("volume", "bytes of Adam's over ours (×)"),
                ("faster", "steps a second, times Adam's"),
            )
        ),
        Regime(
            claim="faster",
            knob="bandwidth",
            values=(3e4, ETHERNET, 3e5, 6e5, 1e6, 2e6, 4e6, 1e7, 1e8),
            coarse=(ETHERNET, 6e5, 1e7),
            x="bandwidth of a replica's port (B/s)",
            y="steps a second, times Adam's",
            paper=ETHERNET,
            paper_is="the paper's Ethernet, scaled to this step,",
            default=ETHERNET,
            judged=at_bandwidth,
            log_x=True,
        ),
    ),
    limits=(
        "The model has some 30,000 parameters and trains for 96 steps, a quarter of them in full "
        "before the variance is frozen (the paper takes 15 to 25%). With 15% the volume falls as "
        "far as the paper says, but so early a variance is not yet settled and the loss ends a few "
        "percent higher: here the figures are not reached at one setting, which is why all are "
        "judged at 25%. Scales are shared by "
        "blocks of numbers, where others take one a tensor. The volume is against half-precision "
        "gradients; against float32 ones it would be twice as much. Step times on the slow network "
        "are described ones."
    ),
)
