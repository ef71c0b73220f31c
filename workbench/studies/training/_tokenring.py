"""What TokenRing waits for beside ring attention, on described links of either wiring."""

import math
from typing import NamedTuple

from engine.core.config import update
from engine.core.events import Span
from engine.distributed.exposed_communication import exposed
from engine.hardware import link
from engine.training.context_parallel.config import SequenceConfig
from workbench.study import Changes, Figure, Outcome, RunConfig

HEADS = 32  # of queries
LINKS = ("ethernet-100", "pcie4-x16", "pcie5-x16", "pcie6-x16", "nvlink3", "nvlink5")
MESHES = ("ethernet-100", "infiniband-200", *LINKS[1:4])  # beyond, nobody waits in one
# Four devices and 24k tokens, as in the paper's measurement.
FOUR: Changes = {"executor": "modelled", "ranks": 4, "tokens": 24576,
                 "kv_heads": HEADS, "dim": 128, "backward": False, "dropped": -1}  # fmt: skip
# Keys and values of a step are 8.1 ms under way at 12.5 GB/s; the paper measured 7.6.
PAPER: Changes = {"executor.device": "a10", "executor.link": "ethernet-100"}
LESS = 4.6 / 7.6  # of ring attention's step, the least that the paper gains


class Waits(NamedTuple):
    """Seconds: of the longest wait of any rank, and of all of it."""

    exposed: float
    whole: float


def waits(config: SequenceConfig, share: float, run_config: RunConfig) -> tuple[Waits, Waits]:
    """Ours and ring attention's on described links, of 32 query heads of which so many share each
    key head."""
    heads: Changes = {"share": int(share), "kv_heads": HEADS // int(share)}
    logs = [
        run_config(update(config, {**FOUR, **heads, "attention": kind}))
        for kind in (config.attention.kind, "ring")
    ]
    ours, ring = (
        Waits(
            max(exposed(log).values()),
            max(s.stop for s in log.of(Span) if s.lane.startswith("rank ")),
        )
        for log in logs
    )
    return ours, ring


def over(ours: Waits, ring: Waits) -> Figure:
    """The exposed communication over ring attention's; without an end where that waits for none,
    no number where neither does."""
    none = math.inf if ours.exposed else math.nan
    return Figure.exact(ours.exposed / ring.exposed if ring.exposed else none, "×")


def told(ours: Waits, ring: Waits) -> str:
    if not ring.exposed:
        return f"ring attention waits for nothing, ours {ours.exposed * 1e3:.3g} ms"
    return (
        f"{ours.exposed * 1e3:.2f} against {ring.exposed * 1e3:.2f} ms of {ours.whole * 1e3:.2f} "
        f"and {ring.whole * 1e3:.2f} ms"
    )


def less_exposed(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four A10 on a link at which a step of the ring takes about what the paper measured, with one
    port a rank as an A10 has it."""
    return _wired(config, "switch", run_config)


def in_mesh(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same devices and links with a wire for every two ranks."""
    return _wired(config, "mesh", run_config)


def _wired(config: SequenceConfig, wiring: str, run_config: RunConfig) -> Outcome:
    there = update(config, {**FOUR, **PAPER, "executor.wiring": wiring})
    return _waiting(*waits(there, config.share, run_config))


def mesh_of(config: SequenceConfig, speed: float, run_config: RunConfig, fast: bool) -> Outcome:
    """`in_mesh` on the described link of that bandwidth in B/s."""
    there: Changes = {**FOUR, **PAPER, "executor.wiring": "mesh", "executor.link": _named(speed)}
    return _waiting(*waits(update(config, there), config.share, run_config))


def _waiting(ours: Waits, ring: Waits) -> Outcome:
    return Outcome(
        f"at most {LESS:.2f}× the exposed communication of ring attention, and sooner done",
        told(ours, ring),
        0 < ring.exposed >= ours.exposed / LESS and ours.whole < ring.whole,
        figure=over(ours, ring),
        needed=LESS,
    )


def grouped(config: SequenceConfig, share: float, run_config: RunConfig, fast: bool) -> Outcome:
    """On the links of the config, of query heads of which so many share each key head."""
    return _waiting(*waits(config, share, run_config))


def at_link(config: SequenceConfig, speed: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same on described links, the one of that bandwidth in B/s."""
    there = update(config, {"executor.link": _named(speed)})
    return grouped(there, config.share, run_config, fast)


def _named(speed: float) -> str:
    """The described link of that bandwidth in B/s."""
    return next(each for each in (*LINKS, *MESHES) if link(each).bandwidth == speed)
