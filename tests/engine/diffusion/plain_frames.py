"""Frames made in a plain loop of their own, keys and values in a dictionary: what the engine's are
held to. Shape letters as in `engine.diffusion.frames.model`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.diffusion.frames.film import Making, Shown, Staircase
from engine.diffusion.frames.game import SIZE
from engine.diffusion.frames.model import BACK, FrameModel, cells, embedded, numbers
from engine.models.layers import feed_forward, linear, norm
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.reference import keys_values, ordered, queries


@dataclass(frozen=True)
class Row:
    """A frame in a pass, and what it sees: (frame, step) of each frame before it."""

    frame: int
    step: int
    x_TN: Tensor
    level: float
    action: int
    sees: tuple[tuple[int, int], ...]


class PlainModel:
    """Plain torch, and the keys and values of frames by number and step."""

    def __init__(self, model: FrameModel) -> None:
        self.config, self.weights = model.config, model.weights
        self.layers = [
            roles(layer_parameters(self.config, i), self.weights) for i in range(self.config.layers)
        ]
        outer = outer_parameters(self.config)
        self.outer = roles([p for p in outer if p.name in self.weights], self.weights)
        self.kept: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """The clean rows, [R, T, N], of the frames of one pass; their keys and values are kept."""
        x_RTN = torch.stack([row.x_TN for row in rows])
        levels = torch.tensor([[row.level] for row in rows])
        actions = torch.tensor([[row.action] for row in rows])
        x_RTC = embedded(self.weights, x_RTN[:, None], levels, actions)[:, 0]
        at = torch.tensor([row.frame for row in rows])[:, None] * SIZE + torch.arange(SIZE)
        turn = ordered(self.config, x_RTC, at).turn
        for row in rows:
            self.kept[row.frame, row.step] = []
        for layer, w in enumerate(self.layers):
            config, h = self.config.at(layer), norm(self.config, x_RTC, w, "attention_norm")
            q, (k, v) = queries(config, w, h, turn), keys_values(config, w, h, turn)
            for number, row in enumerate(rows):
                self.kept[row.frame, row.step].append((k[number], v[number]))
            x_RTC = x_RTC + linear(w, "out", self._seen(rows, layer, q).flatten(-2))
            x_RTC = x_RTC + feed_forward(config, w, norm(config, x_RTC, w, "mlp_norm"))
        return F.linear(norm(self.config, x_RTC, self.outer, "norm"), self.weights["frames.output"])

    def _seen(self, rows: Sequence[Row], layer: int, q_RTHD: Tensor) -> Tensor:
        """Attention of each frame over itself and what it sees."""
        held = [
            [self.kept[key][layer] for key in (*row.sees, (row.frame, row.step))] for row in rows
        ]
        k, v = (torch.stack([torch.cat([one[i] for one in own]) for own in held]) for i in (0, 1))
        q, k, v = (part.transpose(1, 2) for part in (q_RTHD, k, v))
        scale = self.config.scale(layer)
        return F.scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2)


class PlainSampler:
    """One game's frames, with speculative ones; nothing kept is ever given back but theirs."""

    def __init__(
        self, model: FrameModel, how: Staircase, first: np.ndarray, actions: Sequence[int]
    ) -> None:
        self.model, self.how, self.next = PlainModel(model), how, len(first)
        self.making: list[Making] = []
        self.clean: list[Making] = []  # clean frames whose keys and values are not yet there
        given = [
            Making(i, int(actions[i]), numbers(torch.from_numpy(x)), how.steps)
            for i, x in enumerate(first)
        ]
        with torch.inference_mode():
            for frame in given:
                sees = tuple((i, how.steps) for i in range(frame.frame))
                self.model.forward([self._row(frame, sees)])
        for step in range(how.steps):  # given frames are clean at every step
            for frame in given:
                self.model.kept[frame.frame, step] = self.model.kept[frame.frame, how.steps]

    def show(self, action: int) -> Shown:
        """The next frame, made for `action`."""
        refused = self._settle(action)
        told = Shown(self.next, action, bool(self.making), refused)
        if not told.begun:
            self.making = [Making(self.next, action, self.how.noise(self.next))]
        while self.making[0].step < self.how.steps:
            told.passes, told.rows = told.passes + 1, told.rows + self._pass()
        done = self.making.pop(0)
        shown = cells(done.x_TN)
        done.x_TN, told.cells = numbers(shown), shown.numpy()
        self.clean.append(done)
        self.next += 1
        return told

    def _settle(self, action: int) -> list[tuple[int, int, int, np.ndarray]]:
        """Discard speculative frames where another action was guessed; what they had become."""
        if not self.making or self.making[0].action == action or self.how.fault == "keeps":
            return []
        wrong, self.making = self.making, []
        if self.how.fault == "resumes":
            self.making = [Making(self.next, action, wrong[0].x_TN, wrong[0].step)]
        kept, first = self.model.kept, self.next + len(self.making)
        self.model.kept = {key: held for key, held in kept.items() if key[0] < first}
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
            said_RTN = self.model.forward([self._row(own, self._sees(own)) for own in batch])
        for own, x0_TN in zip(batch, said_RTN, strict=True):
            if own.step < self.how.steps:
                level, to = (1 - (own.step + up) / self.how.steps for up in (0, 1))
                own.x_TN = x0_TN + (to / level) * (own.x_TN - x0_TN)
                own.step += 1
        return len(batch)

    def _sees(self, own: Making) -> tuple[tuple[int, int], ...]:
        how = self.how
        return tuple(
            (own.frame - ago, min(how.steps, own.step + how.lag * ago))
            for ago in range(BACK, 0, -1)
        )

    def _row(self, own: Making, sees: tuple[tuple[int, int], ...]) -> Row:
        seen = () if self.how.fault == "blind" else sees
        level = 1 - own.step / self.how.steps
        return Row(own.frame, own.step, own.x_TN, level, own.action, seen)
