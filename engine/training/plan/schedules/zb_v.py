"""Zero bubble over two chunks a rank laid out as a V: down the ranks and up again."""

from itertools import count
from typing import Literal

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule

# A pattern's letters: passes of the chunk on the way down, and in capitals on the way up.
PASSES = {"f": Kind.F, "i": Kind.I, "w": Kind.W}


class ZeroBubbleV(PipelineSchedule):
    """ZB-V (Qi et al., arXiv 2401.10241, section 4): no bubble for equal passes in 1F1B's memory.

    Rank r has stages r and 2p - 1 - r, so both ends of the model are on the first rank.
    """

    kind: Literal["zb_v"] = "zb_v"

    def plan(self, pipe: Pipe) -> Plan:
        return plan(self._rank(rank, pipe) for rank in range(pipe.ranks))

    def _rank(self, rank: int, pipe: Pipe) -> list[Action]:
        """Fewer microbatches than fill the pipe are the full order with the rest left out."""
        down, up = rank, 2 * pipe.ranks - 1 - rank
        passes = {letter: (down, kind) for letter, kind in PASSES.items()}
        passes |= {letter.upper(): (up, kind) for letter, kind in PASSES.items()}
        turns = {letter: count() for letter in passes}
        letters = pattern(rank, pipe.ranks, max(pipe.microbatches, 2 * pipe.ranks - 1))
        row = [Action(*passes[letter], next(turns[letter])) for letter in letters]
        return [each for each in row if each.microbatch < pipe.microbatches]


def pattern(rank: int, p: int, m: int) -> str:
    """The order of a rank's passes as letters, m >= 2p - 1 microbatches."""
    above = p - rank
    steady = m - (2 * above - 1 + rank)
    return (
        "f" * (2 * above - 1)
        + "Ff" * rank
        + "FIW" * above
        + "fiwFIW" * steady
        + "iwFIW" * (above - 1)
        + "iI" * rank
        + "iw" * above
        + "W" * rank
        + "w" * rank
    )
