"""A steady batch: so many equal requests, all at once. The simplest thing to measure."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import LONGEST, split
from engine.inference.workloads.workload import Source, Workload


class Steady(Workload):
    """`count` requests at time 0 with prompts and answers of fixed lengths, no prefix shared."""

    kind: Literal["steady"] = "steady"
    count: int = knob(16, "Requests", low=1, high=1_000_000, log=True)
    prompt: int = knob(128, "Prompt length", low=1, high=LONGEST, unit="tokens", log=True)
    output: int = knob(64, "Answer length", low=1, high=LONGEST, unit="tokens", log=True)

    def requests(self, source: Source, seed: int) -> list[Request]:
        prompts = split(seed, np.full(self.count, self.prompt), source.vocab, np.arange(self.count))
        return [source.request(prompt, self.output, 0.0) for prompt in prompts]
