"""Requests of an earlier run once more: the same prompts, arrivals and answer lengths."""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.inference.requests.request import Request, TokenId
from engine.inference.workloads.synthetic import LONGEST
from engine.inference.workloads.workload import Source, Workload


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


def replay(requests: list[Request], answers: Mapping[int, int]) -> Replay:
    """The workload that asks `requests` again, each answered with `answers[its place]` tokens.

    Requests without an answer are left out.
    """
    asked = tuple(
        Asked(
            prompt=tuple(request.prompt.tolist()),
            output=answers[place],
            arrival=request.arrival,
            user=request.user,
            priority=request.priority,
            salt=request.salt,
        )
        for place, request in enumerate(requests)
        if answers.get(place)
    )
    if not asked:
        raise BadInput("replay: no request was answered; there is nothing to ask again")
    return Replay(asked=asked)
