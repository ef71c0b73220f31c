"""Split: the one decision of a decode policy, where to cut a batch's list of key tiles."""

from abc import abstractmethod

from engine.core.config import Policy
from engine.kernels.paged_attention.plan import Batch, Ints, Plan, plan


class Split(Policy):
    """Cuts the tile list into pieces of work."""

    folder = "engine.kernels.paged_attention.policies"

    @property
    def fused(self) -> bool:
        """Whether merges belong to the same kernel, or to one after it."""
        return False

    @abstractmethod
    def cuts(self, batch: Batch, workers: int) -> Ints:
        """Rising places in the tile list, from 0 to its length; ends of heads are cut anyway."""

    def plan(self, batch: Batch, workers: int) -> Plan:
        """The work items of a batch for that many workers."""
        return plan(batch, self.cuts(batch, workers), workers, self.fused)
