"""DAMOV: six classes of data-movement bottleneck, told apart from counts of real kernels."""

from engine.core.config import update
from engine.core.events import Mark
from engine.core.log import Log
from engine.kernels.experiments.data_movement.config import MovementConfig
from engine.kernels.experiments.data_movement.facts import facts
from engine.kernels.experiments.data_movement.kernels import KERNELS
from engine.kernels.experiments.data_movement.run import CLASS, MISSES, RATIO, run
from workbench.study import Claim, Outcome, RunConfig, Study

FEWEST = 32  # scale of a fast check


def sized(config: MovementConfig, fast: bool) -> MovementConfig:
    """Smaller data for a fast check, four times larger for a full one."""
    return update(config, {"scale": FEWEST if fast else 4})


def classes(log: Log) -> dict[str, str]:
    """Kernel -> the class its counts say."""
    return {m.lane: m.text.split(":")[0] for m in log.of(Mark) if m.name == CLASS}


def six_classes(config: MovementConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Each kernel's class by counts against the one it was built for."""
    found = classes(run_config(sized(config, fast)))
    right = sum(found[kernel.name] == kernel.belongs for kernel in KERNELS)
    said = ", ".join(f"{k.name} {found[k.name]}" for k in KERNELS)
    return Outcome(", ".join(f"{k.name} {k.belongs}" for k in KERNELS), said, right == len(KERNELS))


def trends(config: MovementConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The miss ratio of the capacity-bound kernel falls with cores; the contended one's rises."""
    log = run_config(sized(config, fast))
    falls, rises = RATIO.read(log, "quantiser")[1], RATIO.read(log, "reaction")[1]
    flat = [RATIO.read(log, k.name)[1] for k in KERNELS if k.belongs not in ("1c", "2a")]
    limit = facts()["thresholds"]["lfmr"]
    moved = max(abs(line[-1] - line[0]) for line in flat)
    return Outcome(
        f"1c falls through {limit}, 2a rises through {limit}, the others move by at most 0.1",
        f"1c {falls[0]:.2f} → {falls[-1]:.2f}, 2a {rises[0]:.2f} → {rises[-1]:.2f}, "
        f"others by {moved:.2f}",
        bool(falls[0] > limit > falls[-1] and rises[0] < limit < rises[-1] and moved <= 0.1),
    )


def prefetching(config: MovementConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Misses left with a stream prefetcher two lines ahead, over those without one."""
    config = sized(config, fast)
    plain = run_config(update(config, {"caches.prefetch": 0}))
    helped = run_config(update(config, {"caches.prefetch": 2}))
    left = {
        name: float(MISSES.read(helped, name)[1, 0] / MISSES.read(plain, name)[1, 0])
        for name in ("triad", "linked-records")
    }
    return Outcome(
        "under 10% of the triad's misses are left, over 90% of the linked records'",
        f"{left['triad']:.1%} and {left['linked-records']:.1%}",
        left["triad"] < 0.1 and left["linked-records"] > 0.9,
    )


STUDY = Study(
    slug="damov",
    driver=run,
    config=MovementConfig(),
    views=("curves", "roofline"),
    about=(
        "Six small kernels really run and record every access they make; the streams pass through "
        "simulated caches on 1, 4, 16 and 64 cores. Counts alone (temporal locality, operations "
        "per access, last-level misses per 1,000 instructions, and the share of first-level misses "
        "that reach memory, with its trend over cores) say which of the paper's six bottlenecks "
        "holds each of them back. Turn a cache's size and watch a kernel change class."
    ),
    tries=(
        ("An L3 of 64 MiB: no contention left", {"caches.l3_kib": 65536.0}),
        ("A stream prefetcher two lines ahead", {"caches.prefetch": 2}),
        ("An L2 four times smaller", {"caches.l2_kib": 64.0}),
    ),
    presets={"large-l3": {"caches.l3_kib": 65536.0}, "prefetcher": {"caches.prefetch": 2}},
    claims=(
        Claim(
            id="six-classes",
            sentence="Counts alone put each of six kernels into the class it was built for.",
            paper="97% of 100 held-out functions classed rightly (section 3.5, read second hand)",
            grade="modelled",
            check=six_classes,
            broken={"caches.l3_kib": 65536.0},
        ),
        Claim(
            id="trends",
            sentence="More cores help where private caches add up and hurt where they share one.",
            paper="1c: LFMR 0.5 to 0.09; 2a: up to 0.97 at 256 cores (section 3.3, second hand)",
            grade="modelled",
            check=trends,
            broken={"caches.l2_kib": 64.0},
        ),
        Claim(
            id="prefetching",
            sentence="A stream prefetcher hides the misses of streams, not of linked records.",
            paper="prefetchers do not help DRAM-latency-bound code (section 3.3.2, second hand)",
            grade="direction",
            check=prefetching,
            broken={"caches.streams": 1},
        ),
    ),
    limits=(
        "Caches are simulated after the suite's released host template (32 KiB, 256 KiB, 8 MiB, "
        "64-byte lines), shrunk with the data by the scale; least recently used, no coherence, no "
        "hashing of sets, cores in strict turns, and at most 64 of them where the paper goes to "
        "256. Accesses are recorded at the source, operations and instructions are counted there "
        "too (two more an innermost iteration), not read from a processor. Thresholds come second "
        "hand; what counts as a trend (a change of 0.3) is ours. Temporal locality is computed as "
        "the released simulator does. Modelled times (roofline, speed-up) assume one instruction a "
        "cycle and that cores wait for every miss."
    ),
)
