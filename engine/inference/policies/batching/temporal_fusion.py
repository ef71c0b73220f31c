"""Temporal fusion: generation of every request fused into one step, joined at any token.

After Flover's abstract (2023): a request's prompt is processed whole on arrival, its first token
joins the fused batch at once, and when a request ends the last row of the batch moves into its
place, so the buffers stay dense and the ended request's memory is free at that step.
"""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View


class TemporalFusion(Batching):
    """Each step generates one token for every request and computes whole prompts beside them."""

    kind: Literal["temporal_fusion"] = "temporal_fusion"
    fault: Literal["none", "tokens_left", "ended_stay", "tokens_lost"] = knob(
        "none", "What goes wrong when a request ends: the row that moves in leaves its tokens "
        "behind, or the ended request keeps its row; or at every step: of the fused rows' tokens "
        "only one's arrives, the others are computed again", group="faults",
    )  # fmt: skip

    @property
    def tells_moves(self) -> bool:
        return True

    @property
    def forgets_tokens(self) -> bool:
        return self.fault == "tokens_left"

    @property
    def loses_tokens(self) -> bool:
        return self.fault == "tokens_lost"

    @property
    def holds_until_all_end(self) -> bool:
        return self.fault == "ended_stay"

    def mixes(self, view: View) -> tuple[Mix, ...]:
        left = max(0, view.budget - len(view.decoding))
        return (Mix(None, left, whole_prompts=True, admit=view.max_running),)
