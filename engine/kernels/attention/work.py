"""Flops, exponentials and bytes of attention by shape, and the traffic of its tiling by level."""

from engine.kernels.attention.split import all_pairs
from engine.kernels.operator import Arguments, Work


def flops(pairs: int, heads: int, dim: int, value_dim: int) -> int:
    """Multiply-adds of both products over the visible pairs, two flops each."""
    return 2 * pairs * heads * (dim + value_dim)


def backward_flops(pairs: int, heads: int, dim: int, value_dim: int) -> int:
    """Backward's five products: scores again, their gradient, and the gradients of q, k and v."""
    return 2 * pairs * heads * (3 * dim + 2 * value_dim)


def bytes(
    queries: int, keys: int, heads: int, kv_heads: int, dim: int, value_dim: int, number: int = 4
) -> int:
    """Compulsory traffic: q, k, v read and o written once in `number`-byte numbers, lse once."""
    read = queries * heads * dim + keys * kv_heads * (dim + value_dim)
    return number * (read + queries * heads * value_dim) + 4 * queries * heads


def tile_bytes(
    pairs: int, queries: int, heads: int, dim: int, value_dim: int, block: int, number: int = 4
) -> float:
    """What a core reads past its own tile: each block of `block` queries reads its visible keys and
    values once, its queries once, and writes its outputs once. Falls as 1 / block."""
    streamed = pairs * heads * (dim + value_dim) / block
    return number * (streamed + queries * heads * (dim + value_dim))


def non_matmul_flops(pairs: int, tiles: int, heads: int, block: int, value_dim: int) -> int:
    """Flops outside the products, forward: scale, maximum, difference and sum for each pair of a
    head (its exponential is counted apart), and the rescaling of a block's result in each of its
    `tiles` tiles of keys."""
    return heads * (4 * pairs + tiles * block * value_dim)


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments, forward."""
    (T, H, D), (S, G, E) = arguments["q_THD"].shape, arguments["v_SGE"].shape
    queries, keys = (arguments[name].diff().tolist() for name in ("query_start_B1", "key_start_B1"))
    seen = all_pairs(queries, keys, arguments.get("causal", True), arguments.get("window", 0))
    number = arguments["q_THD"].element_size()
    memory = bytes(T, S, H, G, D, E, number)
    return Work(flops(seen, H, D, E), {"memory": memory}, seen * H)


def tiled_work(arguments: Arguments, block: int, level: str, number: int = 4) -> Work:
    """As `work`, with the traffic of tiles of `block` queries at `level`."""
    least = work(arguments)
    (T, H, D), E = arguments["q_THD"].shape, arguments["v_SGE"].shape[-1]
    streamed = tile_bytes(int(least.specials) // H, T, H, D, E, block, number)
    return Work(least.flops, {**least.bytes, level: streamed}, least.specials)
