"""Flops and bytes of an RMS norm by shape."""

from engine.kernels.operator import Arguments, Work


def flops(rows: int, width: int) -> int:
    """Square, add, scale and weigh each number."""
    return 4 * rows * width


def bytes(rows: int, width: int, number: int = 4) -> int:
    """Read rows of `number`-byte numbers once, write float32 once, read the weight once."""
    return (number + 4) * rows * width + 4 * width


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments."""
    x = arguments["x_TC"]
    width = x.shape[-1]
    rows = x.numel() // width
    return Work(flops(rows, width), {"memory": bytes(rows, width, x.element_size())}, rows)
