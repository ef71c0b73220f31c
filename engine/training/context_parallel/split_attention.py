"""SplitAttention: one attention over sequences that are split among context-parallel ranks."""

from typing import Self

from pydantic import model_validator

from engine.core.config import Choice, Config, knob
from engine.training.context_parallel.algorithm import SequenceAttention
from engine.training.context_parallel.layouts import Layout, Zigzag
from engine.training.context_parallel.piece import Piece
from engine.training.context_parallel.policies.ring import Ring


class SplitAttention(Config):
    """What is computed: by which algorithm, on how many ranks, of what size."""

    attention: Choice[SequenceAttention] = knob(make=Ring, doc="what travels between ranks")
    ranks: int = knob(4, "ranks that share a sequence", low=1, high=64)
    tokens: int = knob(1024, "of each sequence", low=2, high=1 << 22, unit="tokens", log=True)
    batch: int = knob(1, "sequences", low=1, high=1024)
    kv_heads: int = knob(4, "key/value heads", low=1, high=128)
    share: int = knob(
        1, "query heads for each of them", low=1, high=64, called="Query heads per KV head"
    )
    dim: int = knob(64, "numbers of a head", low=1, high=512)
    causal: bool = knob(True, "a token sees only those before it")
    layout: Choice[Layout] = knob(make=Zigzag, doc="which positions a rank owns")
    backward: bool = knob(True, "gradients too")
    seed: int = knob(0, "of the tensors", low=0, high=2**31 - 1, group="more")
    dropped: int = knob(
        -1, "turn of the ring whose block is left out, which is wrong (-1: none)", low=-1, high=63,
        group="more",
    )  # fmt: skip

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.layout.spans(0, self.ranks, self.tokens)
        self.attention.fits(self.ranks, self.kv_heads)
        return self

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.kv_heads * self.share

    def pieces(self) -> list[Piece]:
        """Every rank's piece."""
        spans = [self.layout.spans(rank, self.ranks, self.tokens) for rank in range(self.ranks)]
        return [
            Piece(rank, spans, self.causal, self.dim, self.heads * self.batch, self.dropped)
            for rank in range(self.ranks)
        ]
