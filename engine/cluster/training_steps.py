"""Training steps, many of a plan in a row on the virtual clock: jitter, failures, checkpoints.

Each step is played with times of its own; what failures undo is played again. Goodput is the time
of steps that were kept over the time of all. Out come spans in the lane `training`, every rank's
passes where they are few enough to look at, marks for failures, and levels for goodput and steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import inf

import msgspec
import numpy as np

from engine.cluster import contended
from engine.cluster.goodput import History, daly, expected, played, young
from engine.cluster.pipeline_contended import bubble_of
from engine.cluster.pipeline_events import in_words, passes_of, spans
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.core.names import counted
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.faults import DescribedFaults
from engine.training.pipeline.job import Job
from engine.training.plan.bubble import Bubble
from engine.training.plan.columns import B, F, I, W
from engine.training.plan.times import Timed, timed

TRAINING = "training"
LANES = {
    "step": TRAINING, "checkpoint": "checkpoints", "lost": "failures", "restart": "failures",
}  # fmt: skip
DRAWS = 64  # steps with times of their own; later ones have those of one of them again
SHOWN = 20_000  # actions of all steps together that are shown rank by rank


@dataclass(frozen=True)
class Step:
    """One step played: each replica's times, seconds, bubble."""

    times: list[Timed]
    seconds: float
    bubble: Bubble


class Steps:
    """Steps of a plan by their number, played when they are asked for."""

    def __init__(self, config: PipelineConfig, job: Job, faults: DescribedFaults, seed: int):
        self.config, self.job, self.faults, self.seed = config, job, faults, seed
        self.one: Callable[[int], Step] = cache(self._play)

    def __call__(self, number: int) -> Step:
        return self.one(number % DRAWS if self.faults.jitter > 0 else 0)

    @property
    def replicas(self) -> int:
        if not self.config.cluster.name:
            return 1
        return self.config.cluster.replicas or self.config.passes.replicas(self.config.ranks)

    @property
    def devices(self) -> int:
        """That may fail."""
        context, tensor = self.config.passes.devices
        each = context * tensor if self.config.cluster.name else 1
        return len(self.job.plan.ranks) * self.replicas * each

    def _play(self, number: int) -> Step:
        slower = self._slower(number)
        if self.config.cluster.name:
            done = contended.play(self.config, self.job, slower, uses=False)
            return Step(done.times, done.end, bubble_of(done))
        one = timed(self.job.plan, self.job.costs, None if slower is None else slower[0])
        return Step([one], one.end, passes_of(one))

    def _slower(self, number: int) -> np.ndarray | None:
        """[replicas, actions]: how many times as long each pass takes, 1 on average."""
        spread = self.faults.jitter
        if spread == 0:
            return None
        dice = np.random.default_rng([self.seed, number])
        kinds = timed(self.job.plan, self.job.costs).columns.kind
        drawn = np.exp(dice.normal(-spread * spread / 2, spread, (self.replicas, len(kinds))))
        return np.where(np.isin(kinds, [F, B, I, W]), drawn, 1.0)


def interval(faults: DescribedFaults, seconds: float, mtbf: float) -> int:
    """Steps between checkpoints: as asked for, or as Daly advises for steps of so many seconds."""
    if faults.every:
        return faults.every
    if mtbf == inf:
        return faults.steps
    return max(1, round(daly(faults.write, mtbf) / seconds))


def run_steps(
    config: PipelineConfig, job: Job, faults: DescribedFaults, seed: int
) -> tuple[Steps, History, int]:
    """The steps, what became of them, and how many lay between checkpoints."""
    steps = Steps(config, job, faults, seed)
    mtbf = faults.mtbf / steps.devices if faults.mtbf > 0 else inf
    every = interval(faults, steps(0).seconds, mtbf)
    history = played(
        lambda number: steps(number).seconds, faults.steps, every, faults.write, faults.restart,
        mtbf, seed,
    )  # fmt: skip
    return steps, history, every


def lanes(steps: Steps) -> list[str]:
    """The training's own, and every rank's where they are shown."""
    ranks = len(steps.job.plan.ranks) * steps.replicas
    shown = [f"rank {rank}" for rank in range(ranks)] if in_detail(steps) else []
    return [*dict.fromkeys(LANES.values()), *shown]


def in_detail(steps: Steps) -> bool:
    """Whether every rank's passes are shown, too."""
    return len(steps.job.plan) * steps.replicas * steps.faults.steps <= SHOWN


def events(steps: Steps, history: History) -> Iterator[AnyEvent]:
    """All of it, not yet in the order of time."""
    first = len(steps.job.plan.ranks)
    detail = in_detail(steps)
    for piece in history.pieces:
        tag = f"task={piece.step}" if piece.what in ("step", "lost") else ""
        yield Span(piece.stop, LANES[piece.what], piece.what, piece.start, tag=tag)
        if piece.what == "step":
            yield Level(piece.stop, TRAINING, "steps done", float(piece.step + 1))
        if detail and piece.what == "step":
            for replica, times in enumerate(steps(piece.step).times):
                for span in spans(steps.job, times, first=replica * first):
                    yield _later(span, piece.start)
    for moment, lost in history.failures:
        yield Mark(moment, TRAINING, "failure", failed(moment, lost))
    kept, since = 0.0, 0.0  # seconds of steps that a checkpoint holds, and of those after it
    for piece in history.pieces:
        if piece.what == "step":
            since += piece.stop - piece.start
        elif piece.what == "checkpoint":
            kept, since = kept + since, 0.0
        else:
            since = 0.0
            yield Level(piece.stop, TRAINING, "steps done", float(piece.saved))
        if piece.stop > 0:
            yield Level(piece.stop, TRAINING, "goodput", (kept + since) / piece.stop)


def failed(moment: float, lost: int) -> str:
    """Such as "a device fails after 812 s: 3 steps are done again"."""
    again = f"{counted(lost, 'step')} to do again" if lost else "nothing is lost"
    return f"a device fails after {moment:.4g} s: {again}"


def words(steps: Steps, history: History, every: int) -> list[Mark]:
    """What came of it, as sentences beside the plan."""
    faults, end = steps.faults, history.end
    mtbf = faults.mtbf / steps.devices if faults.mtbf > 0 else inf
    times = [steps(number).seconds for number in range(min(faults.steps, DRAWS))]
    spread = f"{min(times):.4g} to {max(times):.4g} s, mean {np.mean(times):.4g} s"
    told = [("iteration", f"a step takes {spread}" if faults.jitter > 0 else
             f"a step takes {times[0]:.4g} s")]  # fmt: skip
    if mtbf < inf:
        work = every * float(np.mean(times))
        model = work / expected(work, faults.write, faults.restart, mtbf)
        fell, apart = counted(len(history.failures), "failure"), counted(every, "step")
        told += [
            ("goodput", f"goodput {history.goodput:.1%} with a checkpoint every {apart} "
             f"({work:.4g} s); {fell}; {model:.1%} expected"),
            ("interval", f"checkpoints pay best {young(faults.write, mtbf):.4g} s apart (Young), "
             f"{daly(faults.write, mtbf):.4g} s (Daly); all devices together fail every "
             f"{mtbf:.4g} s"),
        ]  # fmt: skip
    else:
        told.append(("goodput", f"goodput {history.goodput:.1%}: nothing fails"))
    told.append(("bubble", f"of the first step: {in_words(steps(0).bubble)}"))
    return [Mark(end, "plan", name, text) for name, text in told]


def _later(span: AnyEvent, by: float) -> AnyEvent:
    assert isinstance(span, Span)
    return msgspec.structs.replace(span, time=span.time + by, start=span.start + by)
