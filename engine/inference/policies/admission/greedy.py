"""Greedy admission: whatever fits now."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policy import Admission, Need, View
from engine.inference.request import Request


class Greedy(Admission):
    """Admit when the prompt fits now; running out later is preemption's business."""

    kind: Literal["greedy"] = "greedy"
    spare: float = knob(
        0.01, "Share of all pages to leave free for those who run", low=0.0, high=0.9
    )

    def admits(self, request: Request, need: Need, view: View) -> bool:
        alone = not len(view.decoding) and not view.prefilling
        return alone or view.pages_free - need.now >= self.spare * view.pages
