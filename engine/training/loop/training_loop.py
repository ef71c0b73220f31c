"""The training loop: learning-rate schedule, gradient clipping, logging and checkpoints, for one
process or a mesh of ranks.

In comes a learner with its weights, out come trained weights. Resumed runs are the uninterrupted
ones bit for bit, given that the loss depends on nothing but weights and step.
"""

from collections.abc import Callable, Mapping
from math import isfinite

from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import to_dict
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.core.run import Stopped
from engine.training.loop.checkpoint import Facts
from engine.training.loop.learner import Learner
from engine.training.loop.learning_rate import learning_rate
from engine.training.loop.phases import LANE
from engine.training.loop.precision import INSTEAD, narrow
from engine.training.loop.settings import Training

Emit = Callable[[AnyEvent], None]
Judge = Callable[[dict[str, Tensor], int], dict[str, float]]  # weights, steps done: named levels
Poll = Callable[[int], bool]  # steps done: whether to save and stop here


def training_loop(
    learner: Learner,
    recipe: Training,
    judge: Judge,
    *,
    emit: Emit,
    clock: Clock,
    origin: Facts | None = None,
    poll: Poll = lambda step: False,
    kind: str = "cpu",
) -> None:
    """Until the learner has done all steps.

    Resumes from its checkpoint where there is one; `origin` says what else but the recipe makes
    this run, so that a foreign checkpoint is refused. `kind` is that of the device. Emits a Span
    for each stretch between reports, Levels loss, rate, gradient_norm and tokens_per_second at each
    report, what `judge` finds at each validation, and a Mark at each checkpoint. Raises Stopped,
    with a checkpoint written, once any rank's `poll` says so, BadInput once loss or gradient is not
    finite.
    """
    run = _Loop(learner, recipe, emit, clock)
    run.facts = {**to_dict(recipe), **(origin or {}), **learner.facts}
    run.resume()
    if recipe.precision == "bfloat16" and not narrow(recipe.precision, kind):
        emit(Mark(clock.now(), LANE, "precision", INSTEAD))
    while run.step < recipe.steps:
        stop = run.update(poll(run.step))
        last = run.step == recipe.steps
        if run.step % recipe.report == 0 or last or stop:
            run.report()
        if run.step % recipe.checkpoint == 0 or last or stop:
            run.save()
        if stop and not last:
            raise Stopped
        if run.step % recipe.evaluate == 0 or last:
            run.validate(judge)
    learner.enter("finishing", recipe.steps)


class _Loop:
    """Where a run of `training_loop` stands."""

    def __init__(self, learner: Learner, recipe: Training, emit: Emit, clock: Clock) -> None:
        self.learner, self.recipe, self.emit, self.clock = learner, recipe, emit, clock
        self.facts: Facts = {}
        self.step, self.began, self.since, self.tokens = 0, clock.now(), 0, 0
        self.loss, self.norm, self.rate = 0.0, 0.0, 0.0

    def resume(self) -> None:
        """Go on where the checkpoint stands, if there is one."""
        place = self.learner.place
        if place is None:
            return
        self.learner.enter("resume", 0)
        found = self.learner.resume(self.facts)
        if found is None:
            return
        self.step = self.since = found.step
        if found.fallback:
            self._mark("fallback", f"{found.fallback}; the one before it is taken")
        self._mark("resume", f"from step {found.step} of {place.name}")
        self.began = self.clock.now()

    def update(self, asked: bool) -> bool:
        """One step; whether anybody was asked to stop."""
        recipe, step = self.recipe, self.step
        self.learner.enter("forward", step)
        self.loss, tokens = self.learner.gradients(step)
        self.rate = learning_rate(step, recipe.steps, recipe.rate, recipe.warmup, recipe.decay)
        self.norm, stop = self.learner.update(self.rate, asked)
        if not (isfinite(self.loss) and isfinite(self.norm)):  # before it is saved as whole
            raise BadInput(
                f"step {step}: loss {self.loss:g}, gradient {self.norm:g}: nothing is learnt "
                "any more, and nothing of this was saved; take a lower rate or weights that are "
                "finite, into another folder"
            )
        self.tokens += tokens
        self.step += 1
        return stop

    def report(self) -> None:
        now = self.clock.now()
        self.emit(Span(now, LANE, "steps", self.began, tag=f"{self.since}:{self.step}"))
        levels = {"loss": self.loss, "rate": self.rate, "gradient_norm": self.norm}
        levels |= {"tokens_per_second": self.tokens / max(now - self.began, 1e-9)}
        self._levels(levels, now)
        self.began, self.since, self.tokens = now, self.step, 0

    def save(self) -> None:
        """Write a checkpoint, where the learner has a place for it."""
        if self.learner.place is None:
            return
        self.learner.enter("checkpoint", self.step - 1)
        self.learner.save(self.step, self.facts)
        self._mark("checkpoint", f"step {self.step}")

    def validate(self, judge: Judge) -> None:
        """The first judges, the others wait for it."""
        self.learner.enter("validation", self.step - 1)
        weights = self.learner.whole()
        if weights is not None:
            self._levels(judge(weights, self.step), self.clock.now())
        self.learner.wait()

    def _levels(self, levels: Mapping[str, float], now: float) -> None:
        for name, value in levels.items():
            self.emit(Level(now, LANE, name, value))

    def _mark(self, name: str, text: str) -> None:
        self.emit(Mark(self.clock.now(), LANE, name, text))
