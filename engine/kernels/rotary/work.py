"""Flops and bytes of a rotation by shape."""

from engine.kernels.operator import Arguments, Work


def flops(tokens: int, heads: int, dim: int) -> int:
    """Two products and a sum for each number."""
    return 3 * tokens * heads * dim


def bytes(tokens: int, heads: int, dim: int, number: int = 4) -> int:
    """Read `number`-byte heads, cosines and sines once, write float32 heads once."""
    return (number + 4) * tokens * heads * dim + number * tokens * dim


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments."""
    x = arguments["x_THD"]
    tokens, heads, dim = x.shape
    moved = bytes(tokens, heads, dim, x.element_size())
    return Work(flops(tokens, heads, dim), {"memory": moved})
