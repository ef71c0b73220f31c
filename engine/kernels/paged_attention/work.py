"""Flops and bytes of paged attention by shape."""

from collections.abc import Sequence

from engine.kernels.operator import Arguments, Work


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


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments; an exponential for each visible pair and query head."""
    q, k, v = (arguments[name] for name in ("q_THD", "k_PSGD", "v_PSGE"))
    start, contexts = arguments["query_start_B1"].tolist(), arguments["context_B"].tolist()
    news = [b - a for a, b in zip(start[:-1], start[1:], strict=True)]
    window, heads, (G, D), E = arguments.get("window", 0), q.shape[1], k.shape[2:], v.shape[-1]
    pairs = heads * sum(visible(n, c, window) for n, c in zip(news, contexts, strict=True))
    kept = sum(min(c, window + n - 1) if window else c for n, c in zip(news, contexts, strict=True))
    memory = kept * G * (D + E) * k.element_size() + q.numel() * q.element_size()
    return Work(2 * pairs * (D + E), {"memory": memory + 4 * sum(news) * heads * E}, pairs)
