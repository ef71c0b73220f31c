"""Which positions of a sequence each rank owns."""

from abc import abstractmethod

from engine.core.config import Policy
from engine.core.errors import BadInput


class Layout(Policy):
    """Concrete ones lie one to a file in `layouts`."""

    folder = "engine.training.context_parallel.layouts"

    @abstractmethod
    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        """The positions of a rank, ascending, all ranks equally many.

        Raises BadInput where `tokens` cannot be dealt evenly.
        """


def shared_out(tokens: int, parts: int, kind: str) -> int:
    """Tokens of each of `parts`. Raises BadInput where they do not come out even."""
    if tokens % parts:
        raise BadInput(
            f"tokens {tokens}: do not divide into {parts} parts ({kind}); "
            f"take {max(1, tokens // parts) * parts} or {(tokens // parts + 1) * parts}"
        )
    return tokens // parts
