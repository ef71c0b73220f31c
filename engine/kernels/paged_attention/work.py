"""Flops and bytes of paged attention by shape."""

from collections.abc import Sequence


def visible(new: int, context: int, window: int = 0) -> int:
    """Query-key pairs of a sequence whose last `new` tokens look back over `context` tokens."""
    seen = range(context - new + 1, context + 1)
    return sum(min(keys, window) if window else keys for keys in seen)


def flops(
    news: Sequence[int], contexts: Sequence[int], heads: int, dim: int, window: int = 0
) -> int:
    """Scores and weighted values of every visible pair, for all sequences."""
    pairs = sum(visible(n, c, window) for n, c in zip(news, contexts, strict=True))
    return 4 * pairs * heads * dim


def bytes(
    news: Sequence[int],
    contexts: Sequence[int],
    heads: int,
    kv_heads: int,
    dim: int,
    cache: int = 4,
) -> int:
    """Read keys and values once (`cache` bytes a number), queries once; write outputs once."""
    return 2 * sum(contexts) * kv_heads * dim * cache + 2 * sum(news) * heads * dim * 4
