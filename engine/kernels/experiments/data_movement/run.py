"""The driver of data-movement classes: kernels recorded, fed to caches, counted and classed.

Beside each class stands what the modelled times say: a label no count is compared with.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.events import Level, Mark, Span
from engine.core.plot import BOUND, Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.kernels.experiments.data_movement.bottleneck import limited_by, spent
from engine.kernels.experiments.data_movement.caches import (
    DRAM_WRITE,
    L1_MISS,
    L2_MISS,
    L3_MISS,
    PREFETCHED,
    Misses,
    misses,
)
from engine.kernels.experiments.data_movement.classes import Profile, classify
from engine.kernels.experiments.data_movement.config import MovementConfig
from engine.kernels.experiments.data_movement.facts import facts
from engine.kernels.experiments.data_movement.held_out import HELD_OUT
from engine.kernels.experiments.data_movement.kernels import KERNELS, Kernel, Trace
from engine.kernels.experiments.data_movement.locality import spatial, temporal

SHARE = "L3 misses / L1 misses"
RATIO = Plot("last-to-first miss ratio", "cores", SHARE, log_x=True)
MISSES = Plot("last-level misses", "cores", "per 1,000 instructions", log_x=True, log_y=True)
PLACES = Plot("locality and miss ratio", "temporal locality", SHARE)
SPEED = Plot("speed-up", "cores", "times one core", log_x=True, log_y=True)
PLOTS = (RATIO, MISSES, PLACES, SPEED)
HOST = "described-host"
CLASS, LABEL = "class", "limited by"
TEMPORAL, SPATIAL, INTENSITY = "temporal locality", "spatial locality", "operations per access"


def run(config: MovementConfig, live: Live) -> None:
    """Record, simulate and class kernels. Times are the model's, counts are counted."""
    clock = VirtualClock()
    live.open(
        config,
        clock,
        plots=PLOTS,
        question="What do more cores change: misses, or speed?",
        roofs=roofs(config),
    )
    movement = _Movement(config, live, clock)
    movement.limits()
    kernels = KERNELS if config.kernels == "six" else HELD_OUT
    for number, kernel in enumerate(kernels):
        live.report("simulating caches", number, len(kernels))
        movement.profile(kernel)


def cores_of(config: MovementConfig) -> list[int]:
    """1, 4, 16 … up to the most."""
    found = [1]
    while found[-1] * 4 <= config.most_cores:
        found.append(found[-1] * 4)
    return found


def roofs(config: MovementConfig) -> list[dict[str, object]]:
    """Memory's bandwidth and one operation a cycle on every core: both of the description."""
    most = cores_of(config)[-1] * facts()["hierarchy"]["frequency"]
    plain = {"device": HOST, "grade": "modelled", "dtype": "float64"}
    return [
        {
            **plain,
            "name": "memory",
            "kind": "bandwidth",
            "value": config.bandwidth,
            "level": "DRAM",
        },
        {**plain, "name": "arithmetic", "kind": "compute", "value": most, "level": ""},
    ]


@dataclass(frozen=True)
class Point:
    """One kernel on one number of cores."""

    trace: Trace
    found: Misses
    seconds: float  # modelled
    last: int = L3_MISS  # whose misses count as the last level's

    @property
    def mpki(self) -> float:
        return 1e3 * self.found.total(self.last) / self.trace.instructions

    @property
    def lfmr(self) -> float:
        return self.found.total(self.last) / max(self.found.total(L1_MISS), 1)

    @property
    def memory_bytes(self) -> float:
        """Lines read and written back, demanded or prefetched."""
        lines = sum(self.found.total(which) for which in (L3_MISS, DRAM_WRITE, PREFETCHED))
        return float(lines * facts()["hierarchy"]["line"])


class _Movement:
    """The run's clock and where it emits."""

    def __init__(self, config: MovementConfig, live: Live, clock: VirtualClock) -> None:
        self.config, self.live, self.clock = config, live, clock

    def limits(self) -> None:
        """The paper's thresholds as lines."""
        limit, most = facts()["thresholds"], float(cores_of(self.config)[-1])
        across = np.array([1.0, most])
        self.draw(RATIO, f"high above{BOUND}", across, np.full(2, limit["lfmr"]))
        self.draw(MISSES, f"high above{BOUND}", across, np.full(2, limit["mpki"]))
        self.draw(
            PLACES, f"high right of{BOUND}", np.full(2, limit["temporal"]), np.array([0, 1.0])
        )

    def profile(self, kernel: Kernel) -> None:
        """One kernel on every number of cores, then its class."""
        cores = cores_of(self.config)
        points, near = [], (0.0, 0.0)
        for count in cores:
            self.live.poll(self.clock.now())
            points.append(self.point(kernel, count))
            if count == 1:
                places = points[0].trace.places
                near = spatial(places), temporal(places)
        mpki, lfmr = [p.mpki for p in points], [p.lfmr for p in points]
        intensity = points[0].trace.intensity
        profile = Profile(*near, intensity, tuple(mpki), tuple(lfmr))
        x = np.array(cores, float)
        self.draw(RATIO, kernel.name, x, np.array(lfmr))
        self.draw(MISSES, kernel.name, x, np.maximum(mpki, 1e-3))
        self.draw(PLACES, kernel.name, np.full(len(x), profile.temporal), np.array(lfmr))
        self.draw(SPEED, kernel.name, x, points[0].seconds / np.array([p.seconds for p in points]))
        now = self.clock.now()
        for name, value in (
            (SPATIAL, profile.spatial),
            (TEMPORAL, profile.temporal),
            (INTENSITY, profile.intensity),
        ):
            self.live.emit(Level(now, kernel.name, name, value))
        names, found = facts()["classes"], classify(profile)
        told = f"{found}: {names.get(found, 'fits no class')}"
        self.live.emit(Mark(now, kernel.name, CLASS, f"{told}; {kernel.why}".removesuffix("; ")))
        label = limited_by([
            spent(p.trace, p.found, kernel.chained, self.config.latency, self.config.bandwidth)
            for p in points
        ])  # fmt: skip
        self.live.emit(Mark(now, kernel.name, LABEL, f"{label}: {names[label]}, by its times"))

    def point(self, kernel: Kernel, cores: int) -> Point:
        """Record and simulate; the span's time is the model's, its bytes are counted lines."""
        config, line = self.config, facts()["hierarchy"]["line"]
        trace = kernel.record(cores, config.scale, config.seed)
        found = misses(trace.stream, trace.ends, config.caches, config.scale)
        last = L1_MISS if config.swapped else L3_MISS
        point = Point(trace, found, 0.0, last)
        start = self.clock.now()
        seconds = self.seconds(point, cores)
        self.clock.wait_until(start + seconds)
        said = tag(
            dtype="float64",
            variant=kernel.belongs,
            grade="modelled",
            device=HOST,
            L1=trace.element * len(trace.stream),
            L2=line * found.total(L1_MISS),
            L3=line * found.total(L2_MISS),
        )
        # The roofline shows one core and all of them; more marks would hide one another.
        shown = cores in (1, cores_of(config)[-1])
        self.live.emit(
            Span(
                self.clock.now(), kernel.name, f"{cores} core{'s' * (cores > 1)}", start,
                float(trace.operations * shown), point.memory_bytes, said,
            )
        )  # fmt: skip
        return Point(trace, found, seconds, last)

    def seconds(self, point: Point, cores: int) -> float:
        """The slowest core, one instruction a cycle and waiting for every miss, or the memory."""
        known, counts = facts()["hierarchy"], point.found.counts
        each = np.diff(point.trace.ends, prepend=0) / len(point.trace.stream)
        cycles = each * point.trace.instructions
        cycles = cycles + (counts[:, L1_MISS] - counts[:, L2_MISS]) * known["l2_latency"]
        in_l3 = np.maximum(counts[:, L2_MISS] - counts[:, L3_MISS], 0)
        cycles = cycles + in_l3 * known["l3_latency"] + counts[:, L3_MISS] * self.config.latency
        slowest = float(cycles.max()) / known["frequency"]
        return max(slowest, point.memory_bytes / self.config.bandwidth)

    def draw(self, plot: Plot, series: str, x: np.ndarray, y: np.ndarray) -> None:
        """One curve."""
        self.live.curve(self.clock.now(), plot, series, np.stack([x, y]))
