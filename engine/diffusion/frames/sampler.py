"""Frames sampled one after another, with speculative ones made for a guessed action meanwhile.

A frame goes from noise to clean in so many steps. Its sampler is a *staircase*: at a step it sees
the frame before it `lag` steps further on, the one before that twice as many, up to clean. So what
a frame becomes depends on the actions up to its own and on its own noise, not on when it is
computed; and where `lag` is less than all steps, frames that follow one another go through one pass
side by side. Frames beyond the one whose action is told are speculative: they take the same action
(Next-Frame Diffusion, abstract). Told another one, they and what was kept of them are discarded.

This loop is its own, not the serving engine's. Three things stand between. What the engine's rows
hold and its batches carry are token numbers; a frame's rows are real numbers, under a level of
noise and an action, and what a pass says of them is numbers again, no logits. A frame is kept at
each step that it passed, and another sees it at one of them: blocks of pages that a view lists, as
threads of thought have, not one block table. And its lengths are known but not its end: a request
whose answer is discarded and made again at a word from outside is none yet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.diffusion.frames.game import SIZE
from engine.diffusion.frames.model import BACK, NUMBERS, FrameModel, Row, cells, numbers


@dataclass
class Making:
    """A frame between noise and clean."""

    frame: int
    action: int
    x_TN: Tensor
    step: int = 0


@dataclass(frozen=True)
class Staircase:
    """How frames are made. `ahead`: speculative frames at a time. `fault`, a mistake: a wrong guess
    is kept ("keeps"), a frame goes on half made with the right action ("resumes"), or one does
    not see those before it ("blind")."""

    steps: int = 4
    lag: int = 1
    ahead: int = 3
    seed: int = 0
    fault: str = "none"

    def sees(self, frame: int, step: int) -> tuple[tuple[int, int], ...]:
        """Which frames one sees at a step, and how far each of them is."""
        return tuple(
            (frame - ago, min(self.steps, step + self.lag * ago)) for ago in range(BACK, 0, -1)
        )

    def noise(self, frame: int) -> Tensor:
        """What a frame begins as, the same whenever it begins."""
        drawn = np.random.default_rng([self.seed, frame]).standard_normal((SIZE, NUMBERS))
        return torch.from_numpy(drawn.astype(np.float32))


Refused = tuple[int, int, int, np.ndarray]  # frame, steps it had done, action, cells


@dataclass
class Shown:
    """What one frame took: its cells, its action, passes and rows computed, whether it had been
    begun before its action was told, and the frames discarded at its action."""

    frame: int
    cells: np.ndarray
    action: int
    passes: int
    rows: int
    begun: bool
    refused: list[Refused] = field(default_factory=list)


class Sampler:
    """One game's frames. `first` uint8 [BACK, 2, SIZE, SIZE] are given, with their actions."""

    def __init__(
        self, model: FrameModel, how: Staircase, first: np.ndarray, actions: Sequence[int]
    ):
        self.model, self.how, self.next = model, how, len(first)
        self.making: list[Making] = []
        self.clean: list[Making] = []  # clean frames whose keys and values are not yet there
        given = [
            Making(i, int(actions[i]), numbers(torch.from_numpy(x)), how.steps)
            for i, x in enumerate(first)
        ]
        with torch.inference_mode():
            for frame in given:
                sees = tuple((i, how.steps) for i in range(frame.frame))
                model.forward([self._row(frame, sees)])
        for step in range(how.steps):  # given frames are clean at every step
            for frame in given:
                model.kept[frame.frame, step] = model.kept[frame.frame, how.steps]

    def show(self, action: int, told: Callable[[int], None] = lambda rows: None) -> Shown:
        """The next frame, made for `action`. `told` hears after each pass of how many."""
        refused = self._settle(action)
        begun, passes, rows = bool(self.making), 0, 0
        if not begun:
            self.making = [Making(self.next, action, self.how.noise(self.next))]
        while self.making[0].step < self.how.steps:
            count = self._pass()
            passes, rows = passes + 1, rows + count
            told(count)
        done = self.making.pop(0)
        shown = cells(done.x_TN)
        done.x_TN = numbers(shown)
        self.clean.append(done)
        self.next += 1
        self.model.forget(range(self.next - 2 * BACK - 2, self.next - BACK - 1))
        return Shown(done.frame, shown.numpy(), action, passes, rows, begun, refused)

    def _settle(self, action: int) -> list[Refused]:
        """Discard speculative frames where another action was guessed; what they had become."""
        if not self.making or self.making[0].action == action or self.how.fault == "keeps":
            return []
        wrong, self.making = self.making, []
        resumes = self.how.fault == "resumes"
        if resumes:
            self.making = [Making(self.next, action, wrong[0].x_TN, wrong[0].step)]
        self.model.forget(range(self.next + resumes, self.next + self.how.ahead + 1))
        return [(own.frame, own.step, own.action, cells(own.x_TN).numpy()) for own in wrong]

    def _pass(self) -> int:
        """One pass of the model over the frames being made, those that may begin now among them;
        how many."""
        last = self.making[-1]
        room = len(self.making) <= self.how.ahead
        if room and last.step >= self.how.lag and self.how.lag < self.how.steps:
            self.making.append(Making(last.frame + 1, last.action, self.how.noise(last.frame + 1)))
        batch = [*self.clean, *self.making]
        self.clean = []
        with torch.inference_mode():
            said_RTN = self.model.forward([self._row(own) for own in batch])
        for own, x0_TN in zip(batch, said_RTN, strict=True):
            if own.step < self.how.steps:
                level, to = (1 - (own.step + up) / self.how.steps for up in (0, 1))
                own.x_TN = x0_TN + (to / level) * (own.x_TN - x0_TN)
                own.step += 1
        return len(batch)

    def _row(self, own: Making, sees: tuple[tuple[int, int], ...] | None = None) -> Row:
        level = 1 - own.step / self.how.steps
        sees = self.how.sees(own.frame, own.step) if sees is None else sees
        seen = () if self.how.fault == "blind" else sees
        return Row(own.frame, own.step, own.x_TN, level, own.action, seen)
