"""Random prompts of random lengths, arriving at a steady random rate."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import held, in_order
from engine.inference.workloads.workload import Source, Workload


class Uniform(Workload):
    """Random token numbers; lengths uniform; arrivals Poisson, or all at once."""

    kind: Literal["uniform"] = "uniform"
    count: int = knob(16, "Requests", low=1, high=100_000)
    rate: float = knob(
        0.0,
        "Arrivals a second; 0: all at once",
        low=0.0,
        high=1e6,
        unit="1/s",
        called="Arrival rate",
    )
    shortest: int = knob(8, "Shortest prompt", low=1, high=1 << 20, unit="tokens")
    longest: int = knob(64, "Longest prompt", low=1, high=1 << 20, unit="tokens")

    def requests(self, source: Source, seed: int) -> list[Request]:
        return held(self._made(source, seed))

    def _made(self, source: Source, seed: int) -> Iterator[Request]:
        in_order(self.shortest, self.longest)
        draw = np.random.default_rng(seed)
        gaps = draw.exponential(1.0, self.count) / self.rate if self.rate else [0.0] * self.count
        now = 0.0
        for gap in gaps:
            now += float(gap)
            length = int(draw.integers(self.shortest, self.longest + 1))
            prompt = draw.integers(0, source.vocab, length, dtype=np.int32)
            yield Request(prompt, source.sampling, arrival=now)
