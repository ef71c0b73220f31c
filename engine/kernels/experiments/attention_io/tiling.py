"""What a tiling of attention is: an order of loads, sums and stores that fits M words."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from engine.core.config import Policy
from engine.core.errors import BadInput
from engine.kernels.experiments.attention_io.memory import Counted, TwoLevelMemory


class Tiling(Policy):
    """One algorithm for softmax(Q Kᵀ / √C) V on a memory of two levels."""

    folder: ClassVar[str] = "engine.kernels.experiments.attention_io.tilings"
    spills: ClassVar[bool] = False  # whether scores travel to slow memory

    @abstractmethod
    def smallest(self, width: int) -> int:
        """Fewest words of fast memory it can work with."""

    @abstractmethod
    def run(self, memory: TwoLevelMemory) -> Counted:
        """Compute attention in `memory` and say what moved."""

    def attend(
        self,
        q_NC: np.ndarray,
        k_NC: np.ndarray,
        v_NC: np.ndarray,
        capacity: int,
        evicts: bool = True,
    ) -> Counted:
        """Attention of [N, C] with `capacity` words of fast memory.

        Raises BadInput where the tiling cannot work in so few.
        """
        width = q_NC.shape[1]
        if capacity < self.smallest(width):
            raise BadInput(
                f"tiling {self.kind}: needs {self.smallest(width)} words of fast memory at width "
                f"{width}, not {capacity}; give it more"
            )
        return self.run(TwoLevelMemory(q_NC, k_NC, v_NC, capacity, evicts, self.spills))
