"""FP8 versus INT8: which errs less, on what, and what its arithmetic costs."""

import numpy as np

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.training.quantisation.eight_bits import (
    FLOAT32,
    FLOATS,
    INTEGER,
    LAYERS,
    LOSS,
    RATES,
    TAILS,
    run,
)
from engine.training.quantisation.eight_bits_config import EightBitsConfig
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

HARDWARE = "e4m3"  # what processors that have 8-bit floats multiply
NO_WORSE = 0.01  # nats a token: a hundredth of the perplexity
FULL: Changes = {"windows": 32, "length": 128, "draws": 32}


def sized(config: EightBitsConfig, fast: bool) -> EightBitsConfig:
    """The config a claim is judged at."""
    return config if fast else update(config, FULL)


def ahead(log: Log, at: int, theirs: str = HARDWARE) -> Figure:
    """INT8's signal over error less the float's on the same tensors, dB; `at` counts rates."""
    apart_D = log.blobs[f"draws/{INTEGER}"][at] - log.blobs[f"draws/{theirs}"][at]
    return Figure.mean(apart_D, "dB")


def well_behaved(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Normal numbers without outliers, and uniform ones, paired over tensors."""
    log = run_config(sized(config, fast))
    normal = {name: ahead(log, 0, name) for name in FLOATS}
    uniform = {name: ahead(log, len(RATES), name) for name in FLOATS}
    judged = min((normal[HARDWARE], uniform[HARDWARE]), key=lambda figure: figure.low)
    told = ", ".join(f"{n} {normal[n].value:+.1f} and {uniform[n].value:+.1f}" for n in FLOATS)
    return Outcome(
        f"INT8 ahead of {HARDWARE} on both, 95% interval too",
        f"dB ahead on normal and uniform numbers: {told}; n = {judged.n}",
        judged.low > 0,
        figure=judged,
        needed=0.0,
    )


def crosses(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """INT8 ahead without outliers, behind with some: the rate between is told."""
    log = run_config(sized(config, fast))
    found = [ahead(log, at) for at in range(len(RATES))]
    behind = [at for at, figure in enumerate(found) if figure.high < 0]
    worst = min(found, key=lambda figure: figure.value)
    turn = f"between {RATES[behind[0] - 1]:g} and {RATES[behind[0]]:g}" if behind else "nowhere"
    return Outcome(
        f"INT8 ahead of {HARDWARE} without outliers and behind at some rate, 95% intervals too",
        f"{found[0].value:+.1f} dB without, {worst.value:+.1f} dB at worst; it turns {turn} of "
        f"numbers at {config.outlier:g} times the rest; n = {worst.n}",
        found[0].low > 0 and bool(behind),
        figure=Figure(-worst.value, -worst.high, -worst.low, "dB", worst.n),
        needed=0.0,
    )


def at_size(config: EightBitsConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`crosses` with outliers so many times the rest."""
    return crosses(update(config, {"outlier": value, "windows": 2, "steps": 0}), run_config, fast)


def no_worse(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Loss of the shipped model, weights by row and activations by tensor, paired by window."""
    log = run_config(sized(config, fast))
    loss = {name: LOSS.read(log, name)[1] for name in (FLOAT32, INTEGER, *FLOATS)}
    apart = Figure.mean(loss[INTEGER] - loss[HARDWARE], "nats")
    told = ", ".join(f"{n} {np.exp(values.mean()):.2f}" for n, values in loss.items())
    return Outcome(
        f"INT8's loss at most {NO_WORSE:g} nats a token above {HARDWARE}'s, 95% interval too",
        f"{apart.value:+.4f} ({apart.low:+.4f} to {apart.high:+.4f}); perplexity: {told}; "
        f"n = {apart.n}",
        apart.high <= NO_WORSE,
        figure=apart,
        needed=NO_WORSE,
    )


def by_layer(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """What the float gains over INT8 on layers with heavy tails, less what on the others."""
    log = run_config(sized(config, fast))
    gain_L = LAYERS.read(log, HARDWARE)[1] - LAYERS.read(log, INTEGER)[1]
    tails_L = TAILS.read(log, "inputs")[1]
    heavy_L = tails_L > np.median(tails_L)
    light = float(gain_L[~heavy_L].mean())
    found = Figure.mean(gain_L[heavy_L] - light, "dB")
    return Outcome(
        f"{HARDWARE} nearer to INT8, or further ahead, where inputs have heavier tails than half "
        "the layers, 95% interval too",
        f"{found.value:+.1f} dB ({found.low:+.1f} to {found.high:+.1f}) nearer; heaviest layer "
        f"{gain_L[int(tails_L.argmax())]:+.1f} dB, the lighter half {light:+.1f}; n = {found.n}",
        found.low > 0,
        figure=found,
        needed=0.0,
    )


def when_trained(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Linear layers of one block after training through their rounding, paired by layer."""
    log = run_config(update(sized(config, fast), {} if fast else {"steps": 60}))
    ours_LS, theirs_LS = (log.blobs[f"trained/{name}"] for name in (INTEGER, HARDWARE))
    gained = Figure.mean(ours_LS[:, -1] - ours_LS[:, 0], "dB")
    apart = Figure.mean(ours_LS[:, -1] - theirs_LS[:, -1], "dB")
    return Outcome(
        f"training gains, and INT8 stays ahead of {HARDWARE}, 95% intervals too",
        f"INT8 {gained.value:+.1f} dB by training; then {apart.value:+.1f} dB ahead "
        f"({apart.low:+.1f} to {apart.high:+.1f}); n = {apart.n}",
        gained.low > 0 and apart.low > 0,
        figure=apart,
        needed=0.0,
    )


def dearer(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Gates of a multiply-accumulate of E4M3 over INT8's, less one, over accumulators."""
    log = run_config(sized(config, fast))
    start = "gates over int8's, "
    of = {
        level.name.removeprefix(start): level.value - 1
        for level in log.of(Level)
        if level.lane == HARDWARE and level.name.startswith(start)
    }
    middle = sorted(of.values())[len(of) // 2]
    told = ", ".join(f"{name} {value:+.0%}" for name, value in of.items())
    return Outcome(
        "more gates with every accumulator, half as many more by the middle one",
        told,
        min(of.values()) > 0 and middle >= 0.5,
        figure=Figure(middle, min(of.values()), max(of.values()), "%", 1),
        needed=0.5,
    )


STUDY = Study(
    slug="fp8-vs-int8",
    driver=run,
    config=EightBitsConfig(),
    views=("curves", "levels", "roofline"),
    about=(
        "Eight bits may be an integer or a float with two to five bits of exponent. An integer's "
        "values lie evenly, a float's closer to nought: the one errs less where numbers fill "
        "their range, the other where a few stand far outside. Tensors are drawn with more and "
        "more outliers; every linear layer of a shipped model is fed with what the float32 model "
        "feeds it and its error told beside the tails of its inputs; the whole model's loss is "
        "taken under each format; one block's layers are trained through their own rounding. "
        "Gates of a multiply-accumulate unit are counted from textbook parts."
    ),
    tries=(
        ("Outliers of three times the rest", {"outlier": 3.0}),
        ("Ranges by the largest magnitude", {"best": False}),
        ("Floats whose values lie evenly", {"evenly": True}),
    ),
    presets={"full": FULL},
    claims=(
        Claim(
            id="well-behaved",
            sentence="INT8 errs less than FP8 on numbers without outliers.",
            paper="the results for inference do not warrant FP8 in favour of INT8 (abstract)",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="judged against E4M3, which hardware has; E2M5, which none has, errs less than "
            "INT8 on normal numbers and more on uniform ones; the abstract states no figure",
            grade="measured",
            check=well_behaved,
            broken=(
                Break({"coarse": True}, True, "integers keep four bits"),
                Break({"evenly": True}, why="floats with integers' even values"),
            ),
        ),
        Claim(
            id="crosses",
            sentence="With a few outliers FP8 errs less: the error crosses with their rate.",
            paper="in theory the formats differ by the distribution (abstract)",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="the figure is FP8's lead at its largest; the abstract states none",
            grade="measured",
            check=crosses,
            broken=(
                Break({"evenly": True}, True, "a float's values lie evenly: no exponent"),
                Break({"outlier": 1.0}, why="no outliers"),
            ),
        ),
        Claim(
            id="no-worse",
            sentence="INT8 is no worse than FP8 for a model's inference after training.",
            paper="results for inference do not warrant a dedicated implementation of FP8 "
            "(abstract)",
            reported=Reported(0.0, "less", tolerance=NO_WORSE, unit="nats"),
            finding="reproduced",
            why=f"{NO_WORSE:g} nats, a hundredth of the perplexity, counts as no worse: ours",
            grade="measured",
            check=no_worse,
            broken=(Break({"coarse": True}, True, "integers keep four bits"),),
        ),
        Claim(
            id="by-layer",
            sentence="FP8 gains on INT8 where a layer's inputs have heavy tails.",
            paper="not in the abstract: its comparison layer by layer",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="layers of one small model; INT8 is ahead on most of them all the same",
            grade="measured",
            check=by_layer,
            broken=(Break({"evenly": True}, True, "a float's values lie evenly: no exponent"),),
        ),
        Claim(
            id="when-trained",
            sentence="Trained to be rounded, layers err less, and INT8 stays ahead.",
            paper="quantisation-aware training results point the same way (abstract)",
            reported=Reported(0.0, none=0.0, unit="dB"),
            finding="reproduced",
            why="layers of one block, each trained by itself against its own float32 output; the "
            "abstract states no figure",
            grade="measured",
            check=when_trained,
            broken=(
                Break({"coarse": True}, True, "integers keep four bits"),
                Break({"steps": 0}, why="nothing is trained"),
            ),
        ),
        Claim(
            id="dearer",
            sentence="A multiply-accumulate of FP8 takes more gates than one of INT8.",
            paper="50-180% less efficient in dedicated hardware (abstract)",
            reported=Reported(0.5, none=0.0, unit="%"),
            finding="reproduced",
            why="counted from textbook parts with three accumulators, not synthesised; the paper's "
            "range is 50% to 180%",
            grade="modelled",
            check=dearer,
            broken=(
                Break({"free": True}, True, "a float's sum is neither aligned nor normalised"),
            ),
        ),
    ),
    regimes=(
        Regime(
            "crosses",
            "outlier",
            (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 24.0, 48.0),
            x="standard deviations of an outlier (×)",
            y="FP8's lead over INT8 at its largest (dB)",
            coarse=(2.0, 6.0, 24.0),
            default=12.0,
            judged=at_size,
            log_x=True,
        ),
    ),
    limits=(
        "Formats are simulated in float32: numbers are rounded to what the format holds and "
        "multiplied as float32. One small language model, without the outlier features of large "
        "ones; embeddings, norms, attention's own products and the output head stay float32. E4M3 "
        "has 448 as its largest value and E5M2 no infinities; E2M5 and E3M4 use every code. "
        "Training is layer by layer on a few windows, not of the whole model. Gates are a count "
        "of parts: no wires, no timing, no energy."
    ),
)
