"""Reading policies: when a thought may begin while input still comes in,
and how much of the input it sees."""

from abc import abstractmethod
from collections.abc import Sequence

from engine.core.config import Policy


class ReadingPolicy(Policy):
    """Decides for each thought. Frozen and stateless."""

    folder = "engine.reasoning.reading.policies"

    @abstractmethod
    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """Tokens of the input that thought `unit` sees all the time; None: it has to wait.

        `ends[k]`: tokens up to the end of clause k, the last one being all there are. `arrived`:
        tokens that have arrived. Asked again until it does not have to wait.
        """
