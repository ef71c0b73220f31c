"""Requests of an earlier run once more: the same prompts, arrivals and answer lengths."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.core.config import Config, knob
from engine.inference.request import Request, TokenId
from engine.inference.synthetic import LONGEST
from engine.inference.workload import Source, Workload


class Asked(Config):
    """One request as it was, and how long its answer became."""

    prompt: Annotated[tuple[TokenId, ...], Field(min_length=1)] = knob(doc="Token numbers")
    output: int = knob(1, "Answer length", low=1, high=LONGEST, unit="tokens")
    arrival: float = knob(0.0, "When", low=0.0, high=1e9, unit="s")
    user: str = knob("", "Who asked")
    priority: int = knob(0, "Higher goes first", low=-(2**31), high=2**31)
    salt: str = knob("", "Only requests of one salt share prefixes")


class Replay(Workload):
    """Literal requests whose answers have exactly the stated lengths."""

    kind: Literal["replay"] = "replay"
    asked: Annotated[tuple[Asked, ...], Field(min_length=1)] = knob(
        (Asked(prompt=(1, 2, 3, 4), output=8),), "The requests"
    )

    def requests(self, source: Source, seed: int) -> list[Request]:
        return [
            source.request(
                np.array(one.prompt, np.int32) % source.vocab,
                one.output,
                one.arrival,
                user=one.user,
                priority=one.priority,
                salt=one.salt,
            )
            for one in sorted(self.asked, key=lambda one: one.arrival)
        ]


def replay(requests: list[Request], answers: list[int]) -> Replay:
    """The workload that asks `requests` again, to be answered with `answers` tokens each.

    Requests without an answer are left out.
    """
    return Replay(
        asked=tuple(
            Asked(
                prompt=tuple(request.prompt.tolist()),
                output=answer,
                arrival=request.arrival,
                user=request.user,
                priority=request.priority,
                salt=request.salt,
            )
            for request, answer in zip(requests, answers, strict=True)
            if answer > 0
        )
    )
