"""Shape of layers with feed-forwards of two sizes, and who says which one a token takes."""

from dataclasses import dataclass
from typing import Literal

LETTERS = "-sB"  # of a route, one for each layer: neither, small, big
DuoFault = Literal["none", "swapped", "shifted", "reversed", "computed", "late"]


@dataclass(frozen=True, slots=True)
class Duo:
    """A small feed-forward of width `small` beside the big one of every layer, of which a token
    takes one or neither (Duo-LLM, arXiv 2410.10846).

    The router gives each token `big` big ones; `routes` in its place say them by position, again
    from the first behind the last (`LETTERS`).
    """

    small: int
    big: int = 1
    routes: tuple[str, ...] = ()
    fault: DuoFault = "none"  # what goes wrong

    def used(self, big: bool, small: bool, layers: int) -> float:
        """Of all layers of all tokens, over many tokens, how much takes the big or the small one;
        with neither, how much asks the router."""
        if not (big or small):
            return float(not self.routes)
        if self.routes:
            letter = "B" if big else "s"
            return sum(r.count(letter) for r in self.routes) / (len(self.routes) * layers)
        return (self.big if big else layers - self.big) / layers
