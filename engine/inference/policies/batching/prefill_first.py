"""Prompts first, alone and whole; decode when there is none to compute (as early vLLM did)."""

from typing import Literal

import numpy as np

from engine.inference.policies.policy import Batching, Mix, View

NOBODY = np.zeros(0, np.int64)


class PrefillFirst(Batching):
    """A step computes prompts or decodes, never both; prompts come first."""

    kind: Literal["prefill_first"] = "prefill_first"

    def mixes(self, view: View) -> tuple[Mix, ...]:
        return (Mix(NOBODY, view.budget, admit=view.max_running), Mix())
