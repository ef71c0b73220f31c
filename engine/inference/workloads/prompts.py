"""Literal prompts: text that a person wrote, for a model with a tokenizer."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.inference.requests.request import Request
from engine.inference.workloads.workload import Source, Workload

STARTS = (
    "def fibonacci(n):\n",
    "import os\nimport sys\n\n\nclass Reader:\n",
    "    def __init__(self, name):\n",
    'if __name__ == "__main__":\n',
)
Text = Annotated[str, Field(min_length=1, max_length=1_000_000)]


class Prompts(Workload):
    """`texts`, `repeat` times over, one every `gap` seconds; the model may end its answers."""

    kind: Literal["prompts"] = "prompts"
    texts: tuple[Text, ...] = knob(STARTS, "What is asked")
    repeat: int = knob(1, "Times each text is asked", low=1, high=100_000)
    gap: float = knob(0.0, "Between arrivals", low=0.0, high=3600.0, unit="s")

    @property
    def speaks(self) -> bool:
        return True

    def requests(self, source: Source, seed: int) -> list[Request]:
        if source.encode is None:
            raise BadInput("workload prompts: the model has no tokenizer; choose another workload")
        prompts = [np.array(source.encode(text), np.int32) for text in self.texts]
        return [
            Request(prompts[i % len(prompts)], source.sampling, i * self.gap)
            for i in range(len(prompts) * self.repeat)
        ]
