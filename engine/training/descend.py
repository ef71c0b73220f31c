"""AdamW down any loss: schedule, clipping, events, checkpoints; alone or with other replicas.

In come weights and a loss by step, out come trained weights. Resumed runs are the uninterrupted
ones bit for bit, given that the loss depends on nothing but weights and step.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import AdamW

from engine.core.clock import Clock
from engine.core.config import to_dict
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.core.run import Stopped
from engine.training.checkpoint import Facts, save_checkpoint
from engine.training.products import INSTEAD, narrow
from engine.training.replicas import Alone, Replicas
from engine.training.resume import resumed
from engine.training.schedule import learning_rate
from engine.training.settings import Training

LANE = "training"
Emit = Callable[[AnyEvent], None]
Loss = Callable[[dict[str, Tensor], int], tuple[Tensor, int]]  # weights, step: mean loss, tokens
Judge = Callable[[dict[str, Tensor], int], dict[str, float]]  # weights, steps done: named levels
Poll = Callable[[int], bool]  # steps done: whether to save and stop here


def descend(
    weights: dict[str, Tensor],
    recipe: Training,
    loss_of: Loss,
    judge: Judge,
    *,
    emit: Emit,
    clock: Clock,
    checkpoint: Path | None = None,
    origin: Facts | None = None,
    replicas: Replicas | None = None,
    poll: Poll = lambda step: False,
) -> dict[str, Tensor]:
    """The trained weights; `weights` are updated in place.

    Resumes from `checkpoint` where that exists; `origin` says what else but the recipe makes this
    run, so that a foreign checkpoint is refused. `loss_of` gives this replica's share of a step.
    Emits a Span for each stretch between reports, Levels loss, rate, gradient_norm and
    tokens_per_second at each report, what `judge` finds at each validation, and a Mark at each
    checkpoint. Raises Stopped, with a checkpoint written, once any replica's `poll` says so.
    """
    run = _Descent(weights, recipe, replicas or Alone(), emit, clock, checkpoint)
    run.facts = {**to_dict(recipe), **(origin or {}), "ranks": run.replicas.ranks}
    run.resume()
    if recipe.precision == "bfloat16" and not narrow(recipe.precision):
        emit(Mark(clock.now(), LANE, "precision", INSTEAD))
    while run.step < recipe.steps:
        stop = run.update(loss_of, poll(run.step))
        last = run.step == recipe.steps
        if run.step % recipe.report == 0 or last or stop:
            run.report()
        if run.step % recipe.checkpoint == 0 or last or stop:
            run.save()
        if stop and not last:
            raise Stopped
        if run.step % recipe.evaluate == 0 or last:
            run.validate(judge)
    run.replicas.enter("finishing", recipe.steps)
    return {name: weight.detach() for name, weight in weights.items()}


class _Descent:
    """Where a run of `descend` stands."""

    def __init__(
        self, weights: dict[str, Tensor], recipe: Training, replicas: Replicas, emit: Emit,
        clock: Clock, checkpoint: Path | None,
    ) -> None:  # fmt: skip
        self.weights, self.recipe, self.replicas = weights, recipe, replicas
        self.emit, self.clock, self.checkpoint = emit, clock, checkpoint
        self.optimizer = adamw(weights, recipe)
        self.facts: Facts = {}
        self.step, self.began, self.since, self.tokens = 0, clock.now(), 0, 0
        self.loss, self.norm = 0.0, 0.0

    def resume(self) -> None:
        """Go on where the checkpoint stands, if there is one."""
        if self.checkpoint is None:
            return
        self.replicas.enter("resume", 0)
        found = resumed(self.checkpoint, self.facts, self.weights, self.optimizer, self.replicas)
        if found is None:
            return
        self.step = self.since = found.step
        if found.fallback:
            self._mark("fallback", f"{found.fallback}; the one before it is taken")
        self._mark("resume", f"from step {found.step} of {self.checkpoint.name}")
        self.began = self.clock.now()

    def update(self, loss_of: Loss, asked: bool) -> bool:
        """One step of all replicas; whether one of them was asked to stop."""
        replicas, step = self.replicas, self.step
        replicas.enter("forward", step)
        loss, tokens = loss_of(self.weights, step)
        replicas.enter("backward", step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for weight in self.weights.values():
            if weight.grad is None:
                # What this replica's tokens never reached (an expert) others' may have.
                weight.grad = torch.zeros_like(weight)
        replicas.enter("collective", step)
        said = torch.tensor([loss.item(), float(asked)])
        replicas.average([*(w.grad for w in self.weights.values() if w.grad is not None), said])
        replicas.enter("optimiser", step)
        self.norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), self.recipe.clip).item()
        recipe = self.recipe
        rate = learning_rate(step, recipe.steps, recipe.rate, recipe.warmup, recipe.decay)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.loss = float(said[0])
        self.tokens += tokens * replicas.ranks
        self.step += 1
        return float(said[1]) > 0

    def report(self) -> None:
        now = self.clock.now()
        self.emit(Span(now, LANE, "steps", self.began, tag=f"{self.since}:{self.step}"))
        levels = {"loss": self.loss, "rate": self.optimizer.param_groups[0]["lr"]}
        levels |= {"gradient_norm": self.norm}
        levels |= {"tokens_per_second": self.tokens / max(now - self.began, 1e-9)}
        self._levels(levels, now)
        self.began, self.since, self.tokens = now, self.step, 0

    def save(self) -> None:
        """The first replica writes, the others wait for it."""
        if self.checkpoint is None:
            return
        done, enter = self.step - 1, self.replicas.enter
        enter("checkpoint", done)
        if self.replicas.rank == 0:
            save_checkpoint(
                self.checkpoint, self.step, self.weights, self.optimizer, self.facts,
                lambda stage: enter(stage, done),
            )  # fmt: skip
            self._mark("checkpoint", f"step {self.step}")
        self.replicas.wait()

    def validate(self, judge: Judge) -> None:
        """The first replica judges, the others wait for it."""
        self.replicas.enter("validation", self.step - 1)
        if self.replicas.rank == 0:
            found = judge(self.weights, self.step)
            self._levels(found, self.clock.now())
        self.replicas.wait()

    def _levels(self, levels: Mapping[str, float], now: float) -> None:
        for name, value in levels.items():
            self.emit(Level(now, LANE, name, value))

    def _mark(self, name: str, text: str) -> None:
        self.emit(Mark(self.clock.now(), LANE, name, text))


def adamw(weights: dict[str, Tensor], recipe: Training) -> AdamW:
    """AdamW (Loshchilov and Hutter, arXiv 1711.05101) that decays matrices, not norms or biases."""
    for weight in weights.values():
        weight.requires_grad_()
    matrices = [weight for weight in weights.values() if weight.ndim > 1]
    vectors = [weight for weight in weights.values() if weight.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=recipe.rate, betas=(0.9, recipe.beta2), fused=True)
