"""What a GPT's training step holds, computes and moves, counted from its shape.

Formulas of Narayanan et al. (arXiv 2104.04473, section 3.1 and appendix) and of Korthikanti et al.
(arXiv 2205.05198, section 4). Letters: b microbatch, s sequence, h hidden, a heads, l layers,
V vocabulary, t tensor-parallel ranks, c context-parallel ranks, each with s / c tokens.
"""

from dataclasses import dataclass
from typing import Literal

Recompute = Literal["none", "selective", "full"]
HALF = 2  # bytes of a 16-bit number


@dataclass(frozen=True)
class Shape:
    """A GPT and how much of it a device sees at once."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int
    sequence: int
    microbatch: int
    tensor: int = 1
    sequence_parallel: bool = False
    recompute: Recompute = "none"
    context: int = 1

    @property
    def tokens(self) -> int:
        """Of a microbatch, on all context ranks."""
        return self.microbatch * self.sequence

    @property
    def own_tokens(self) -> float:
        """Of a microbatch, on one context rank."""
        return self.tokens / self.context

    @property
    def scores_ratio(self) -> float:
        """Attention scores of a layer in units of its b s h: a s / h."""
        return self.heads * self.sequence / self.hidden


def layer_parameters(shape: Shape) -> int:
    """Query, key, value and output, the two of the MLP with their biases, two norms."""
    h = shape.hidden
    return (3 * h * h + 3 * h) + (h * h + h) + (4 * h * h + 4 * h) + (4 * h * h + h) + 2 * 2 * h


def parameters(shape: Shape) -> int:
    """Of the whole model; the logits share the embedding's matrix, positions are learnt."""
    embedding = (shape.vocabulary + shape.sequence) * shape.hidden
    return shape.layers * layer_parameters(shape) + embedding


def scores_flops(shape: Shape) -> float:
    """Forward, one layer and microbatch: scores and their product with the values."""
    return 2 * 2.0 * shape.tokens * shape.sequence * shape.hidden


def layer_flops(shape: Shape) -> float:
    """Forward, one layer and microbatch, a multiply-add as two."""
    matrices = 2.0 * shape.tokens * 12 * shape.hidden**2
    return matrices + scores_flops(shape)


def logits_flops(shape: Shape) -> float:
    """Forward, one microbatch."""
    return 2.0 * shape.tokens * shape.hidden * shape.vocabulary


def again_flops(shape: Shape) -> float:
    """What the backward of one layer and microbatch computes a second time."""
    again = {"none": 0.0, "selective": scores_flops(shape), "full": layer_flops(shape)}
    return again[shape.recompute]


def step_flops(shape: Shape, batch: int) -> float:
    """Of a whole step of `batch` sequences, recomputation included."""
    layer = 3 * layer_flops(shape) + again_flops(shape)
    return batch / shape.microbatch * (shape.layers * layer + 3 * logits_flops(shape))


def activation_bytes(shape: Shape) -> float:
    """One layer and microbatch on one tensor-parallel rank (2205.05198, table 2)."""
    t, attention = shape.tensor, 5 * shape.scores_ratio
    if shape.recompute == "full":
        units = 2.0
    else:
        apart = 24 + (attention if shape.recompute == "none" else 0.0)
        units = apart / t + (10 / t if shape.sequence_parallel else 10.0)
    return units * shape.own_tokens * shape.hidden


def elementwise_bytes(shape: Shape) -> tuple[float, float]:
    """Main-memory traffic of one layer's norms, dropouts, activation and softmax: (F, B).

    In units of b s h bytes forward: two norms and two bias-dropout-adds 22, GeLU 16, softmax and
    its dropout 9 a s / h; backward 26, 24 and 11. Each input, output and mask counted once.
    """
    t = shape.tensor
    norms = 1 / t if shape.sequence_parallel else 1.0
    unit = shape.own_tokens * shape.hidden
    forward = (22 * norms + 16 / t + 9 * shape.scores_ratio / t) * unit
    backward = (26 * norms + 24 / t + 11 * shape.scores_ratio / t) * unit
    again = {"none": 0.0, "selective": 9 * shape.scores_ratio / t * unit, "full": forward}
    return forward, backward + again[shape.recompute]


def all_reduces(shape: Shape) -> tuple[int, int]:
    """All-reduces of a b s h tensor over the tensor ranks, one layer: (F, B).

    With sequence parallelism each is a reduce-scatter and an all-gather, which move as much.
    """
    return 2, 4 if shape.recompute == "full" else 2


def boundary_bytes(shape: Shape) -> float:
    """What a microbatch's activations are at the boundary of two stages, 16-bit."""
    return HALF * shape.own_tokens * shape.hidden


def ring_bytes(shape: Shape) -> float:
    """Keys and values that a context rank passes on round the ring, one layer and microbatch."""
    return 2 * (shape.context - 1) * boundary_bytes(shape) / shape.tensor
