"""What a verifier is: it accepts or refuses a sampled answer, without being told the right one."""

from abc import abstractmethod

from engine.core.config import Policy
from engine.tasks.task import Problem


class Verifier(Policy):
    """Judges answers; concrete ones lie one to a file in `verifiers`."""

    folder = "engine.reasoning.repeated_sampling.verifiers"

    @abstractmethod
    def accepts(self, problem: Problem, text: str) -> bool:
        """Whether `text` counts as solving `problem`; the same for the same text."""
