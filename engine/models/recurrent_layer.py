"""Recurrent layers of the engine: linear attention whose states lie in state pages of the cache.

Each sequence reads the state it has had so far from one page and writes the one after its new
tokens to another, which may be the same: a page that others hold is never written.
Shape letters: T new tokens, C hidden, B sequences.
"""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.recurrent import delta_rule, mamba2
from engine.kernels.recurrent.state import Held
from engine.models.attention import Pass
from engine.models.batch import States
from engine.models.config import ModelConfig
from engine.models.gathered import Gathered


class Recurrent:
    """One layer that keeps a state, over a batch's states."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        kind = MambaMixer if isinstance(config.recurrence, mamba2.Mamba) else DeltaMixer
        self.mixer: DeltaMixer | MambaMixer = kind(config, weights)
        self.out = weights.linear("out")

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """y_TC for normalised x_TC."""
        states = here.batch.states
        assert states is not None
        said = self.mixer.projected(x_TC)
        o_TX = x_TC.new_empty(len(x_TC), self.mixer.part.width)
        found = []  # all is read before anything is written
        for pieces, read in runs(here.batch.query_start_B1, states, here.exact):
            held = self._read(cache, read)
            for at, writes in pieces:
                # A chunk's sums go by its length: token by token they cannot.
                for one in at.split(1, dim=1) if here.exact else (at,):
                    o_BTX, held = self.mixer.attended(tuple(x[0, one] for x in said), held)
                    o_TX[one] = o_BTX.to(o_TX.dtype)
                    held = self._rounded(held, cache) if here.exact else held
                found.append((writes, held))
        for writes, held in found:
            for name, tensor in zip(("inputs", "matrix"), held, strict=True):
                there = writes >= 0
                pages = torch.from_numpy(writes[there]).to(tensor.device)
                cache[name][pages] = tensor[torch.from_numpy(there)].to(cache[name].dtype)
        return self.out(o_TX)

    @staticmethod
    def _rounded(held: Held, cache: dict[str, Tensor]) -> Held:
        """As it would come back from the cache."""
        pairs = zip(("inputs", "matrix"), held, strict=True)
        return Held(*(tensor.to(cache[name].dtype).to(tensor.dtype) for name, tensor in pairs))

    def _read(self, cache: dict[str, Tensor], pages_B: np.ndarray) -> Held:
        """States of pages, zero for page -1."""
        there = torch.from_numpy(pages_B >= 0).to(cache["matrix"].device)
        pages = torch.from_numpy(np.maximum(pages_B, 0)).to(cache["matrix"].device)
        return Held(
            cache["inputs"][pages] * there[:, None, None],
            cache["matrix"][pages] * there[:, None, None, None],
        )


class DeltaMixer:
    """The gated delta rule (Qwen3-Next, Qwen3.5)."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        assert isinstance(config.recurrence, delta_rule.Delta)
        self.part, self.eps = config.recurrence, config.norm_eps
        self.into = weights.linear("delta", "delta_gate")
        self.rates = weights.linear("rates", "rates_decay")
        names = ("convolution", "step_bias", "decay", "delta_norm")
        self.fixed = delta_rule.Fixed(*(weights.take(name) for name in names))

    def projected(self, x_TC: Tensor) -> tuple[Tensor, ...]:
        """The layer's input by part, one row."""
        return delta_rule.projected(self.part, self.into(x_TC)[None], self.rates(x_TC)[None])

    def attended(self, said: tuple[Tensor, ...], held: Held) -> tuple[Tensor, Held]:
        """o_BTX and what the sequences keep."""
        given = delta_rule.Projected(*said)
        scan = delta_rule.recur_in_chunks
        return delta_rule.attended(self.part, self.fixed, given, held, self.eps, scan)


class MambaMixer:
    """Mamba-2 (Nemotron-H)."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        assert isinstance(config.recurrence, mamba2.Mamba)
        self.part, self.eps = config.recurrence, config.norm_eps
        self.into = weights.linear("mamba")
        self.fixed = mamba2.Fixed(
            weights.take("convolution"),
            weights.take("convolution.bias") if self.part.kernel_bias else None,
            *(weights.take(name) for name in ("step_bias", "decay", "skip", "mamba_norm")),
        )

    def projected(self, x_TC: Tensor) -> tuple[Tensor, ...]:
        """The layer's input by part, one row."""
        return mamba2.projected(self.part, self.into(x_TC)[None])

    def attended(self, said: tuple[Tensor, ...], held: Held) -> tuple[Tensor, Held]:
        """o_BTX and what the sequences keep."""
        given = mamba2.Projected(*said)
        scan = mamba2.scan_in_chunks
        return mamba2.attended(self.part, self.fixed, given, held, self.eps, scan)


Piece = tuple[Tensor, np.ndarray]
"""Indices of new tokens, [B, T], and the pages that the states after them are written to."""


def runs(
    start_B1: np.ndarray, states: States, alone: bool = False
) -> list[tuple[list[Piece], np.ndarray]]:
    """Sequences with one new token together, each other one alone and in pieces: for each, its
    pieces and the pages it begins with. `alone`: each of the former by itself, too."""
    counts_B = np.diff(start_B1)
    kept = {sequence for sequence, _, _ in states.keep_N3.tolist()}
    single_B = (counts_B == 1) & (not alone) & ~np.isin(np.arange(len(counts_B)), list(kept))
    found: list[tuple[list[Piece], np.ndarray]] = []
    if single_B.any():
        at = torch.from_numpy(start_B1[:-1][single_B].astype(np.int64))[:, None]
        pages = states.read_B[single_B].astype(np.int64)
        found.append(([(at, states.write_B[single_B].astype(np.int64))], pages))
    for b in np.flatnonzero(~single_B).tolist():
        first, count = int(start_B1[b]), int(counts_B[b])
        cuts = [(until, page) for one, until, page in states.keep_N3.tolist() if one == b]
        pieces, done = [], 0
        for until, page in [*sorted(cuts), (count, int(states.write_B[b]))]:
            at = torch.arange(first + done, first + until)[None]
            pieces.append((at, np.array([page], np.int64)))
            done = until
        found.append((pieces, states.read_B[b : b + 1].astype(np.int64)))
    return found
