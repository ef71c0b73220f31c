"""Independent people: arrivals of a Poisson process or in gamma bursts, lengths that scatter, no
prefix shared."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import Lengths, arrivals, held, split, swung
from engine.inference.workloads.workload import Source, Stream, Workload

BLOCK = 256  # requests whose prompts are made at once


class Poisson(Workload):
    """`count` requests at `rate`; some urgent, from users of whom the first ask most."""

    kind: Literal["poisson"] = "poisson"
    count: int = knob(200, "Requests", low=1, high=1_000_000, log=True)
    rate: float = knob(
        8.0,
        "Arrivals; 0 brings all at once",
        low=0.0,
        high=1e6,
        unit="1/s",
        log=True,
        called="Arrival rate",
    )
    burstiness: float = knob(
        1.0,
        "Shape of the gamma distribution of gaps between arrivals; 1: Poisson, less: bursts",
        low=0.01,
        high=1000.0,
        log=True,
        called="Burstiness of arrivals",
    )
    swing: float = knob(
        0.0,
        "The rate goes so far below and above its mean, first below",
        low=0.0,
        high=1.0,
        called="Swing of the rate",
    )
    period: float = knob(60.0, "From one low of the rate to the next", low=1e-3, high=1e6, unit="s")
    prompt: Lengths = knob(Lengths(median=256, spread=0.8, longest=8192), "Prompt lengths")
    output: Lengths = knob(Lengths(median=96, spread=0.7, longest=4096), "Answer lengths")
    users: int = knob(4, "Users; the k-th asks 1/k as often as the first", low=1, high=10_000)
    urgent: float = knob(0.0, "Share of requests with priority 1", low=0.0, high=1.0)

    def requests(self, source: Source, seed: int) -> list[Request]:
        return held(self.stream(source, seed).requests)

    def stream(self, source: Source, seed: int) -> Stream:
        """Lengths and times of all are drawn at once, prompts a block at a time."""
        return Stream(self.count, self._made(source, seed))

    def _made(self, source: Source, seed: int) -> Iterator[Request]:
        random = np.random.default_rng([seed, 1])
        times = swung(
            arrivals(random, self.count, self.rate, self.burstiness), self.swing, self.period
        )
        lengths = self.prompt.draw(random, self.count)
        answers = self.output.draw(random, self.count)
        share = 1.0 / np.arange(1, self.users + 1)
        users = random.choice(self.users, self.count, p=share / share.sum())
        urgent = random.random(self.count) < self.urgent
        for first in range(0, self.count, BLOCK):
            block = np.arange(first, min(first + BLOCK, self.count))
            prompts = split(seed, lengths[block], source.vocab, block)
            for i, prompt in zip(block.tolist(), prompts, strict=True):
                yield source.request(
                    prompt.copy(), answers[i], times[i], user=f"u{users[i]}",
                    priority=int(urgent[i]),
                )  # fmt: skip
