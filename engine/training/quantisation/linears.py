"""A model's linear layers, watched or replaced while the plain reference model runs."""

from collections.abc import Callable, Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Linears(TorchFunctionMode):
    """Within it, every product with a weight of `names` is given by `called(name, x, weight)`."""

    def __init__(
        self, weights: Mapping[str, Tensor], called: Callable[[str, Tensor, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.names = {id(tensor): name for name, tensor in weights.items() if "proj" in name}
        self.called = called

    def __torch_function__(
        self, func: Any, kinds: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = self.names.get(id(args[1])) if func is F.linear and len(args) > 1 else None
        if name is None:
            return func(*args, **(kwargs or {}))
        return self.called(name, args[0], args[1])
