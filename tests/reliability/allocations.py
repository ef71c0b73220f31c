"""A hook on allocation: the k-th array that a thread asks numpy or torch for is refused."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

ASKED = {
    np: ("zeros", "empty", "full", "ones", "concatenate", "append", "arange", "repeat", "cumsum",
         "unique", "flatnonzero", "where", "ascontiguousarray", "array", "asarray", "zeros_like"),
    torch: ("zeros", "empty", "full", "cat", "arange", "from_numpy", "tensor", "empty_like",
            "zeros_like"),
}  # fmt: skip


class Allocations:
    """Counts what the thread whose name begins with `thread` asks for, while armed."""

    def __init__(self, monkeypatch: Any, thread: str) -> None:
        self.thread, self.count, self.refuse, self.armed = thread, 0, 0, False
        for module, names in ASKED.items():
            for name in names:
                monkeypatch.setattr(module, name, self._hooked(getattr(module, name)))

    def arm(self, refuse: int) -> None:
        """From now on count; refuse the one of that number (0: none)."""
        self.count, self.refuse, self.armed = 0, refuse, True

    def _hooked(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*given: Any, **named: Any) -> Any:
            if self.armed and threading.current_thread().name.startswith(self.thread):
                self.count += 1
                if self.count == self.refuse:
                    raise MemoryError(f"allocation {self.count}")
            return make(*given, **named)

        return asked
