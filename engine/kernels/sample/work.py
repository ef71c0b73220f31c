"""Flops and bytes of sampling by shape."""


def flops(rows: int, vocab: int) -> int:
    """A comparison, a difference, an exponential and a sum for each logit, counted as one each."""
    return 4 * rows * vocab


def bytes(rows: int, vocab: int) -> int:
    """Read the float32 logits once."""
    return 4 * rows * vocab
