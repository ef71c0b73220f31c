"""Figures of balanced attention by lane and name, its curves over the rescaling threshold, and what
is said of its utilisation."""

from engine.core.config import update
from engine.core.events import Level
from engine.core.log import Log
from engine.core.plot import Plot
from engine.kernels.experiments.unit_balance.config import BalanceConfig
from engine.kernels.experiments.unit_balance.run import ERROR, RATE
from workbench.study import Changes, Figure, Outcome, RunConfig, Sweep

PAPER, ROUNDED = 0.71, 0.005  # utilisation of the bfloat16 peak, and what "71%" leaves open
HANDOFFS = (0.0, 5e-8, 1e-7)  # s: what may lie between one unit's end and the next one's begin
SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5)
LEAVE = (0.1, 0.25)  # of the exponentials take the polynomial
UTILISATION = "utilisation of peak"
NEITHER: Changes = {"softmax.tau": 0.0, "softmax.share": 0.0}


def levels(log: Log) -> dict[tuple[str, str], float]:
    """Every figure of a run by lane and name."""
    return {(level.lane, level.name): level.value for level in log.of(Level)}


def over_tau(level: str, y: str) -> Sweep:
    """A level of the balanced softmax over how far a row's largest score may grow."""
    return Sweep(
        Plot(level, "τ (powers of 2)", y),
        ("softmax.tau", (0.0, 2.0, 4.0, 8.0, 16.0)),
        lambda log: levels(log)["balanced", level],
        {"balanced": {}},
    )


OVER_TAU = (
    over_tau(ERROR, "error of bfloat16 outputs, relative"),
    over_tau(RATE, "part of looks that rescale"),
)


def reached(config: BalanceConfig, run_config: RunConfig, changes: Changes) -> float:
    """Part of the peak that the modelled pipeline reaches under knob changes."""
    return levels(run_config(update(config, changes)))["modelled", UTILISATION]


def near_paper(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Head size 128, 16k keys, 64 heads, not causal, on the described B200.

    Held against the same pipeline with neither novelty, and at every handoff that may be: its
    range, which is assumed, is the figure's interval.
    """
    found = reached(config, run_config, {})
    over = [
        (reached(config, run_config, {"handoff": s}), reached(config, run_config, neither))
        for s in HANDOFFS
        for neither in [{**NEITHER, "handoff": s}]
    ]
    ours, plain = zip(*over, strict=True)
    least = min(a - b for a, b in over)
    always = reached(config, run_config, {"softmax.tau": 0.0})
    return Outcome(
        f"{PAPER:.0%} of the bfloat16 peak, rounded, and more than with neither novelty, at every "
        f"handoff up to {HANDOFFS[-1] * 1e9:.0f} ns",
        f"{found:.1%} (modelled; {min(ours):.1%} to {max(ours):.1%} over handoffs), at least "
        f"{100 * least:.1f} points more than with neither ({min(plain):.1%} to {max(plain):.1%}); "
        f"skipped rescales alone {100 * (found - always):+.1f} points",
        min(found, *ours) >= PAPER - ROUNDED and least > 0,
        figure=Figure(found, min(found, *ours), max(found, *ours), "%"),
        needed=PAPER - ROUNDED,
    )


def at_handoff(config: BalanceConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """Whether the paper's 71% is reached where units hand over in `value` nanoseconds."""
    found = reached(config, run_config, {"handoff": value * 1e-9})
    return Outcome(
        f"{PAPER:.0%} of the bfloat16 peak", f"{found:.1%}", found >= PAPER - ROUNDED,
        figure=Figure.exact(found, "%"), needed=PAPER - ROUNDED,
    )  # fmt: skip


def balance_pays(config: BalanceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Beside every exponential on the special unit, over handoffs: the figure's interval."""
    over = [gained(config, run_config, s) for s in (config.handoff, *HANDOFFS)]
    return Outcome(
        "more than with all on the special unit, at every handoff",
        f"{100 * over[0]:+.1f} points ({100 * min(over):+.1f} to {100 * max(over):+.1f})",
        min(over) > 0,
        figure=Figure(over[0], min(over), max(over), "%"),
        needed=0.0,
    )


def gained(config: BalanceConfig, run_config: RunConfig, handoff: float) -> float:
    """Utilisation with the config's part of polynomials, less that with none."""
    ours, none = (
        reached(config, run_config, {"handoff": handoff, "softmax.share": share})
        for share in (config.softmax.share, 0.0)
    )
    return ours - none


def pays_at(config: BalanceConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same where units hand over in `value` nanoseconds."""
    found = gained(config, run_config, value * 1e-9)
    return Outcome(
        "more than with all on the special unit", f"{100 * found:+.1f} points", found > 0,
        figure=Figure.exact(found, "%"), needed=0.0,
    )  # fmt: skip


def least_share(config: BalanceConfig, run_config: RunConfig, handoff: float) -> float:
    """The least part of the exponentials off the special unit whose utilisation is the best, as far
    as the paper's own rounding tells; one block of keys is computed, the model has all."""
    brief: Changes = {"tokens": 128, "handoff": handoff}
    found = {s: reached(config, run_config, {**brief, "softmax.share": s}) for s in SHARES}
    return min(s for s, at in found.items() if at >= max(found.values()) - ROUNDED)


def enough_at(config: BalanceConfig, value: float, run_config: RunConfig, fast: bool) -> Outcome:
    """Whether a tenth to a quarter is enough where units hand over in `value` nanoseconds."""
    found = least_share(config, run_config, value * 1e-9)
    return Outcome(
        f"enough are {LEAVE[0]:.0%} to {LEAVE[1]:.0%}", f"{found:.0%}",
        LEAVE[0] <= found <= LEAVE[1], figure=Figure.exact(found, "%"), needed=LEAVE[0],
    )  # fmt: skip
