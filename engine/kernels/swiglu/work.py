"""Flops and bytes of SwiGLU by shape."""


def flops(rows: int, width: int) -> int:
    """Exponential, sum, quotient and product for each number, counted as one each."""
    return 4 * rows * width


def bytes(rows: int, width: int) -> int:
    """Read both float32 inputs, write one result."""
    return 4 * 3 * rows * width
