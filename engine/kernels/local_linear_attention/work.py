"""Flops and bytes of local linear attention by shape, matrix-free and with matrices formed."""

from engine.kernels.operator import Arguments, Work

STEPS = 16  # conjugate-gradient steps assumed where nobody counted them


def pairs(heads: int, time: int) -> int:
    """Query-key pairs seen."""
    return heads * time * (time + 1) // 2


def matrix_free_flops(heads: int, time: int, key: int, value: int, steps: int) -> int:
    """Scores, mean, slopes and values of each pair, and two products with keys a step."""
    return pairs(heads, time) * (6 * key + 2 * value + steps * 4 * key)


def formed_flops(heads: int, time: int, key: int, value: int) -> int:
    """A covariance from all pairs of a query, and its factorisation."""
    solve = 2 * key**3 // 3
    return pairs(heads, time) * (6 * key + 2 * value + 2 * key**2) + heads * time * solve


def formed_bytes(heads: int, time: int, key: int, number: int = 4) -> int:
    """What the matrices of all queries take: the Θ(T·D²) of the naive algorithm."""
    return number * heads * time * key * key


def tile_bytes(heads: int, time: int, queries: int, number: int = 4) -> int:
    """What a tile's weights, slopes and their product take."""
    return 3 * number * heads * queries * time


def bytes(heads: int, time: int, key: int, value: int, number: int = 4) -> int:
    """Queries, keys and values read once, float32 outputs written once."""
    return heads * time * (number * (2 * key + value) + 4 * value)


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments, `STEPS` steps a query."""
    q, v = arguments["q_BHTD"], arguments["v_BHTE"]
    batch, heads, time, key = q.shape
    shape = (batch * heads, time, key, v.shape[-1])
    moved = bytes(*shape, q.element_size())
    return Work(matrix_free_flops(*shape, STEPS), {"memory": moved}, pairs(batch * heads, time))
