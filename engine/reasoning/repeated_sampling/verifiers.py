"""Verifiers: they accept or refuse a sampled answer, without being told the right one."""

import hashlib
from abc import abstractmethod
from typing import Literal

from engine.core.config import Policy, knob
from engine.tasks.task import Problem


class Verifier(Policy):
    """Judges answers. Frozen and stateless."""

    folder = "engine.reasoning.repeated_sampling.verifiers"

    @abstractmethod
    def accepts(self, problem: Problem, text: str) -> bool:
        """Whether `text` counts as solving `problem`; the same for the same text."""


class Checker(Verifier):
    """Accepts right answers and no others, as a proof checker or hidden tests do."""

    kind: Literal["checker"] = "checker"

    def accepts(self, problem: Problem, text: str) -> bool:
        return problem.check(text).right


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


class Readable(Verifier):
    """Accepts whatever can be read as an answer, right or wrong: no verification at all."""

    kind: Literal["readable"] = "readable"

    def accepts(self, problem: Problem, text: str) -> bool:
        return bool(problem.check(text).answer)


class Examples(Verifier):
    """Accepts what passes the examples that a problem shows, which others may yet fail."""

    kind: Literal["examples"] = "examples"

    def accepts(self, problem: Problem, text: str) -> bool:
        return problem.fits(text)
