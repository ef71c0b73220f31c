"""Flops and bytes of SwiGLU by shape."""

from engine.kernels.operator import Arguments, Work


def flops(rows: int, width: int) -> int:
    """Exponential, sum, quotient and product for each number, counted as one each."""
    return 4 * rows * width


def bytes(rows: int, width: int, number: int = 4) -> int:
    """Read both inputs of `number`-byte numbers, write one float32 result."""
    return (2 * number + 4) * rows * width


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments; an exponential for each number."""
    gate = arguments["gate_TC"]
    rows, width = gate.shape
    moved = bytes(rows, width, gate.element_size())
    return Work(flops(rows, width), {"memory": moved}, gate.numel())
