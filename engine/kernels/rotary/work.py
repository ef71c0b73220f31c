"""Flops and bytes of a rotation by shape."""


def flops(tokens: int, heads: int, dim: int) -> int:
    """Two products and a sum for each number."""
    return 3 * tokens * heads * dim


def bytes(tokens: int, heads: int, dim: int) -> int:
    """Read and write float32 heads once, read each token's cosines and sines once."""
    return 4 * (2 * tokens * heads * dim + tokens * dim)
