"""Draft model: a smaller model proposes the tokens that the target verifies."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.speculation import Drafting


class DraftModel(Drafting):
    """A smaller model drafts, over pages of its own under the same block table
    (Leviathan et al., arXiv 2211.17192)."""

    kind: Literal["draft_model"] = "draft_model"
    model: str = knob("stdlib-draft-distilled", "A shipped model, a folder, or a zoo name")

    @property
    def draft_model(self) -> str:
        return self.model
