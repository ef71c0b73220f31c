"""Reading policies: when a thought may begin while input still comes in, and what it sees of it."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

from engine.core.config import Policy, knob


class ReadingPolicy(Policy):
    """Decides for each thought. Frozen and stateless."""

    folder = "engine.reasoning.streaming_thinking.policies"

    @abstractmethod
    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """Tokens of the input that thought `unit` sees all the time; None: it has to wait.

        `ends[k]`: tokens up to the end of clause k, the last one being all there are. `arrived`:
        tokens that have arrived. Asked again until it does not have to wait.
        """


class Arrived(ReadingPolicy):
    """A thought begins with its clause, but sees whatever else is there by then."""

    kind: Literal["arrived"] = "arrived"

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """What has arrived, once its clause has: what a thought sees depends on the pace."""
        return arrived if arrived >= ends[min(unit, len(ends) - 1)] else None


class Batch(ReadingPolicy):
    """No thought before the input is whole; every thought sees all of it."""

    kind: Literal["batch"] = "batch"

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """All of the input, once it has arrived."""
        return ends[-1] if arrived >= ends[-1] else None


class Streaming(ReadingPolicy):
    """A thought sees the input up to its clause, however much more has arrived."""

    kind: Literal["streaming"] = "streaming"

    behind: int = knob(
        0, "Clauses after its own that a thought waits for without seeing them", low=0, high=26,
        unit="clauses",
    )  # fmt: skip

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """The end of its clause, once that has arrived and as many behind it as are waited for."""
        last = len(ends) - 1
        ready = arrived >= ends[min(unit + self.behind, last)]
        return ends[min(unit, last)] if ready else None
