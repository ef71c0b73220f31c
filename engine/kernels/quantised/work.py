"""Flops and bytes of a linear layer with a quantised weight."""

from engine.kernels.matmul import work as plain
from engine.kernels.operator import Arguments, Work
from engine.kernels.quantised.pack import Packed, pack


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments: packed words, scales and zeros are read once."""
    x, weight = arguments["x_MK"], arguments["weight"]
    packed = weight if isinstance(weight, Packed) else pack(weight)
    rows, outputs, inputs = x.shape[0], packed.outputs, packed.inputs
    moved = packed.bytes + plain.bytes(rows, outputs, inputs, 0, x.element_size())
    return Work(plain.flops(rows, outputs, inputs), {"memory": moved})
