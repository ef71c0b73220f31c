"""Checks of ShiftAddLLM: perplexity at equal memory, objectives, bits by layer, product, costs."""

import numpy as np

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.kernels.quantised import lookup
from engine.models.loading.find import beside, find
from engine.models.parameters import layer_parameters, outer_parameters
from engine.training.quantisation.shift_add import (
    LOOKUP,
    LOSS,
    MEMORY,
    MIXED,
    MULTIPLIED,
    OURS,
    OUTPUTS,
    PACKED,
    RIVALS,
    WEIGHTS,
    ShiftAddConfig,
)
from workbench.study import Changes, Figure, Outcome, RunConfig

EXACT = 2e-6  # relative: float32 sums of some hundred products
LARGER = "stdlib-5m"
FULL: Changes = {
    "model": LARGER, "blocks": 6, "windows": 48, "length": 64, "seen": 2048
}  # fmt: skip
ALONE: Changes = {"blocks": 0, "size": 1024, "repeats": 1}  # a layer by itself; papers' are larger
# Models whose memory is counted, by their parameters in billions: the less, the more of them are
# embeddings and head, which stay in 16 bits.
DESCRIBED = {7: "llama-2-7b", 13: "llama-2-13b", 70: "llama-2-70b"}


def sized(config: ShiftAddConfig, fast: bool) -> ShiftAddConfig:
    """The config a claim is judged at; the larger model lies beside the config's."""
    return config if fast else update(config, {**FULL, "model": beside(config.model, LARGER)})


def points(theirs_W: np.ndarray, ours_W: np.ndarray) -> Figure:
    """By how much our perplexity is lower, paired by window."""
    apart, level = Figure.mean(theirs_W - ours_W), float(np.exp(ours_W.mean()))
    ends = (level * float(np.expm1(end)) for end in (apart.value, apart.low, apart.high))
    return Figure(*ends, "points", apart.n)


def losses(log: Log, way: str) -> np.ndarray:
    return LOSS.read(log, way)[1]


def lower(config: ShiftAddConfig, bits: int, run_config: RunConfig, fast: bool) -> Outcome:
    """Perplexity against the best of three others that have as much memory or more."""
    log = run_config(sized(config, fast))
    ours = losses(log, f"{OURS}, {bits} bits")
    rivals = {way: losses(log, f"{way}, {bits} bits") for way in RIVALS}
    best = min(rivals, key=lambda way: rivals[way].mean())
    figure = points(rivals[best], ours)
    told = ", ".join(f"{way} {np.exp(line.mean()):.2f}" for way, line in rivals.items())
    return Outcome(
        "lower than the best of the others, 95% interval too",
        f"perplexity {np.exp(ours.mean()):.2f}; {told}; {figure.value:+.2f} points "
        f"({figure.low:+.2f} to {figure.high:+.2f}) below {best}; n = {figure.n} windows",
        figure.low > 0,
        figure=figure,
        needed=0.0,
    )


def lower_at_two(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    return lower(config, 2, run_config, fast)


def lower_at_three(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    return lower(config, 3, run_config, fast)


def at_bits(config: ShiftAddConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`lower` at so many bits."""
    return lower(config, int(value), run_config, fast)


def both(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Both objectives against each alone, at two bits, paired by window."""
    log = run_config(sized(config, fast))
    ours = losses(log, f"{OURS}, 2 bits")
    alone = {way: points(losses(log, f"{way}, 2 bits"), ours) for way in (WEIGHTS, OUTPUTS)}
    nearest = min(alone, key=lambda way: alone[way].value)
    told = "; ".join(
        f"than {w} {f.value:+.2f} ({f.low:+.2f} to {f.high:+.2f})" for w, f in alone.items()
    )
    return Outcome(
        "lower perplexity than with either objective alone, 95% intervals too",
        f"points lower {told}; n = {alone[nearest].n} windows",
        all(figure.low > 0 for figure in alone.values()),
        figure=alone[nearest],
        needed=0.0,
    )


def given(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Bits by layer, three on average, against three bits everywhere."""
    log = run_config(update(sized(config, fast), {"mean": 3.0}))
    figure = points(losses(log, f"{OURS}, 3 bits"), losses(log, MIXED))
    return Outcome(
        "lower perplexity than with three bits everywhere, 95% interval too",
        f"{figure.value:+.2f} points lower ({figure.low:+.2f} to {figure.high:+.2f}); "
        f"n = {figure.n} windows",
        figure.low > 0,
        figure=figure,
        needed=0.0,
    )


def level(log: Log, name: str, lane: str = "3 bits") -> float:
    return next(e.value for e in log.of(Level) if (e.lane, e.name) == (lane, name))


def exact(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The product by table lookup against dequantise-then-multiply in float64."""
    log = run_config(update(config, {"blocks": 0, "repeats": 1}))
    worst = max(level(log, "error", f"{bits} bits") for bits in (2, 3))
    return Outcome(
        f"within {EXACT:g} of dequantise-then-multiply",
        f"{worst:.1e} at 2 and 3 bits",
        worst <= EXACT,
        figure=Figure.exact(worst),
        needed=EXACT,
    )


def no_products(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Multiplications of floats in the machine's code of the product."""
    log = run_config(update(config, {"blocks": 0, "repeats": 1}))
    count = level(log, MULTIPLIED, LOOKUP)
    return Outcome(
        "none in the code as it was compiled",
        f"{count:g} multiplications or divisions of floats",
        count == 0,
        figure=Figure.exact(count),
        needed=0.0,
    )


def smaller(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Memory of described models with their layers at 3 bits, all else in 16; of the one that saves
    least."""
    return _saved(config, run_config, list(DESCRIBED.values()))


def smaller_of(config: ShiftAddConfig, size: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of the model with so many billions of parameters."""
    return _saved(config, run_config, [DESCRIBED[int(size)]])


def _saved(config: ShiftAddConfig, run_config: RunConfig, models: list[str]) -> Outcome:
    log = run_config(update(config, ALONE))
    two, three = (level(log, MEMORY, f"{bits} bits") for bits in (2, 3))
    of = {name: coded(name) for name in models}
    saved = {name: share * (1 - three / 16) for name, share in of.items()}
    least = min(saved, key=lambda name: saved[name])
    told = ", ".join(f"{name} {part:.1%}" for name, part in saved.items())
    return Outcome(
        "more than 80% less than in 16 bits, of every model",
        f"less by {told} at {three:.2f} bits a weight of their layers; at {two:.2f} bits {least} "
        f"by {of[least] * (1 - two / 16):.1%}",
        saved[least] > 0.8,
        figure=Figure.exact(saved[least], "%"),
        needed=0.8,
    )


def coded(model: str) -> float:
    """Share of a described model's numbers that are matrices of its layers."""
    shape = find(model).config
    layers = [p for number in range(shape.layers) for p in layer_parameters(shape, number)]
    codes = sum(float(np.prod(p.shape)) for p in layers if len(p.shape) == 2)
    return codes / sum(float(np.prod(p.shape)) for p in [*layers, *outer_parameters(shape)])


def cheaper(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Modelled energy of one layer's product at 3 bits over float16's, and over integers'."""
    return cheaper_at(config, 1, run_config, fast)


def cheaper_at(config: ShiftAddConfig, rows: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of so many rows, for which weights are read once."""
    config = update(config, ALONE)
    bits, size, count = level(run_config(config), MEMORY), config.size, int(rows)
    ours = lookup.energy(size, size, 3, config.terms, bits, count)
    saved, other = (
        1 - ours / lookup.multiplied_energy(size, size, each, count) for each in (16, bits)
    )
    return Outcome(
        "more than 80% less than float16's",
        f"{saved:.1%} less than float16's; {other:+.1%} less than that of multiplied integers of "
        "as many bits",
        saved > 0.8,
        figure=Figure.exact(saved, "%"),
        needed=0.8,
    )


def as_fast(config: ShiftAddConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Table lookup against packed integers of as many bits, paired by round."""
    log = run_config(update(config, {**ALONE, "repeats": 8 if fast else 24}))
    spans = {way: [s.stop - s.start for s in log.of(Span) if s.lane == f"{way}, 3 bits"]
             for way in (LOOKUP, PACKED)}  # fmt: skip
    figure = Figure.ratio(spans[PACKED], spans[LOOKUP])
    return Outcome(
        "at least as fast as packed integers of as many bits (95% interval)",
        f"{figure.value:.2f}× their speed ({figure.low:.2f} to {figure.high:.2f}); n = {figure.n}",
        figure.low >= 1.0,
        figure=figure,
        needed=1.0,
    )
