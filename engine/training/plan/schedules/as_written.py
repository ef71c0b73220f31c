"""A plan that a person wrote, pasted or edited."""

from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.plan.actions import Plan, read
from engine.training.plan.check import checked
from engine.training.plan.csv_file import from_csv
from engine.training.plan.schedule import Pipe, PipelineSchedule

TWO_RANKS = "0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1"


class AsWritten(PipelineSchedule):
    """Actions such as `0F0 0I0 0W0`, ranks apart by `;` or new lines; checked before it runs.

    Text with commas is read as a schedule file of PyTorch's.
    """

    kind: Literal["as_written"] = "as_written"
    text: str = knob(TWO_RANKS, "actions of each rank, ranks apart by ; (or PyTorch's file)")

    def plan(self, pipe: Pipe) -> Plan:
        foreign = "," in self.text
        written = checked(from_csv(self.text) if foreign else read(self.text.replace(";", "\n")))
        asked, found = (pipe.ranks, pipe.microbatches), (len(written.ranks), written.microbatches)
        if asked != found:
            raise BadInput(
                f"plan as written: it has {found[0]} ranks and {found[1]} microbatches; set "
                f"ranks={found[0]} and microbatches={found[1]}"
            )
        return written
