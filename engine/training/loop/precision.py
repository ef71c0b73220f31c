"""Mixed precision: the forward in bfloat16 where a processor has instructions for it, else float32.

bfloat16 without instructions for it (x86 below AVX-512) is taken apart number by number: 18 times
slower than float32 where measured (AVX2). There float32 is taken instead.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

NONE = ("DEFAULT", "NO AVX", "AVX2")  # what torch calls processors without such products
INSTEAD = "products in float32: this processor has none of bfloat16, or only slow ones"


def narrow(precision: str, kind: str = "cpu") -> bool:
    """Whether products are taken in bfloat16 where `precision` asks for it, on that device."""
    if kind != "cpu":  # every GPU that this torch supports has them
        return precision == "bfloat16"
    return precision == "bfloat16" and torch.backends.cpu.get_cpu_capability() not in NONE


def products(precision: str, kind: str = "cpu") -> AbstractContextManager[None]:
    """The context of a forward whose products have `precision`, as far as this processor goes."""
    if not narrow(precision, kind):
        return nullcontext()
    return torch.autocast(kind, torch.bfloat16)


def at_precision(precision: str, act: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """`act` with its products so, on the device of what it is given."""

    def done(x: Tensor) -> Tensor:
        with products(precision, x.device.type):
            return act(x)

    return done
