"""N-gram drafts: prompt lookup, which takes what followed a request's last tokens before."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.speculation import Drafting

if TYPE_CHECKING:
    from engine.kernels.drafts.lookup import Places


class Ngram(Drafting):
    """Prompt lookup: what followed the last tokens where they stood before (Saxena, 2023).

    A modelled run, whose tokens mean nothing, drafts as many as it may.
    """

    kind: Literal["ngram"] = "ngram"
    longest: int = knob(3, "Last tokens looked up at most", low=1, high=16, unit="tokens")
    shortest: int = knob(2, "Last tokens that must stand there", low=1, high=16, unit="tokens")

    def propose(
        self, tokens_RW: np.ndarray, rows_D: np.ndarray, known_R: np.ndarray, places: "Places",
        drafts_DK: np.ndarray, parents_DK: np.ndarray,
    ) -> None:  # fmt: skip
        from engine.kernels.drafts import lookup, trees  # bring numba

        own, span = (tokens_RW, rows_D, known_R), (self.shortest, self.longest)
        if self.branches == 1:
            lookup.look_up(*own, *places, *span, drafts_DK)
        else:
            trees.look_up(*own, *span, self.branches, drafts_DK, parents_DK)
