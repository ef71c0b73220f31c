"""MemoryTracker: bytes of tensors alive while a rank works, counted at every operation of torch.

Works on meta tensors too, so memory of shapes that no machine here could hold is counted, not
estimated. Scratch memory inside an operation is not seen.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryTracker(TorchDispatchMode):
    """`alive` bytes now and `peak` bytes at most, of what was made under it or given to `note`.

    `told` is called with the bytes alive whenever they change.
    """

    def __init__(self, told: Callable[[int], object] | None = None) -> None:
        super().__init__()
        self.alive, self.peak, self._told = 0, 0, told
        self._seen: set[int] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch loads its compiler, seconds in every rank, to keep it off code it never sees.
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        self.note(tree_leaves(made))
        return made

    def note(self, values: Iterable[object]) -> None:
        """Count the tensors among `values`, each storage once, until it goes."""
        for value in values:
            if not isinstance(value, Tensor):
                continue
            storage = value.untyped_storage()
            place, size = storage._cdata, storage.nbytes()
            if place not in self._seen:
                self._seen.add(place)
                self.alive += size
                self.peak = max(self.peak, self.alive)
                weakref.finalize(storage, self._gone, place, size)
                if self._told is not None:
                    self._told(self.alive)

    def _gone(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self.alive -= size
        if self._told is not None:
            self._told(self.alive)
