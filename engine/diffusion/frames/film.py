"""A film: frames made one after another as rows of a serving engine's steps, and speculative ones
beside them, made for a guessed action.

A frame goes from noise to clean in so many steps. Its sampler is a *staircase*: at a step it sees
the frame before it `lag` steps further on, the one before that twice as many, up to clean. So what
a frame becomes depends on the actions up to its own and on its own noise, not on when it is
computed; and where `lag` is less than all steps, frames that follow one another go through a step
side by side. Frames beyond the one that is told take the same action (Next-Frame Diffusion,
abstract); told another one, they are discarded and their pages given back.

What is kept of a frame at a step lies on pages of its own; a frame's block table names those of the
frames it sees, each as it was then. Where pages are short speculative frames yield, to be made
again, the same; then requests do. Shape letters: R frames of a step, T rows of a frame, N numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.events import Branch, Span
from engine.diffusion.frames.game import SIZE
from engine.diffusion.frames.model import BACK, NUMBERS, FrameModel, cells, numbers
from engine.inference.engine import Engine
from engine.inference.requests.view_sequences import NONE, ViewBatch, ViewResult
from engine.models.batch import both_ways

Key = tuple[int, int]  # a frame, and how many of its steps it had passed
lane_of = "frame {}".format


@dataclass
class Making:
    """A frame between noise and clean."""

    frame: int
    action: int
    x_TN: Tensor
    step: int = 0


@dataclass(frozen=True)
class Staircase:
    """How frames are made: the knobs of `FramesConfig`."""

    steps: int = 4
    lag: int = 1
    ahead: int = 3
    seed: int = 0
    fault: str = "none"

    def kept(self, ahead: int) -> int:
        """Frames at a step that are kept at most: those shown, the told one, `ahead` of it."""
        shown = sum(min(BACK, step // self.lag) for step in range(self.lag, self.steps))
        return BACK + 1 + shown + (1 + ahead) * max(1, self.steps - self.lag)

    def noise(self, frame: int) -> Tensor:
        """What a frame begins as, the same whenever it begins."""
        drawn = np.random.default_rng([self.seed, frame]).standard_normal((SIZE, NUMBERS))
        return torch.from_numpy(drawn).float()


@dataclass
class Shown:
    """A frame: `passes` and frames (`rows`) computed until it was clean; `begun` before told."""

    frame: int
    action: int
    begun: bool
    refused: list[tuple[int, int, int, np.ndarray]]  # frame, steps it had done, action, cells
    passes: int = 0
    rows: int = 0
    cells: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))


class Film:
    """One game's frames, `ThreadHost` of the engine that runs `model.opened()`."""

    def __init__(
        self, engine: Engine, model: FrameModel, how: Staircase, first: np.ndarray,
        actions: Sequence[int],
    ) -> None:  # fmt: skip
        """`first` uint8 [BACK, 2, SIZE, SIZE] are given. Raises BadInput: pages are too few."""
        self.engine, self.cache, self.model, self.how = engine, engine.cache, model, how
        size, least = self.cache.page_size, how.kept(0) * SIZE // self.cache.page_size
        if SIZE % size or least > self.cache.pool.total:
            need = f"frames in {how.steps} steps need {least}, of a size that divides {SIZE}"
            raise BadInput(f"{self.cache.pool.total} pages of {size} tokens: {need}")
        self.each, self.given, self.next = SIZE // size, len(first), len(first)
        self.making: list[Making] = []
        self.clean = [  # frames whose clean keys and values are not yet there
            Making(i, actions[i], numbers(torch.from_numpy(x)), how.steps)
            for i, x in enumerate(first)
        ]
        self.pages: dict[Key, np.ndarray] = {}
        self.told: Shown | None = None  # the next frame, once its action is told
        for given in self.clean:
            self._tell(given.frame, "finished", "given")
        self.going: list[Making] = []  # in the step under way,
        self.began, self.said_RTN = 0.0, torch.zeros(0)  # since when, and what came of it

    @property
    def busy(self) -> bool:
        """Whether a frame is told and not clean yet."""
        return self.told is not None

    def tell(self, action: int) -> Shown:
        """The action before the next frame, which is clean once the film is busy no more.
        Speculative frames that were made for another one are discarded."""
        right = not self.making or self.making[0].action == action or self.how.fault == "keeps"
        wrong, self.making = ([], self.making) if right else (self.making, [])
        refused = [(w.frame, w.step, w.action, cells(w.x_TN).numpy()) for w in wrong]
        if wrong and self.how.fault == "resumes":
            self.making = [Making(self.next, action, wrong[0].x_TN, wrong[0].step)]
        for own in wrong[len(self.making) :]:
            self._discard(own, "aborted", "another action was told")
        self.told = Shown(self.next, action, bool(self.making), refused)
        if not self.making:
            self._begin(Making(self.next, action, self.how.noise(self.next)))
        return self.told

    def show(self, action: int) -> Shown:
        """The next frame, made for `action`, by as many of the engine's steps as it takes."""
        shown = self.tell(action)
        while self.busy:
            self.engine.step(self)
        return shown

    def close(self) -> None:
        """Give back all pages."""
        for own in self.making:
            self._discard(own, "aborted", "no more frames are asked for")
        self._leave(list(self.pages))

    def plan(self, now: float) -> ViewBatch | None:
        """The told frame's rows, and speculative ones as far as free pages and tokens go."""
        if self.told is None:
            return None
        self.began, self.going = now, [*self.clean, self.making[0]]
        need = len(self.going) * self.each
        while self.cache.available < need and len(self.making) > 1:
            self._discard(self.making.pop(), "preempted", "pages are short")
        self.engine.scheduler.make_room(need)
        most = self.engine.config.step_tokens // SIZE
        for own in self._speculative():
            there = {*self.pages, *((other.frame, other.step) for other in self.going)}
            free = self.cache.available // self.each > len(self.going) < most
            if free and there.issuperset(self._sees(own)):
                self.going.append(own)
                if own.frame > self.making[-1].frame:
                    self._begin(own)
        for own in self.going:
            held = self.cache.take(lane_of(own.frame), self.each, own.step * SIZE)
            self.pages[own.frame, own.step] = held
        return self._batch()

    def take(self, threads: ViewResult, now: float) -> None:
        """Every frame of the step is one step further."""
        told, steps = self.told, self.how.steps
        assert told
        for own, x0_TN in zip(self.going, self.said_RTN, strict=True):
            tag = f"{own.step * SIZE}:{(own.step + 1) * SIZE}"
            self.engine.emit(Span(now, lane_of(own.frame), "denoise", self.began, tag=tag))
            if own.step < steps:
                level, to = (1 - (own.step + up) / steps for up in (0, 1))
                own.x_TN = x0_TN + (to / level) * (own.x_TN - x0_TN)
                own.step += 1
        told.passes, told.rows, self.clean = told.passes + 1, told.rows + len(self.going), []
        if self.making[0].step == steps:  # rounded to cells, and seen as that from now on
            done, self.told = self.making.pop(0), None
            shown = cells(done.x_TN)
            done.x_TN, told.cells = numbers(shown), shown.numpy()
            self.clean, self.next = [done], self.next + 1
            self._tell(done.frame, "finished", "")
        self._leave([key for key in self.pages if self._over(key)])

    def _speculative(self) -> Iterable[Making]:
        """Speculative frames, the one that may begin now among them."""
        yield from self.making[1:]
        how, last = self.how, self.making[-1]
        if len(self.making) <= how.ahead and how.lag < how.steps and last.step >= how.lag:
            yield Making(last.frame + 1, last.action, how.noise(last.frame + 1))

    def _sees(self, own: Making) -> list[Key]:
        """Which frames one sees now, and how far each of them is; given ones were always clean."""
        how, found = self.how, []
        for frame in range(max(0, own.frame - BACK), own.frame):
            step = min(how.steps, own.step + how.lag * (own.frame - frame))
            found.append((frame, how.steps if frame < self.given else step))
        return [] if how.fault == "blind" else found

    def _over(self, key: Key) -> bool:
        """Whether nobody will see a frame as it was at a step any more."""
        frame, step = key
        if step == self.how.steps:
            return frame + BACK < self.next - len(self.clean)
        seen_by = min(BACK, step // self.how.lag)  # so many frames after it
        return not seen_by or frame + seen_by < self.next

    def _begin(self, own: Making) -> None:
        self.making.append(own)
        self._tell(own.frame, "running", "told" if own.frame == self.next else "guessed")

    def _discard(self, own: Making, state: str, why: str) -> None:
        self._leave([key for key in self.pages if key[0] == own.frame])
        self._tell(own.frame, state, why)

    def _leave(self, keys: list[Key]) -> None:
        for frame, step in keys:
            self.cache.drop(lane_of(frame), self.pages.pop((frame, step)), step * SIZE)

    def _tell(self, frame: int, state: str, why: str) -> None:
        self.engine.emit(Branch(self.engine.clock.now(), lane_of(frame), "", state, why))

    def _batch(self) -> ViewBatch:
        """Each row of a frame sees the whole of it, and what the frame sees."""
        size, at_N = self.cache.page_size, np.arange(len(self.going) * SIZE)
        pages = [
            np.concatenate([self.pages[key] for key in (*self._sees(own), (own.frame, own.step))])
            for own in self.going
        ]
        seen_R = np.array([len(held) * size for held in pages])
        starts_R = np.array([own.frame * SIZE for own in self.going])
        vectors_NC = self.model.embed(
            torch.stack([own.x_TN for own in self.going]),
            [1 - own.step / self.how.steps for own in self.going],
            [own.action for own in self.going],
        )
        where = np.full_like(seen_R, SIZE), seen_R, pages, size
        batch = both_ways(-1 - at_N, starts_R, *where, at_N, vectors_NC)
        nobody = np.zeros(len(at_N), np.uint64)
        return ViewBatch(batch, batch.context_B, nobody, nobody, self._hear)

    def _hear(self, said_BN: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Clean rows, as the model has them, in the place of logits; there are no tokens."""
        self.said_RTN = torch.from_numpy(said_BN).unflatten(0, (-1, SIZE))
        return NONE.astype(np.int32), NONE.astype(np.float32)
