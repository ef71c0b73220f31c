"""FlashAttention-4: softmax balanced over units that did not grow alike."""

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.kernels.experiments.unit_balance.config import BalanceConfig
from engine.kernels.experiments.unit_balance.run import ERROR, RATE, run
from workbench.study import Claim, Outcome, RunConfig, Study

PAPER, NEAR = 0.71, 0.04  # utilisation of the bfloat16 peak
ROUNDING = 2.0**-8  # relative, of a bfloat16 number
UTILISATION = "utilisation of peak"


def levels(log: Log) -> dict[tuple[str, str], float]:
    """Every figure of a run by lane and name."""
    return {(level.lane, level.name): level.value for level in log.of(Level)}


def same_accuracy(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The bfloat16 output of both softmaxes against float64, of the same operands."""
    shapes = [{}] if fast else [{}, {"spread": 1.0}, {"spread": 6.0}, {"tokens": 2048}]
    pairs = []
    for shape in shapes:
        found = levels(run_config(update(config, shape)))
        pairs.append((found["plain", ERROR], found["balanced", ERROR]))
    worst = max(ours / plain for plain, ours in pairs)
    most = max(ours for _, ours in pairs)
    return Outcome(
        f"at most 1.3× the plain online softmax's error, and below {ROUNDING:.1e}",
        f"{worst:.2f}× (ours {most:.2e}, root mean square)",
        worst <= 1.3 and most <= ROUNDING,
    )


def fewer_operations(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Counted over many blocks of keys, against rescaling at every one, exponentials alike."""
    config = update(config, {"tokens": 1024 if fast else 4096})
    ours = levels(run_config(config))
    always = levels(run_config(update(config, {"softmax.tau": 0.0})))
    rescales = ours["balanced", "rescale"] / always["balanced", "rescale"]
    every = ours["balanced", "operations"] / always["balanced", "operations"]
    return Outcome(
        "at most a tenth of the rescaling multiplications, fewer operations in all",
        f"{rescales:.1%} of the rescaling ({ours['balanced', RATE]:.1%} of looks), "
        f"{every:.1%} of all operations outside products",
        rescales <= 0.1 and every < 1.0,
    )


def fewer_special(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Exponentials on the special unit, counted, against the plain online softmax's."""
    found = levels(run_config(config))
    part = found["balanced", "special"] / found["plain", "special"]
    return Outcome("at most 80% of the plain softmax's", f"{part:.1%}", part <= 0.8)


def near_paper(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Head size 128, 16k keys, 64 heads, not causal, on the described B200."""
    found = levels(run_config(config))["modelled", UTILISATION]
    return Outcome(
        f"{PAPER - NEAR:.0%} to {PAPER + NEAR:.0%} of the bfloat16 peak",
        f"{found:.1%} (modelled)",
        abs(found - PAPER) <= NEAR,
    )


def balance_pays(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same pipeline with every exponential on the special unit."""
    ours = levels(run_config(config))["modelled", UTILISATION]
    special = update(config, {"softmax.share": 0.0})
    without = levels(run_config(special))["modelled", UTILISATION]
    return Outcome(
        "at least 3 points of utilisation more than with all on the special unit",
        f"{100 * (ours - without):+.1f} points ({without:.1%} without)",
        ours - without >= 0.03,
    )


STUDY = Study(
    slug="flash-attention-4",
    driver=run,
    config=BalanceConfig(),
    views=("schedule", "curves", "levels"),
    about=(
        "On Blackwell the matrix units doubled and the exponential unit did not, so softmax binds "
        "attention. Here attention is really computed in tiles the way FlashAttention-4 does: a "
        "row's accumulator is rescaled only when its largest score grows by more than τ powers of "
        "two, and a part of the exponentials is a polynomial on multiply-add units; every "
        "operation outside the products is counted and the result held against float64. Beside "
        "it the inner loop runs on a virtual clock: matrix, exponential, multiply-add units and "
        "shared memory of a described B200, two tiles of 128 queries taking turns."
    ),
    tries=(
        ("Rescale at every block", {"softmax.tau": 0.0}),
        ("All exponentials on the special unit", {"softmax.share": 0.0}),
        ("One tile, no ping-pong", {"ping_pong": False}),
    ),
    presets={
        "plain": {"softmax.tau": 0.0, "softmax.share": 0.0},
        "head-64": {"dim": 64},
    },
    claims=(
        Claim(
            id="same-accuracy",
            sentence="Skipped rescales and polynomial exponentials leave the accuracy as it was.",
            paper="exact with the final division; polynomial within bfloat16 rounding (section 3)",
            grade="measured",
            check=same_accuracy,
            broken={"softmax.degree": 1},
        ),
        Claim(
            id="fewer-operations",
            sentence="Conditional rescaling removes nine tenths of the rescaling, at no cost.",
            paper="about ten times fewer rescales (as public notes on it say; not read there)",
            grade="exact",
            check=fewer_operations,
            broken={"softmax.tau": 0.0},
        ),
        Claim(
            id="fewer-special",
            sentence="A part of the exponentials leaves the special unit.",
            paper="10–25% of the entries take the polynomial (as public notes on it say)",
            grade="exact",
            check=fewer_special,
            broken={"softmax.share": 0.0},
        ),
        Claim(
            id="near-paper",
            sentence="On a described B200 the pipeline reaches about 71% of the peak.",
            paper="up to 1605 TFLOP/s, 71% of a B200 (abstract)",
            grade="modelled",
            check=near_paper,
            broken={"ping_pong": False},
        ),
        Claim(
            id="balance-pays",
            sentence="Moving a quarter of the exponentials to multiply-add units pays.",
            paper="exponentials and shared memory outlast products by 25–60% (as public notes say)",
            grade="modelled",
            check=balance_pays,
            broken={"softmax.share": 1.0},
        ),
    ),
    limits=(
        "One number of the pipeline is assumed, not read: 50 ns from one unit's end to the next's "
        "begin; between 0 and 100 ns the modelled utilisation goes from 76% to 67%. Every unit is "
        "slowed to the part of the peak that the best product known reaches on a B200 (77.6%, from "
        "its sheet), as power does. Forward only, not causal, no two-block products, no tensor-"
        "memory traffic. Skipped rescales do not move the modelled utilisation: multiply-add units "
        "have time to spare. The largest weight of a row is rounded to bfloat16 once its maximum "
        "is stale, which costs up to a quarter more error than the plain softmax."
    ),
)
