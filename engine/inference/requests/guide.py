"""Guide: the grammar that an answer is held to, as a mask over the next token."""

from typing import Protocol

import numpy as np

TANGLED = "the grammar became too complex while it was followed; simplify the schema"


class Guide(Protocol):
    """Where one answer stands in its grammar; engine.models.text.grammar makes them."""

    def forbid(self, scores_V: np.ndarray) -> None:
        """Put -inf, in place, on the logits of tokens that cannot come next."""
        ...

    def take(self, token: int) -> None:
        """`token` has come; once the answer is whole only the model's end token can follow."""
        ...

    @property
    def broken(self) -> bool:
        """The grammar cannot be walked on: the answer ends there, `TANGLED`, and is none."""
        ...

    def fork(self) -> "Guide":
        """The same place, for a second answer that goes on from here."""
        ...
