"""A verifier that looks at form alone."""

from typing import Literal

from engine.reasoning.repeated_sampling.verifier import Verifier
from engine.tasks.task import Problem


class Readable(Verifier):
    """Accepts whatever can be read as an answer, right or wrong: no verification at all."""

    kind: Literal["readable"] = "readable"

    def accepts(self, problem: Problem, text: str) -> bool:
        return bool(problem.check(text).answer)
