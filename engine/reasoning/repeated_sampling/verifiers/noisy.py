"""A verifier that errs: tests that let wrong programs pass, or refuse right ones."""

import hashlib
from typing import Literal

from engine.core.config import knob
from engine.reasoning.repeated_sampling.verifier import Verifier
from engine.tasks.task import Problem


class Noisy(Verifier):
    """The checker with errors of given rates; the same answer always meets the same error."""

    kind: Literal["noisy"] = "noisy"
    false_accept: float = knob(0.05, "Share of wrong answers that pass", low=0.0, high=1.0)
    false_refuse: float = knob(0.0, "Share of right answers that do not", low=0.0, high=1.0)

    def accepts(self, problem: Problem, text: str) -> bool:
        verdict = problem.check(text)
        digest = hashlib.sha256(f"{problem.key}\n{verdict.answer or text}".encode()).digest()
        draw = int.from_bytes(digest[:8], "big") / 2**64
        return draw >= self.false_refuse if verdict.right else draw < self.false_accept
