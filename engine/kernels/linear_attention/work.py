"""Flops and bytes of gated linear attention by shape and form."""

from engine.kernels.operator import Arguments, Work


def recurrent_flops(heads: int, time: int, key: int, value: int) -> int:
    """Decay, rank-one update and read-out of the state at each token."""
    return 5 * heads * time * key * value


def chunkwise_flops(heads: int, time: int, key: int, value: int, chunk: int) -> int:
    """Scores and weighted values inside chunks (half of each square), state read and written."""
    chunk = min(chunk, time)
    near = time * (chunk + 1) * (key + value)
    return heads * (near + 4 * time * key * value)


def parallel_flops(heads: int, time: int, key: int, value: int) -> int:
    """All scores of the past and the values they weigh."""
    return heads * time * (time + 1) * (key + value)


def bytes(heads: int, time: int, key: int, value: int, number: int = 4) -> int:
    """Queries, keys, gates and values read once, outputs written once; state in and out."""
    return heads * (number * time * (3 * key + value) + 4 * time * value + 8 * key * value)


def softmax_flops(heads: int, time: int, key: int, value: int) -> int:
    """Causal softmax attention of the same shape, for comparison."""
    return parallel_flops(heads, time, key, value)


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments: the recurrent form's flops, the fewest with a state."""
    q, v = arguments["q_BHTK"], arguments["v_BHTV"]
    batch, heads, time, key = q.shape
    shape = (batch * heads, time, key, v.shape[-1])
    moved = bytes(*shape, q.element_size())
    return Work(recurrent_flops(*shape), {"memory": moved}, batch * heads * time * key)
