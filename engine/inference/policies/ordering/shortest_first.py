"""Shortest job first, by the work that is known: the prompt, and the answer where its length is."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request


class ShortestFirst(Ordering):
    """The request with least work left goes first."""

    kind: Literal["shortest_first"] = "shortest_first"
    foresight: bool = knob(True, "Count max_tokens as the length of the answer")

    ageing: float = knob(
        0.0, "Tokens by which each second of waiting shortens a request", low=0.0, high=1e6,
        unit="tokens/s",
    )  # fmt: skip

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        known = max(len(request.tokens), len(request.prompt))
        left = len(request.prompt) + request.sampling.max_tokens - known
        work = known + (left if self.foresight else 0)
        return (work + self.ageing * request.arrival,)  # as if all had waited to the same moment
