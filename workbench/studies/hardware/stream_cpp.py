"""STREAM through one high-level interface, beside the native loop of this machine."""

import numpy as np

from engine.core.config import update
from engine.core.events import Level, Span
from engine.core.log import Log
from engine.kernels.experiments.stream.config import StreamConfig
from engine.kernels.experiments.stream.operations import OPERATIONS
from engine.kernels.experiments.stream.run import WRONG, run
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
)

LARGE: Changes = {"length": 2**24, "repeats": 12}
LARGER: Changes = {"length": 2**24, "repeats": 40}
ALIKE = 0.05  # of the bandwidth: what counts as the same
BYTES = 1.39  # the mean of 3/2, 4/3 and 4/3: bytes if lines are read before they are written


def times(log: Log, backend: str) -> dict[str, list[float]]:
    """Seconds of each operation on one backend, in the order of repetitions."""
    spans = [span for span in log.of(Span) if span.name == backend]
    return {op.name: [s.stop - s.start for s in spans if s.lane == op.name] for op in OPERATIONS}


def gains(log: Log, ours: str, theirs: str) -> dict[str, Figure]:
    """Their time over ours, by operation, paired by repetition: measured side by side."""
    first, second = times(log, ours), times(log, theirs)
    return {name: Figure.ratio(second[name], first[name]) for name in first}


def mean(found: dict[str, Figure]) -> Figure:
    """The geometric mean over operations, and of their intervals' ends."""
    logs = [np.log([f.value, f.low, f.high]) for f in found.values()]
    return Figure(*np.exp(np.mean(logs, axis=0)).tolist(), "×", len(found))


def told(found: dict[str, Figure]) -> str:
    return ", ".join(f"{name} {gain.value:.2f}×" for name, gain in found.items())


def right_numbers(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Every backend's four operations on whole numbers, bit for bit."""
    log = run_config(update(config, {"length": 4096, "repeats": 1}))
    wrong = {level.lane: int(level.value) for level in log.of(Level) if level.name == WRONG}
    bad = [f"{name} {count}" for name, count in wrong.items() if count]
    return Outcome(
        "no backend and no native loop differs from numpy in a single number",
        f"wrong: {', '.join(bad)}" if bad else f"none wrong: {', '.join(wrong)}",
        not bad and len(wrong) > 2,
        figure=Figure.exact(sum(wrong.values()), "numbers"),
        needed=0.0,
    )


def native_bandwidth(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Side by side, on vectors past every cache, with stores past the caches on both sides."""
    log = run_config(update(config, LARGE if fast else LARGER))
    assert log.opened is not None
    ours = log.opened.facts["backend"]
    plain, past = log.opened.facts["native"], log.opened.facts["native_past"]
    found = gains(log, ours, past)
    whole, beside = mean(found), mean(gains(log, ours, plain))
    return Outcome(
        f"{past}'s bandwidth within {ALIKE:.0%} (95% interval)",
        f"{ours}: {told(found)}; mean {whole.value:.2f}× ({whole.low:.2f} to {whole.high:.2f}); "
        f"{beside.value:.2f}× of {plain}",
        whole.low >= 1 - ALIKE,
        figure=whole,
        needed=1 - ALIKE,
    )


def written_past_caches(config: StreamConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Streaming stores against the same loop's plain ones, where the compiler streams none."""
    large = config.length >= 2**20
    log = run_config(update(config, (LARGE if fast else LARGER) if large else {"repeats": 40}))
    found = gains(log, "streaming-stores", "plain-loop")
    del found["copy"]  # compilers turn a plain copy into a library call that streams by itself
    whole = mean(found)
    return Outcome(
        f"scale, add and triad faster by more than {ALIKE:.0%} on average, 95% interval too "
        f"({BYTES}× by bytes)",
        f"{told(found)}; mean {whole.value:.2f}× ({whole.low:.2f} to {whole.high:.2f})",
        whole.low > 1 + ALIKE,
        figure=whole,
        needed=1 + ALIKE,
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
            reported=Reported(0.0, "equal", unit="numbers"),
            finding="reproduced",
            grade="exact",
            check=right_numbers,
            broken=(
                Break({"short": True}, True, "operations stop one number early"),
                Break({"factor": 0.1}, why="numbers that round"),
            ),
        ),
        Claim(
            id="native-bandwidth",
            sentence="The high-level interface reaches the native loop's bandwidth, stores alike.",
            paper="enables performance portability; STREAM beside its native form (abstract)",
            grade="measured",
            timed=True,
            reported=Reported(1.0, "equal", tolerance=ALIKE, unit="×"),
            finding="contrary",
            fails=("full",),
            why="parity is within a twentieth: 0.63× [0.62, 0.64] on an Intel Xeon, 1.01× [0.97, "
            "1.04] on an AMD EPYC. Against a native loop whose stores go through the caches it "
            "would come out better, by the instruction alone",
            check=native_bandwidth,
            broken=(
                Break({"backend": "plain-loop"}, True, "our stores go through the caches"),
                Break({"backend": "numpy"}, why="one thread, two passes"),
            ),
        ),
        Claim(
            id="written-past-caches",
            sentence="Stores that pass by the caches save the read before the write.",
            paper="not in the abstract; McCalpin's STREAM counts no write-allocate traffic",
            grade="measured",
            timed=True,
            reported=Reported(BYTES, none=1.0, unit="×"),
            finding="reproduced",
            why="the abstract gives no figure: 1.39× is what the bytes alone come to. 1.41× [1.39, "
            "1.44] on an Intel Xeon; 1.34× [1.29, 1.38], weaker, on an AMD EPYC",
            check=written_past_caches,
            broken=(
                Break({"through": True}, True, "the same loop, its stores through the caches"),
                Break({"length": 2**14}, why="vectors that caches hold"),
            ),
        ),
    ),
    regimes=tuple(
        Regime(
            claim,
            "length",
            tuple(2.0**power for power in (12, 14, 16, 18, 20, 22, 24, 26)),
            x="numbers of a vector, 8 bytes each",
            y=y,
            coarse=(2.0**14, 2.0**24),
            default=2.0**24,
            judged=in_runs(check, "length"),
            log_x=True,
            noun="numbers",
        )
        for claim, check, y in (
            ("native-bandwidth", native_bandwidth, "bandwidth over the native loop's (×)"),
            ("written-past-caches", written_past_caches, "time of plain stores over ours (×)"),
        )
    ),
    limits=(
        "Bandwidth is by STREAM's count: 16 bytes an element for copy and scale, 24 for add and "
        "triad. Through the caches 24 and 32 cross the memory's pins, since the written line is "
        "read first; the tag `pins` says so for each span, by that rule and not from a counter. "
        "Results are exact on whole numbers; with other factors backends that fuse multiply and "
        "add round once instead of twice. C++, HPX and the paper's machines are not run; the "
        "native loops are C with OpenMP, one with streaming stores. Without a GPU the Triton "
        "backend is compared through the interpreter and not timed."
    ),
)
