"""1F1B over several chunks of layers on each rank: a smaller bubble for more transfers."""

from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule


class Interleaved(PipelineSchedule):
    """Interleaved 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2.2).

    Rank r has stages r, r + p, r + 2p …; microbatches go through a chunk p at a time.
    """

    kind: Literal["interleaved_1f1b"] = "interleaved_1f1b"
    chunks: int = knob(2, "chunks of layers on each rank (v)", low=1, high=128)

    def plan(self, pipe: Pipe) -> Plan:
        p, m = pipe.ranks, pipe.microbatches
        if m % p:
            raise BadInput(
                f"interleaved_1f1b: {m} microbatches do not divide among {p} ranks; "
                f"take {f'{m - m % p} or ' if m > p else ''}{m - m % p + p}"
            )
        return plan(self._rank(rank, p, m) for rank in range(p))

    def _rank(self, rank: int, p: int, m: int) -> list[Action]:
        total = m * self.chunks
        ahead = min(2 * (p - rank - 1) + (self.chunks - 1) * p, total)
        forward = [self._turn(Kind.F, rank, p, number) for number in range(total)]
        backward = [self._turn(Kind.B, rank, p, number) for number in range(total)]
        row = forward[:ahead]
        for number in range(total):
            row += forward[ahead + number : ahead + number + 1]
            row.append(backward[number])
        return row

    def _turn(self, kind: Kind, rank: int, p: int, number: int) -> Action:
        """The `number`-th forward or backward of a rank: p microbatches a chunk, then the next."""
        group, within = divmod(number, p * self.chunks)
        chunk, place = divmod(within, p)
        if kind is Kind.B:
            chunk = self.chunks - 1 - chunk
        return Action(chunk * p + rank, kind, group * p + place)
