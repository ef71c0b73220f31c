"""Zero bubble over two chunks a rank laid out as a V: down the ranks and up again."""

from collections.abc import Iterator
from typing import Literal

from engine.training.pipeline_schedule import Pipe, PipelineSchedule
from engine.training.plan import Action, Kind, Plan, plan

# A pattern's letters: passes of the chunk on the way down, and in capitals on the way up.
PASSES = {"f": Kind.F, "i": Kind.I, "w": Kind.W}


class ZeroBubbleV(PipelineSchedule):
    """ZB-V (Qi et al., arXiv 2401.10241, section 4): no bubble for equal passes in 1F1B's memory.

    Rank r has stages r and 2p - 1 - r, so both ends of the model are on the first rank.
    """

    kind: Literal["zb_v"] = "zb_v"

    def plan(self, pipe: Pipe) -> Plan:
        return plan(self._rank(rank, pipe) for rank in range(pipe.ranks))

    def _rank(self, rank: int, pipe: Pipe) -> Iterator[Action]:
        """Fewer microbatches than fill the pipe are the full order with the rest left out."""
        stages = {False: rank, True: 2 * pipe.ranks - 1 - rank}
        counts: dict[str, int] = {}
        for letter in pattern(rank, pipe.ranks, max(pipe.microbatches, 2 * pipe.ranks - 1)):
            microbatch = counts.get(letter, 0)
            counts[letter] = microbatch + 1
            if microbatch < pipe.microbatches:
                yield Action(stages[letter.isupper()], PASSES[letter.lower()], microbatch)


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
