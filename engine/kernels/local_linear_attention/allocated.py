"""How many bytes of tensors are alive at most while a function runs, by watching torch's results.

Every operation's result is noted when it is made and when its storage goes; scratch memory inside
an operation is not seen.
"""

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Watch(TorchDispatchMode):
    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self.alive, self.peak = 0, 0
        self.seen = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self.note(tensor.untyped_storage())
        return made

    def note(self, storage: Any) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place in self.seen:
            return
        self.seen.add(place)
        self.alive += size
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self.gone, place, size)

    def gone(self, place: int, size: int) -> None:
        self.seen.discard(place)
        self.alive -= size


def peak_bytes(work: Callable[[], object], inputs: list[Tensor]) -> int:
    """The most bytes alive at once beside `inputs` while `work` runs, its result among them."""
    with _Watch(inputs) as watch:
        found = work()
    del found
    return watch.peak
