"""Flops and bytes of an RMS norm by shape."""


def flops(rows: int, width: int) -> int:
    """Square, add, scale and weigh each number."""
    return 4 * rows * width


def bytes(rows: int, width: int) -> int:
    """Read and write float32 rows once, read the weight once."""
    return 4 * (2 * rows * width + width)
