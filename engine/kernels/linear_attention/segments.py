"""One sequence cut into segments that threads work on at once, the state passed between them.

Three stages: each segment's own contribution to the state (parallel), the states passed on in order
(sequential and small), each segment's outputs from the state before it (parallel). This is the
materialising chunkwise form of Yang et al. (arXiv 2312.06635), a segment a worker.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numba
import torch
from torch import Tensor

from engine.kernels.linear_attention.chunkwise_cpu import form
from engine.kernels.operator import Arguments

Call: TypeAlias = Callable[[], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Task:
    """Something one worker did: `stage` for `segment`, from `start` to `stop` in seconds."""

    lane: str
    stage: str
    segment: int
    start: float
    stop: float


def contribution(k: Tensor, v: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    """What a segment's tokens leave in the state at its end, and how much it keeps of the rest."""
    later = torch.nn.functional.pad(gate[:, :, 1:], (0, 0, 0, 1))
    after = later.flip(2).cumsum(2).flip(2)
    return (k * after.exp()).mT @ v, gate.sum(2).exp().unsqueeze(-1)


class Segments:
    """Runs one sequence by segments, dealt in turn to `workers` threads; notes who did what."""

    def __init__(self, workers: int, now: Callable[[], float], chunk: int, sub_chunk: int) -> None:
        self.now, self.form = now, form(chunk, sub_chunk)
        self.pools = [ThreadPoolExecutor(1, initializer=_alone) for _ in range(workers)]
        self.tasks: list[Task] = []

    def run(self, given: Arguments, count: int, pass_state: bool = True) -> tuple[Tensor, Tensor]:
        """Outputs and last state of the sequence in `count` segments; a record in `tasks`.

        `pass_state` false leaves the second stage out: each segment starts from nothing.
        """
        q, k, v, gate = (given[n] for n in ("q_BHTK", "k_BHTK", "v_BHTV", "log_gate_BHTK"))
        lengths = [len(part) for part in torch.arange(q.shape[2]).chunk(count)]
        parts = [x.split(lengths, dim=2) for x in (q * given["scale"], k, v, gate)]
        cuts = list(zip(*parts, strict=True))

        made = self.spread(
            "own state", [partial(contribution, k, v, gate) for _, k, v, gate in cuts]
        )
        state, before = given["state_BHKV"], []
        for n, (added, kept) in enumerate(made):
            before.append(state if pass_state or n == 0 else torch.zeros_like(state))
            start = self.now()
            state = kept * state + added
            self.tasks.append(Task("state", "pass on", n, start, self.now()))
        calls = [
            partial(self.form.keys_gated, q, k, v, gate, first)
            for (q, k, v, gate), first in zip(cuts, before, strict=True)
        ]
        return torch.cat([o for o, _ in self.spread("outputs", calls)], 2), state

    def spread(self, stage: str, calls: Sequence[Call]) -> list[tuple[Tensor, Tensor]]:
        """What the calls give; call n is done by worker n modulo the number of workers."""
        waiting = [
            self.pools[n % len(self.pools)].submit(self.timed, stage, n, call)
            for n, call in enumerate(calls)
        ]
        done = [future.result() for future in waiting]
        self.tasks += [task for _, task in done]
        return [found for found, _ in done]

    def timed(self, stage: str, n: int, call: Call) -> tuple[tuple[Tensor, Tensor], Task]:
        """What `call` gives, with a note of it."""
        start = self.now()
        found = call()
        lane = f"worker {n % len(self.pools)}"
        return found, Task(lane, stage, n, start, self.now())

    def close(self) -> None:
        for pool in self.pools:
            pool.shutdown()


def _alone() -> None:
    """A worker is one thread: its kernels do not spread further."""
    numba.set_num_threads(1)
