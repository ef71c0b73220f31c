"""Mirror speculative decoding: the next drafts are made while the target still verifies these.

After Mirror Speculative Decoding (Apple, 2025): the target tells, from an early exit in the middle
of its layers, which tokens it may say next; on a second device the draft model drafts on from each
of them while the target's other layers run. Where the token that the target then says is among
them, the next step's drafts are there; else they are made before it, one device waiting for the
other. Either way they are what the draft model says after that token, so that as many are kept.
"""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.drafters.draft_model import DraftModel
from engine.inference.policies.speculation import Mirrored


class Mirror(DraftModel):
    """A draft model beside the target. On one machine drafts are made in turn; what early exits
    would have told is found and reported."""

    kind: Literal["mirror"] = "mirror"  # type: ignore[assignment]
    early_exit: float = knob(
        0.5, "Share of the target's layers before its early exit", low=0.0, high=1.0
    )
    candidates: int = knob(
        8, "Likeliest tokens of an early exit that are drafted on from", low=1, high=1024
    )
    hit_rate: float = knob(
        0.8, "Modelled runs: share of steps whose next token the early exit had among them",
        low=0.0, high=1.0,
    )  # fmt: skip
    streamed: int = knob(
        1, "Modelled runs: tokens that a pass of the draft model gives (speculative streaming)",
        low=1, high=16,
    )  # fmt: skip
    beside: str = knob("", "Modelled runs: device that drafts; empty: one like the target's")
    exchange: float = knob(
        20e-6, "Modelled runs: time to tell the other device", low=0.0, high=1.0, unit="s"
    )
    mirror_fault: Literal["none", "in_turn", "any_token"] = knob(
        "none", "What goes wrong: the target waits for the drafts, or candidates are drawn at "
        "random", group="faults",
    )  # fmt: skip

    @property
    def drafts_on(self) -> str:
        return self.beside

    @property
    def mirrors(self) -> Mirrored:
        return Mirrored(
            self.early_exit, self.candidates, self.hit_rate, self.streamed, self.exchange,
            self.mirror_fault == "in_turn", self.mirror_fault == "any_token",
        )  # fmt: skip
