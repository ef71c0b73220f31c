"""The task's own checker: what it accepts is right."""

from typing import Literal

from engine.reasoning.repeated_sampling.verifier import Verifier
from engine.tasks.task import Problem


class Checker(Verifier):
    """Accepts right answers and no others, as a proof checker or hidden tests do."""

    kind: Literal["checker"] = "checker"

    def accepts(self, problem: Problem, text: str) -> bool:
        return problem.check(text).right
