"""Checks of FP8 versus INT8: tensors, layers, a model's loss, training, gates."""

import numpy as np

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.kernels.quantised.formats import format_of
from engine.training.quantisation.eight_bits import (
    FLOAT32,
    FLOATS,
    INTEGER,
    LAYERS,
    LOSS,
    RATES,
    TAILS,
)
from engine.training.quantisation.eight_bits_config import EightBitsConfig
from engine.training.quantisation.mac_gates import dearer as gates_over
from workbench.study import Changes, Figure, Outcome, RunConfig

HARDWARE = "e4m3"  # what processors that have 8-bit floats multiply
NO_WORSE = 0.01  # nats a token: a hundredth of the perplexity
FULL: Changes = {"windows": 32, "length": 128, "draws": 32}
# Of a run that draws tensors: as little of all else as there may be.
DRAWN: Changes = {"windows": 2, "length": 8, "steps": 0, "repeats": 1}
# Of a run for a model's layers: nothing is trained.
UNTRAINED: Changes = {"draws": 2, "steps": 0, "repeats": 1}
# Gates are counted from the formats alone: of all else as little as there may be.
COUNTED: Changes = {"windows": 2, "length": 8, "draws": 2, "steps": 0, "best": False}


def sized(config: EightBitsConfig, fast: bool) -> EightBitsConfig:
    """The config a claim is judged at."""
    return config if fast else update(config, FULL)


def drawn(config: EightBitsConfig, fast: bool) -> EightBitsConfig:
    """The config that a claim about tensors alone is judged at."""
    return update(sized(config, fast), DRAWN)


def ahead(log: Log, at: int, theirs: str = HARDWARE) -> Figure:
    """INT8's signal over error less the float's on the same tensors, dB; `at` counts rates."""
    apart_D = log.blobs[f"draws/{INTEGER}"][at] - log.blobs[f"draws/{theirs}"][at]
    return Figure.mean(apart_D, "dB")


def well_behaved(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Normal numbers without outliers, and uniform ones, paired over tensors."""
    log = run_config(drawn(config, fast))
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
    log = run_config(drawn(config, fast))
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
    return crosses(update(config, {"outlier": value}), run_config, fast)


def no_worse(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Loss of the shipped model, weights by row and activations by tensor, paired by window."""
    return _no_worse(run_config(sized(config, fast)))


def with_channels(
    config: EightBitsConfig, times: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same where some channels of activations are so many times as large."""
    return _no_worse(run_config(update(sized(config, fast), {**UNTRAINED, "channels": times})))


def _no_worse(log: Log) -> Outcome:
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
    return _by_layer(run_config(sized(config, fast)), 0.5)


def of_heaviest(
    config: EightBitsConfig, share: float, run_config: RunConfig, fast: bool
) -> Outcome:  # fmt: skip
    """The same of such a share of the layers, those with the heaviest tails."""
    return _by_layer(run_config(update(sized(config, fast), UNTRAINED)), share)


def _by_layer(log: Log, share: float) -> Outcome:
    gain_L = LAYERS.read(log, HARDWARE)[1] - LAYERS.read(log, INTEGER)[1]
    tails_L = TAILS.read(log, "inputs")[1]
    heavy_L = tails_L > np.quantile(tails_L, 1 - share)
    found = apart(Figure.mean(gain_L[heavy_L], "dB"), Figure.mean(gain_L[~heavy_L], "dB"))
    return Outcome(
        f"{HARDWARE} nearer to INT8, or further ahead, in the {share:.0%} of layers whose inputs "
        "have the heaviest tails, 95% interval too",
        f"{found.value:+.1f} dB ({found.low:+.1f} to {found.high:+.1f}) nearer; heaviest layer "
        f"{gain_L[int(tails_L.argmax())]:+.1f} dB, the lighter ones "
        f"{float(gain_L[~heavy_L].mean()):+.1f}; n = {found.n}, the fewer of both",
        found.low > 0,
        figure=found,
        needed=0.0,
    )


def apart(ours: Figure, theirs: Figure) -> Figure:
    """The difference of two means of other layers, of which both have an interval."""
    value = ours.value - theirs.value
    half = float(np.hypot(ours.high - ours.value, theirs.high - theirs.value))
    return Figure(value, value - half, value + half, ours.unit, min(ours.n, theirs.n))


def when_trained(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Linear layers of one block after training through their rounding, paired by layer, on text
    that they were not trained on."""
    log = run_config(sized(config, fast))
    ours_LS, theirs_LS = (log.blobs[f"trained/{name}"] for name in (INTEGER, HARDWARE))
    gained, other = (Figure.mean(x_LS[:, -1] - x_LS[:, 0], "dB") for x_LS in (ours_LS, theirs_LS))
    lead = Figure.mean(ours_LS[:, -1] - theirs_LS[:, -1], "dB")
    return Outcome(
        f"{HARDWARE} gains by training, and INT8 stays ahead of it, 95% intervals too",
        f"by training INT8 {gained.value:+.2f} dB ({gained.low:+.2f} to {gained.high:+.2f}), "
        f"{HARDWARE} {other.value:+.2f} ({other.low:+.2f} to {other.high:+.2f}); then "
        f"{lead.value:+.1f} dB ahead ({lead.low:+.1f} to {lead.high:+.1f}); n = {lead.n}",
        other.low > 0 and lead.low > 0,
        figure=lead,
        needed=0.0,
    )


def at_rate(config: EightBitsConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`when_trained` of the small setting at another learning rate."""
    return when_trained(update(config, {"rate": value}), run_config, True)


def dearer(config: EightBitsConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Gates of a multiply-accumulate of E4M3 over INT8's, less one, over accumulators."""
    log = run_config(update(config, COUNTED))
    start = "gates over int8's, "
    of = {
        level.name.removeprefix(start): level.value - 1
        for level in log.of(Level)
        if level.lane == HARDWARE and level.name.startswith(start)
    }
    return _dearer(of)


def with_multiplexers(
    config: EightBitsConfig, gates: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same where a multiplexer, of which a float's shifters are made, takes so many gates."""
    floating, integer = format_of(HARDWARE), format_of(INTEGER)
    return _dearer(gates_over(floating, integer, not config.free, int(gates)))


def _dearer(of: dict[str, float]) -> Outcome:
    middle = sorted(of.values())[len(of) // 2]
    told = ", ".join(f"{name} {value:+.0%}" for name, value in of.items())
    return Outcome(
        "more gates with every accumulator",
        told,
        min(of.values()) > 0,
        figure=Figure(middle, min(of.values()), max(of.values()), "%", 1),
        needed=0.0,
    )
