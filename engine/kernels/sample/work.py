"""Flops and bytes of sampling by shape."""

from engine.kernels.operator import Arguments, Work


def flops(rows: int, vocab: int) -> int:
    """A comparison, a difference, an exponential and a sum for each logit, counted as one each."""
    return 4 * rows * vocab


def bytes(rows: int, vocab: int, number: int = 4) -> int:
    """Read the logits of `number` bytes each once."""
    return number * rows * vocab


def work(arguments: Arguments) -> Work:
    """Of the operator's arguments; an exponential for each logit."""
    logits = arguments["logits_RV"]
    rows, vocab = logits.shape
    moved = bytes(rows, vocab, logits.element_size())
    return Work(flops(rows, vocab), {"memory": moved}, logits.numel())
