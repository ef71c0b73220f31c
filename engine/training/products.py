"""How narrow the matrix products of a training's forward are on this processor.

bfloat16 without instructions for it (x86 below AVX-512) is taken apart number by number: 18 times
slower than float32 where measured (AVX2). There float32 is taken instead.
"""

from contextlib import AbstractContextManager

import torch

NONE = ("DEFAULT", "NO AVX", "AVX2")  # what torch calls processors without such products
INSTEAD = "products in float32: this processor has none of bfloat16, or only slow ones"


def narrow(precision: str) -> bool:
    """Whether products are taken in bfloat16 where `precision` asks for it."""
    return precision == "bfloat16" and torch.backends.cpu.get_cpu_capability() not in NONE


def products(precision: str) -> AbstractContextManager[None]:
    """The context of a forward whose products have `precision`, as far as this processor goes."""
    return torch.autocast("cpu", torch.bfloat16, enabled=narrow(precision))
