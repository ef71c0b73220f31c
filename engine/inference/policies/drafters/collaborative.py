"""Collaborative drafting: several specialised models draft for the requests they are best at.

After CoSine (Collaborative Speculative Inference, 2025): drafting models lie on cheap nodes of
their own. Each request is routed to those that have drafted best for it; of what these would say
next the likeliest, by whoever is surest of it, is the next level of one tree, which all of them go
on from. The target verifies one group of requests while the nodes draft for the other
(`batching` alternating).
"""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.speculation import Collaborating, Drafting

IDLE = 0.05  # of a step's seconds that the target may wait for drafts before they are cut


class Collaborative(Drafting):
    """Drafts of several models fused into one tree. On one machine they draft in turn; which nodes
    work beside the target is on the virtual clock alone."""

    kind: Literal["collaborative"] = "collaborative"
    models: tuple[str, ...] = knob(
        ("stdlib-draft-1m", "stdlib-draft-windows", "stdlib-draft-formats"),
        "Models that draft, each a shipped one, a folder, or a zoo name",
    )
    branches: int = knob(
        2, "Drafts that may stand side by side: 1 is a chain, more a tree, whose paths are "
        "verified in the same pass, each token seeing its own ancestors", low=1, high=16,
    )  # fmt: skip
    routed: int = knob(2, "Models that draft together for a request", low=1, high=16)
    adaptive: bool = knob(
        False, "Drafts follow the load: one fewer after a step in which the target waited for "
        "them, one more after one in which it did not, up to `tokens`"
    )  # fmt: skip
    found: float = knob(
        0.9, "Modelled runs: share of requests whose specialist is among those routed to",
        low=0.0, high=1.0,
    )  # fmt: skip
    apart: float = knob(
        0.5, "Modelled runs: share of drafts that are right where the specialist is not asked",
        low=0.0, high=1.0,
    )  # fmt: skip
    node: str = knob("", "Modelled runs: device of each model; empty: one like the target's")
    exchange: float = knob(
        100e-6, "Modelled runs: time to tell the other nodes a level of the tree, or the target "
        "all of it", low=0.0, high=1.0, unit="s",
    )  # fmt: skip
    collaboration_fault: Literal["none", "misrouted", "in_turn", "contrary"] = knob(
        "none", "What goes wrong: requests go to the models that draft worst for them, nodes draft "
        "only while the target waits, or drafts grow where the target waits for them",
        group="faults",
    )  # fmt: skip

    @property
    def draft_model(self) -> str:
        return self.models[0] if self.models else ""

    def next_length(self, length: int, waited: float) -> int:
        if not self.adaptive:
            return self.drafts
        late = waited > IDLE
        late = late != (self.collaboration_fault == "contrary")
        return max(1, length - 1) if late else min(self.drafts, length + 1)

    @property
    def drafts_on(self) -> str:
        return self.node

    @property
    def collaborates(self) -> Collaborating:
        misrouted = self.collaboration_fault == "misrouted"
        return Collaborating(
            self.models, min(self.routed, len(self.models)), misrouted,
            0.0 if misrouted else self.found, self.apart, self.node, self.exchange,
            self.collaboration_fault == "in_turn",
        )  # fmt: skip
