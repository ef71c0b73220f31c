"""The shelf: runs an app keeps for looking at again and comparing, by name."""

import threading
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.file import load
from engine.core.run import Run

KEEP = 24  # runs; the oldest go first


class Shelf:
    """Named runs, recorded or live, shared by the pages of one app."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.version = 0  # grows with every change; readers look at it
        self._lock = threading.Lock()

    def keep(self, run: Run, name: str) -> str:
        """Put a run on the shelf under `name` (numbered where taken); returns the name it got."""
        with self._lock:
            taken = next((n for n, kept in self.runs.items() if kept is run), None)
            if taken is not None:
                return taken
            unique, number = name, 2
            while unique in self.runs:
                unique, number = f"{name} ({number})", number + 1
            self.runs[unique] = run
            while len(self.runs) > KEEP:
                del self.runs[next(iter(self.runs))]
            self.version += 1
            return unique

    def open(self, path: str | Path) -> str:
        """Read a run file onto the shelf and return its name. Raises BadInput."""
        run = Run(load(path))
        run.path = Path(path)
        return self.keep(run, Path(path).name)

    def get(self, name: str) -> Run:
        """The run of that name. Raises BadInput listing what there is."""
        try:
            return self.runs[name]
        except KeyError:
            there = ", ".join(self.runs) or "the shelf is empty"
            raise BadInput(f"run {name!r}: not on the shelf; {there}") from None
