"""Sandbox: generated programs run in an isolated process; what they do line by line comes back.

Two walls, each whole without the other: an interpreter of a few forms of Python, and a process
without network, files, processes, environment or anything importable, with little time and memory.
Of the second, what a system lacks is missing in `layers`: the first stands on every system.
"""

import json
from collections.abc import Sequence
from functools import cache

from engine.core.confined.children import Children
from engine.core.errors import BadInput
from engine.tasks.sandbox.interpreter import Outcome

OVER = "Limit"  # the error of a program that took more than it may, whichever start it was at


class Sandbox:
    """Runs programs from any thread. Close it when done."""

    def __init__(self) -> None:
        module = "engine.tasks.sandbox.program_child"
        self._children = Children(module, "generated program", isolated=True)
        self.runs = 0  # of a program from a start

    @property
    def layers(self) -> list[str]:
        """What of the process's isolation this system has: limits, namespaces, calls."""
        return self._children.layers

    def run(self, program: str, starts: Sequence[Sequence[int]]) -> list[Outcome]:
        """The program's outcome from each start. Never raises for what a program does."""
        self.runs += len(starts)
        try:
            said = self._children.ask(program=program, starts=[list(start) for start in starts])
        except BadInput:
            return [Outcome([], OVER)] * len(starts)
        return [Outcome(values, error) for values, error in json.loads(said)]

    def close(self) -> None:
        """End the processes."""
        self._children.close()


@cache
def sandbox() -> Sandbox:
    """The process's own, opened with the first program; its children end when this process does."""
    return Sandbox()
