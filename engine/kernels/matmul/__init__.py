"""Products with a linear layer's weight: `pack` once, `matmul` often."""

from engine.kernels.matmul.pack import Packed, pack
from engine.kernels.matmul.panels_cpu import matmul

__all__ = ["Packed", "matmul", "pack"]
