"""Forward work: flops and bytes of a forward pass, in closed form.

Same numbers as `engine.models.footprint.step_work`, operation by operation, but what does not
change from step to step is worked out once: most operations cost a constant plus so much a token,
attention so much a visible pair and cached token, the head so much a row of logits.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.models.config import ModelConfig
from engine.models.footprint import (
    INDEX,
    RECURRENCE,
    OpWork,
    index_work,
    step_work,
    visible_pairs,
    windows_of,
)
from engine.models.kv import BYTES


class Shape(NamedTuple):
    """All that a step's work depends on. Sums over its sequences, and over layers where said.

    The last ones say who asks, which fused attention's time depends on but its work does not.
    """

    tokens: int
    rows: int  # of logits
    pairs: int  # (new token, visible token), summed over layers
    touched: int  # cached tokens read or written, summed over layers
    sequences: int = 0
    singles: int = 0  # sequences with one new token
    seen: int = 0  # tokens that those see
    chunks: tuple[tuple[int, int], ...] = ()  # of the others: new tokens, tokens before them

    def share(self, groups: int) -> "Shape":
        """What the largest of `groups` parts asks that the sequences are dealt into."""
        if groups == 1:
            return self
        tokens, rows, pairs, touched, sequences, singles, seen = (
            -(-each // groups) for each in self[:7]
        )
        chunks = self.chunks[::groups]
        return Shape(tokens, rows, pairs, touched, sequences, singles, seen, chunks)


class _Linear(NamedTuple):
    """Flops and bytes of one operation: a constant, and so much for each of four counts."""

    name: str
    flops: tuple[float, float, float, float]  # once, a token, a row of logits, a pair
    bytes: tuple[float, float, float, float]  # once, a token, a row of logits, a touched token


class ForwardWork:
    """Work of steps of one model with weights and cache in `dtype`."""

    def __init__(self, config: ModelConfig, dtype: str) -> None:
        self.config, self.dtype = config, dtype
        self.windows = windows_of(config)
        self.attending = config.attending
        self.bounded = bool(self.windows and self.windows[-1][0])  # by a window, the widest last
        self.state_bytes = 0.0  # read and written for each sequence of a step
        self.operations = self._operations()
        names = [op.name for op in self.operations]
        self.routes = names.index("experts") if "experts" in names else None
        self.experts: dict[int, float] = {}  # weight bytes read, by tokens of the step
        self.flops = [sum(each) for each in zip(*(op.flops for op in self.operations), strict=True)]
        self.bytes = [sum(each) for each in zip(*(op.bytes for op in self.operations), strict=True)]

    def shape(self, new_B: np.ndarray, context_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step: `new_B` tokens a sequence, the last of which sees `context_B`.

        Parallel streams compute all but the logits once each, behind their prefixes.
        """
        if (streams := self.config.streams) is not None:
            new_B = np.tile(new_B, streams.count)
            context_B = np.tile(context_B + streams.prefix, streams.count)
        tokens, sequences = int(np.add.reduce(new_B)), len(new_B)
        if tokens == sequences and not (self.bounded or streams):
            return self.decode_shape(context_B - 1, rows)
        pairs = touched = 0
        for window, heads, cached in self.windows:
            if window:
                pairs += heads * int(visible_pairs(new_B, context_B, window).sum())
                seen = int(np.minimum(context_B, window + new_B - 1).sum())
            else:
                seen = int(context_B.sum())
                pairs += heads * (int((new_B * (2 * context_B - new_B + 1)).sum()) // 2)
            touched += cached * (seen + tokens)
        ones = new_B == 1
        singles = int(np.count_nonzero(ones))
        if singles == sequences:
            return Shape(tokens, rows, pairs, touched, sequences, singles, int(context_B.sum()))
        new, before = new_B[~ones], (context_B - new_B)[~ones]
        chunks = tuple(zip(new.tolist(), before.tolist(), strict=True))
        saw = int(context_B[ones].sum())
        return Shape(tokens, rows, pairs, touched, sequences, singles, saw, chunks)

    def counted(self, ones: int, seen: int, chunks: list[tuple[int, int]], rows: int) -> Shape:
        """`shape` of a step told by counts: `ones` sequences with one new token, which see `seen`
        in all, alike where a window cuts them, and chunks of prompts."""
        tokens, pairs, touched = ones, 0, 0
        for new, _ in chunks:
            tokens += new
        for window, heads, cached in self.windows:
            near = min(seen, ones * window) if window else seen
            pairs += heads * near
            touched += cached * (near + tokens)
            for new, before in chunks:
                context = before + new
                if window:
                    each = np.array([new]), np.array([context])
                    pairs += heads * int(visible_pairs(*each, window).sum())
                    touched += cached * min(context, window + new - 1)
                else:
                    pairs += heads * ((new * (2 * context - new + 1)) // 2)
                    touched += cached * context
        return Shape(tokens, rows, pairs, touched, ones + len(chunks), ones, seen, tuple(chunks))

    def decode_shape(self, starts_B: np.ndarray, rows: int, seen: int | None = None) -> Shape:
        """`shape` of a step in which every sequence decodes after `starts_B` cached tokens;
        `seen`: tokens that they see, where that is known."""
        tokens = len(starts_B)
        streams = self.config.streams is not None
        if streams or self.bounded:
            return self.shape(np.ones_like(starts_B), starts_B + 1, rows)
        if seen is None:
            seen = int(np.add.reduce(starts_B)) + tokens
        layers, pairs = self.attending, seen * self.attending
        return Shape(tokens, rows, pairs, pairs + tokens * layers, tokens, tokens, seen)

    def mixed_shape(
        self, starts_B: np.ndarray, new_B: np.ndarray, decodes: int, rows: int,
        seen: int | None = None,
    ) -> Shape:  # fmt: skip
        """`shape` of a step whose first `decodes` sequences have one new token each, after
        `starts_B` cached ones; `seen`: tokens that those see, where that is known."""
        if self.bounded:
            return self.shape(new_B, starts_B + new_B, rows)
        ones, chunks = decodes, []
        if seen is None:
            seen = int(np.add.reduce(starts_B[:decodes])) + decodes
        for new, before in zip(new_B[decodes:].tolist(), starts_B[decodes:].tolist(), strict=True):
            if new == 1:
                ones, seen = ones + 1, seen + before + 1
            else:
                chunks.append((new, before))
        return self.counted(ones, seen, chunks, rows)

    def work(self, shape: Shape) -> tuple[float, float]:
        """Flops and bytes of a step of that shape."""
        tokens, rows, pairs, touched = shape[:4]
        once, token, row, pair = self.flops
        flops = once + token * tokens + row * rows + pair * pairs
        once, token, row, touch = self.bytes
        moved = once + token * tokens + row * rows + touch * touched
        return flops, moved + (self._experts(tokens) if self.routes is not None else 0.0)

    def works(self, shape: Shape) -> list[tuple[str, float, float]]:
        """Name, flops and bytes of each operation."""
        tokens, rows, pairs, touched = shape[:4]
        found = [
            (
                name,
                f_once + f_token * tokens + f_row * rows + f_pair * pairs,
                b_once + b_token * tokens + b_row * rows + b_touch * touched,
            )
            for (
                name,
                (f_once, f_token, f_row, f_pair),
                (b_once, b_token, b_row, b_touch),
            ) in self.operations
        ]
        if self.state_bytes:
            found = [
                (name, flops, size + self.state_bytes * shape.sequences * (name == RECURRENCE))
                for name, flops, size in found
            ]
        if self.config.index is not None:
            found = [self._index(each, shape) if each[0] == INDEX else each for each in found]
        if self.routes is not None:
            name, work, size = found[self.routes]
            found[self.routes] = name, work, size + self._experts(tokens)
        return found

    def _index(self, known: tuple[str, float, float], shape: Shape) -> tuple[str, float, float]:
        """With the scores of all visible tokens, whatever attention reads of them."""
        name, flops, size = known
        pairs = shape.seen + sum(n * (2 * before + n + 1) // 2 for n, before in shape.chunks)
        seen = shape.seen + sum(n + before for n, before in shape.chunks)
        work, moved = index_work(self.config, pairs, seen, BYTES[self.dtype])
        return name, flops + work, size + moved

    def _experts(self, tokens: int) -> float:
        """Weight bytes of the experts that a step of so many tokens reaches."""
        if tokens not in self.experts:
            works = self._ask(tokens, tokens, 1)
            self.experts[tokens] = works["experts"].weight_bytes
        return self.experts[tokens]

    def _ask(self, tokens: int, context: int, rows: int) -> dict[str, OpWork]:
        works = step_work(self.config, [tokens], [context], dtype=self.dtype, logits=rows)
        if self.config.index is not None:  # its scores are told of each step apart
            pairs = tokens * (2 * context - tokens + 1) // 2
            flops, _ = index_work(self.config, pairs, context, BYTES[self.dtype])
            works = [
                replace(work, flops=work.flops - flops, cache_bytes=0.0)
                if work.name == INDEX
                else work
                for work in works
            ]
        return {work.name: work for work in works}

    def _operations(self) -> list[_Linear]:
        """Coefficients by differences between steps that differ in one count."""
        one, two, rowless = self._ask(1, 1, 1), self._ask(2, 2, 1), self._ask(1, 1, 0)
        heads, cached = (max(1, sum(each[i] for each in self.windows)) for i in (1, 2))
        found = []
        for name, work in one.items():
            if name == "attention":
                a_pair, a_touch = work.flops / heads, work.cache_bytes / (2 * cached)
                flops = 0.0, 0.0, 0.0, a_pair
                size = 0.0, work.activation_bytes, 0.0, a_touch
            elif name == "head":
                bare = rowless[name]
                flops = bare.flops, 0.0, work.flops - bare.flops, 0.0
                size = bare.bytes, 0.0, work.bytes - bare.bytes, 0.0
            else:
                more = two[name]
                kept = name != "experts"  # what experts read of their weights is no straight line
                first = work.bytes if kept else work.activation_bytes
                second = more.bytes if kept else more.activation_bytes
                if name == RECURRENCE:
                    self.state_bytes = work.cache_bytes
                    first, second = first - self.state_bytes, second - self.state_bytes
                flops = 2 * work.flops - more.flops, more.flops - work.flops, 0.0, 0.0
                size = 2 * first - second, second - first, 0.0, 0.0
            found.append(_Linear(name, flops, size))
        return found
