"""TeLLMe v2: ternary weights multiplied by looking up sums of 8-bit activations."""

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.core.names import counted
from engine.core.plot import MODELLED
from engine.training.quantisation.ternary_lookup import (
    HELD,
    INT8,
    LOOKUP,
    TOKENS,
    TWO_BITS,
    WIDTHS,
    WRONG,
    TernaryConfig,
    run,
)
from workbench.regime import in_runs
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
)  # fmt: skip

INFORMATION = 1.58  # bits of a ternary number
PAPERS = 3  # inputs of a table in the paper
COUNTED: Changes = {"outputs": 160, "inputs": 123, "repeats": 1}
LARGE: Changes = {"outputs": 4096, "inputs": 4096, "rows": 1, "repeats": 8}
LARGER: Changes = {"outputs": 4096, "inputs": 4096, "rows": 1, "repeats": 24}


def levels(log: Log, name: str) -> dict[str, float]:
    """A quantity by width of a table."""
    return {level.lane: level.value for level in log.of(Level) if level.name == name}


def exact(config: TernaryConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Products of odd shapes against the integer product, by every width of a table."""
    found = levels(run_config(update(config, {} if not fast else COUNTED)), WRONG)
    worst = max(found, key=lambda name: found[name])
    return Outcome(
        "no sum differs from the integer product's, by any width",
        f"{found[worst]:.1%} of sums wrong ({worst}) over {len(WIDTHS)} widths",
        found[worst] == 0,
        figure=Figure.exact(found[worst], "%"),
        needed=0.0,
    )


def small(config: TernaryConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Bits that a ternary weight takes in memory, five in a byte."""
    log = run_config(update(config, {**COUNTED, "outputs": 160, "inputs": 120}))
    bits = levels(log, HELD)[counted(config.width, "input")]
    return Outcome(
        f"within a twentieth of {INFORMATION} bits",
        f"{bits:.2f} bits a weight",
        abs(bits / INFORMATION - 1) <= 0.05,
        figure=Figure.exact(bits, "bits"),
        needed=INFORMATION,
    )


def decodes(config: TernaryConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Tokens a second on the described board, if nothing but reading weights takes time."""
    found = levels(run_config(update(config, COUNTED)), TOKENS + MODELLED)
    rate = found[f"{PAPERS} inputs"]
    return Outcome(
        "within a fifth of the paper's 25 tokens a second",
        f"{rate:.0f} tokens a second with tables of {PAPERS} inputs, "
        f"{found['5 inputs']:.0f} with 5",
        abs(rate / 25 - 1) <= 0.2,
        figure=Figure.exact(rate, "tokens/s"),
        needed=25.0,
    )


def seconds(log: Log, way: str) -> list[float]:
    return [span.stop - span.start for span in log.of(Span) if span.lane == way]


def faster(config: TernaryConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Table lookup against int8's product, paired by round, one thread each; codes of two bits
    are told."""
    log = run_config(update(config, LARGE if fast else LARGER))
    ours = seconds(log, LOOKUP)
    figure = Figure.ratio(seconds(log, INT8), ours)
    other = Figure.ratio(seconds(log, TWO_BITS), ours)
    return Outcome(
        "faster than the int8 product, 95% interval too",
        f"{figure.value:.2f}× ({figure.low:.2f} to {figure.high:.2f}); {other.value:.2f}× the "
        f"speed of codes of two bits; n = {figure.n}",
        figure.low > 1.0,
        figure=figure,
        needed=1.0,
    )


STUDY = Study(
    slug="tellme",
    driver=run,
    config=TernaryConfig(),
    views=("curves", "levels", "roofline"),
    about=(
        "A ternary weight is -1, 0 or 1. A few activations have few sums under such weights: 27 "
        "of three, 243 of five. TeLLMe makes them once for each group of activations, one "
        "addition each, and every output looks its own up by a code of its weights. Activations "
        "are integers of 8 bits, so the sums are exact. Five weights in a byte take 1.6 bits "
        "each. Here the product runs on this processor beside packed products of two and of eight "
        "bits; the paper's board is an FPGA, and its rate of decoding is modelled from the data "
        "sheet: as fast as weights can be read, if all else hides behind that."
    ),
    tries=(
        ("Tables of three inputs, as the paper's", {"width": 3}),
        ("A layer of 4,096 by 4,096", {"outputs": 4096, "inputs": 4096, "rows": 1}),
        ("One port to the board's memory", {"ports": 1}),
    ),
    presets={"large": LARGE},
    claims=(
        Claim(
            id="exact",
            sentence="Looking sums up gives what the integer product gives.",
            paper="a table-lookup-based ternary matrix multiplication engine utilizing grouped "
            "activations and online precomputation (abstract)",
            reported=Reported(0.0, "equal", unit="%"),
            finding="reproduced",
            grade="exact",
            check=exact,
            broken=(Break({"fault": "stale"}, True, "sums are looked up in the table before"),),
        ),
        Claim(
            id="bits",
            sentence="A ternary weight takes about 1.58 bits.",
            paper="1.58-bit weights (abstract)",
            reported=Reported(INFORMATION, "equal", tolerance=0.05 * INFORMATION, unit="bits"),
            finding="reproduced",
            why="five weights in a byte are 1.6 bits; a twentieth counts as about: ours",
            grade="exact",
            check=small,
            broken=(Break({"fault": "unpacked"}, True, "each weight takes a byte"),),
        ),
        Claim(
            id="decodes",
            sentence="On the board of 5 W decoding reaches up to 25 tokens a second.",
            paper="up to 25 tokens/s decoding throughput under a 5 W power budget (abstract)",
            reported=Reported(25.0, "equal", tolerance=5.0, unit="tokens/s"),
            finding="contrary",
            fails=("small", "full"),
            why="a bound, not the board: weights are read at the rate of all four ports and all "
            "else hides behind that, so the model is well above the paper's rate. What its engine "
            "loses to attention, norms and waiting is not in the abstract and not modelled; with "
            "one or two ports the rate lies on either side of 25. A fifth counts as near: ours",
            grade="modelled",
            check=decodes,
            broken=(Break({"fault": "unpacked"}, True, "each weight takes a byte"),),
        ),
        Claim(
            id="faster",
            sentence="On a processor looking ternary sums up is faster than multiplying int8.",
            paper="not the paper's: it has FPGAs alone; our list of systems asks for it",
            reported=Reported(1.0, none=1.0, unit="×"),
            finding="contrary",
            fails=("small", "full"),
            why="a lookup is a gather from a table, one number an instruction's lane, where int8 "
            "codes are read in order. Codes of two bits, unpacked in registers, are two to three "
            "times as fast as lookups",
            grade="measured",
            timed=True,
            check=faster,
            broken=(Break({"width": 1}, True, "a table holds one input: nothing is grouped"),),
        ),
    ),
    regimes=(
        Regime(
            "decodes",
            "ports",
            (1.0, 2.0, 3.0, 4.0),
            x="ports to the board's memory",
            y="tokens a second (modelled)",
            coarse=(1.0, 2.0, 4.0),
            default=4.0,
            noun="ports",
        ),
        Regime(
            "faster",
            "rows",
            (1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
            x="rows multiplied at once",
            y="time of the int8 product over ours (×)",
            coarse=(1.0, 8.0),
            default=1.0,
            judged=in_runs(faster, "rows"),
            log_x=True,
            noun="rows",
        ),
    ),
    limits=(
        "The paper's abstract and introduction were read, not its sections. Nothing of the FPGA "
        "runs: its engine, the buffers of its weights, the reordered attention of its prefill, its "
        "power and the time to a first token are not modelled, and 25 tokens a second stand beside "
        "a bound by memory alone. Weights and activations are drawn, not a trained ternary "
        "model's: no quality is claimed. The lookup runs on one thread, beside products on one "
        "thread; it builds its tables anew for each row."
    ),
)
