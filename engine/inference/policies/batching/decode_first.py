"""Decode first, then fill the step with prompt chunks (Sarathi-Serve, arXiv 2403.02310)."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View


class DecodeFirst(Batching):
    """Every step decodes all it can; what is left of the token budget goes to prompt chunks."""

    kind: Literal["decode_first"] = "decode_first"
    chunk: int = knob(
        1 << 20, "Prompt tokens in a step at most", low=1, high=1 << 20, unit="tokens", log=True
    )

    def mixes(self, view: View) -> tuple[Mix, ...]:
        left = max(0, view.budget - len(view.decoding))
        return (Mix(None, min(left, self.chunk), admit=view.max_running),)
