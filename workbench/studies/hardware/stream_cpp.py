"""STREAM through one high-level interface, beside the native loop of this machine."""

from math import prod
from statistics import median

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.kernels.experiments.stream.config import StreamConfig
from engine.kernels.experiments.stream.operations import OPERATIONS
from engine.kernels.experiments.stream.run import WRONG, run
from workbench.study import Changes, Claim, Outcome, RunConfig, Study

LARGE: Changes = {"length": 2**24, "repeats": 12}
LARGER: Changes = {"length": 2**24, "repeats": 40}


def times(log: Log, backend: str) -> dict[str, list[float]]:
    """Seconds of each operation on one backend, in the order of repetitions."""
    spans = [span for span in log.of(Span) if span.name == backend]
    return {op.name: [s.stop - s.start for s in spans if s.lane == op.name] for op in OPERATIONS}


def gains(log: Log, ours: str, theirs: str) -> dict[str, float]:
    """Median over repetitions of their time over ours, by operation: measured side by side."""
    first, second = times(log, ours), times(log, theirs)
    return {
        name: median(b / a for a, b in zip(first[name], second[name], strict=True))
        for name in first
    }


def told(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {gain:.2f}×" for name, gain in found.items())


def right_numbers(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every backend's four operations on whole numbers, bit for bit."""
    log = run_config(update(config, {"length": 4096, "repeats": 1}))
    wrong = {level.lane: int(level.value) for level in log.of(Level) if level.name == WRONG}
    bad = [f"{name} {count}" for name, count in wrong.items() if count]
    return Outcome(
        "no backend and not the native loop differs from numpy in a single number",
        f"wrong: {', '.join(bad)}" if bad else f"none wrong: {', '.join(wrong)}",
        not bad and len(wrong) > 2,
    )


def native_bandwidth(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Side by side, on vectors past every cache."""
    log = run_config(update(config, LARGE if fast else LARGER))
    assert log.opened is not None
    ours, theirs = log.opened.facts["backend"], log.opened.facts["native"]
    found = gains(log, ours, theirs)
    mean = prod(found.values()) ** (1 / len(found))
    return Outcome(
        f"{theirs}'s bandwidth: mean at least 1.00×, no operation under 0.95×",
        f"{ours}: {told(found)}; mean {mean:.2f}×",
        mean >= 1.0 and min(found.values()) >= 0.95,
    )


def written_past_caches(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Streaming stores against the same loop's plain ones, where the compiler streams none."""
    large = config.length >= 2**20
    log = run_config(update(config, (LARGE if fast else LARGER) if large else {"repeats": 40}))
    found = gains(log, "streaming-stores", "plain-loop")
    del found["copy"]  # compilers turn a plain copy into a library call that streams by itself
    mean = prod(found.values()) ** (1 / len(found))
    return Outcome(
        "scale, add and triad faster on average (at most 1.50×, 1.33× and 1.33× by bytes)",
        f"{told(found)}; mean {mean:.2f}×",
        mean > 1.0,
    )


STUDY = Study(
    slug="stream-cpp",
    driver=run,
    config=StreamConfig(),
    views=("curves", "roofline"),
    about=(
        "STREAM's copy, scale, add and triad are written once, as assignments between vectors, and "
        "run on every backend there is: numpy, torch, two compiled loops, Triton where there is a "
        "GPU. Beside them stands the native loop, C built by this machine's compiler, or a plain "
        "compiled loop where there is no compiler. All are timed in turns on the same memory. Past "
        "the last cache the picked backend's stores pass by all of them: a plain store first reads "
        "the line it will overwrite, which STREAM's own count of bytes leaves out."
    ),
    tries=(
        ("Vectors past every cache (128 MiB each)", {"length": 2**24}),
        ("Vectors that fit the caches", {"length": 2**15, "repeats": 20}),
        ("numpy as the backend", {"backend": "numpy"}),
    ),
    presets={"large": LARGE},
    claims=(
        Claim(
            id="right-numbers",
            sentence="Every backend computes the same numbers through the same four lines.",
            paper="one source for a wide range of architectures (abstract)",
            grade="exact",
            check=right_numbers,
            broken={"factor": 0.1},
        ),
        Claim(
            id="native-bandwidth",
            sentence="The high-level interface reaches at least the native loop's bandwidth.",
            paper="enables performance portability; STREAM beside its native form (abstract)",
            grade="measured",
            timed=True,
            check=native_bandwidth,
            broken={"backend": "numpy"},
        ),
        Claim(
            id="written-past-caches",
            sentence="Stores that pass by the caches save the read before the write.",
            paper="not in the abstract; McCalpin's STREAM counts no write-allocate traffic",
            grade="measured",
            timed=True,
            check=written_past_caches,
            broken={"length": 2**14},
        ),
    ),
    limits=(
        "Bandwidth is by STREAM's count: 16 bytes an element for copy and scale, 24 for add and "
        "triad. Through the caches 24 and 32 cross the memory's pins, since the written line is "
        "read first; the tag `pins` says so for each span, by that rule and not from a counter. "
        "Results are exact on whole numbers; with other factors backends that fuse multiply and "
        "add round once instead of twice. C++, HPX and the paper's machines are not run; the "
        "native loop is C with OpenMP. Without a GPU the Triton backend is compared through the "
        "interpreter and not timed."
    ),
)
