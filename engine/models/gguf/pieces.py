"""Sentencepiece vocabulary with scores as tokenizer rules: merges in the order of their scores.

Such a tokenizer joins, of all neighbours that make a piece together, the two whose piece scores
highest (Kudo and Richardson, arXiv 1808.06226, section 3.2, model type bpe; llama.cpp calls it
spm). Blanks are written as `▁`; what no piece spells falls back on a piece for each byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Rules
from tokenizers import decoders, models, normalizers

BLANK = "\N{LOWER ONE EIGHTH BLOCK}"
UNKNOWN, BYTE = 2, 6  # kinds of pieces
LONGEST = 256  # characters of a piece that merges are told of; public ones stay under 40
SPLITS = 10_000_000  # of all pieces together; Gemma's 262,144 have 2 million


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces by id with their scores and kinds; `prefix`: a text begins as behind a blank."""

    texts: Sequence[str]
    scores: Sequence[float]
    kinds: Sequence[int]
    prefix: bool = True

    @property
    def cost(self) -> int:
        """Ways to split all pieces that are short enough to have been merged."""
        return sum(len(text) - 1 for text in self.texts if len(text) <= LONGEST)

    def merges(self) -> list[tuple[str, str]]:
        """Every split of a piece into two others, the highest-scoring piece first."""
        number = {text: at for at, text in enumerate(self.texts)}
        found = []
        for piece, score in zip(self.texts, self.scores, strict=True):
            for cut in range(1, len(piece) if len(piece) <= LONGEST else 0):
                left, right = piece[:cut], piece[cut:]
                if left in number and right in number:
                    found.append((-score, number[piece], -cut, left, right))
        found.sort()
        return [(left, right) for *_, left, right in found]

    def rules(self) -> Rules:
        """The rules: no merge reaches over a control piece, as none spells a text."""
        unknown = next(
            (t for t, k in zip(self.texts, self.kinds, strict=True) if k == UNKNOWN), None
        )
        rules = Rules(
            models.BPE(
                vocab={text: at for at, text in enumerate(self.texts)},
                merges=self.merges(),
                unk_token=unknown,
                fuse_unk=True,
                byte_fallback=BYTE in self.kinds,
            )
        )
        blanks = normalizers.Replace(" ", BLANK)
        before: list[Any] = [normalizers.Prepend(BLANK)] if self.prefix else []
        rules.normalizer = normalizers.Sequence([*before, blanks])
        after: list[Any] = [decoders.Strip(content=" ", left=1)] if self.prefix else []
        rules.decoder = decoders.Sequence(
            [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), *after]
        )
        return rules
