"""Flops and bytes of a linear layer by shape."""

from engine.kernels.matmul.pack import Packed
from engine.kernels.operator import Arguments, Work


def flops(rows: int, outputs: int, inputs: int) -> int:
    """Multiplications and additions."""
    return 2 * rows * outputs * inputs


def bytes(rows: int, outputs: int, inputs: int, weight_bytes: int = 4, row_bytes: int = 4) -> int:
    """Read the weight and the rows once (bytes a number given), write the float32 result once."""
    return outputs * inputs * weight_bytes + rows * (inputs * row_bytes + outputs * 4)


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments; a packed weight is read as it lies."""
    x, weight = arguments["x_MK"], arguments["weight_NK"]
    rows, inputs = x.shape
    if isinstance(weight, Packed):
        outputs, held = weight.outputs, weight.bytes
        moved = held + bytes(rows, outputs, inputs, 0, x.element_size())
    else:
        outputs = weight.shape[0]
        moved = bytes(rows, outputs, inputs, weight.element_size(), x.element_size())
    return Work(flops(rows, outputs, inputs), {"memory": moved})
