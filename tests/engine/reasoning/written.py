"""Blocks written and seen by hand: views as plain lists, whatever layout one likes."""

import numpy as np
import torch

from engine.models.batch import Batch, Views
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.reasoning.threads.reference import Record

SIZE = 4  # tokens of a page


def ints(numbers):
    return np.array(numbers, np.int32)


class ThreadCaches:
    """Blocks of one model's cache. `shift` is added to every shift: 0 where nothing is broken."""

    def __init__(self, model: Model, shift: int = 0) -> None:
        self.model, self.shift = model, shift
        self.kv = PagedKV(model.spec, 60, SIZE)
        for tensors in self.kv.tensors:
            for pages in tensors.values():
                pages.fill_(float("nan"))  # what was never written must never be read
        self.blocks: dict[str, list[int]] = {}
        self.length: dict[str, int] = {}
        self.record = Record()
        self.logits: list[torch.Tensor] = []
        self._next = 0

    def _grow(self, block: str, count: int) -> int:
        pages, first = self.blocks.setdefault(block, []), self.length.get(block, 0)
        self.length[block] = first + count
        while len(pages) * SIZE < first + count:
            pages.append(self._next)
            self._next += 1
        return first

    def write(self, feeds: dict[str, list[int]], views: dict[str, list[str]]) -> None:
        """One forward pass: `feeds` go to blocks whose writers see `views`, in order, before it."""
        firsts = {block: self._grow(block, len(tokens)) for block, tokens in feeds.items()}
        names = list(self.blocks)
        table = np.full((len(names), max(map(len, self.blocks.values()))), -1, np.int32)
        for row, name in zip(table, names, strict=True):
            row[: len(self.blocks[name])] = self.blocks[name]
        first, block, seen, shift, positions, slots = [0], [], [], [], [], []
        for name, tokens in feeds.items():
            view, begin = [], 0
            for other in [*views[name], name]:
                view.append((other, begin, self.length[other]))
                begin += self.length[other]
            for other, at, count in view[:-1]:
                block.append(names.index(other))
                seen.append(count)
                shift.append(view[-1][1] - at + self.shift)
            first.append(len(block))
            here = range(firsts[name], firsts[name] + len(tokens))
            positions += here
            slots += [self.blocks[name][p // SIZE] * SIZE + p % SIZE for p in here]
            self.record.add(tokens, name, tuple(view))
        lengths = [len(tokens) for tokens in feeds.values()]
        batch = Batch(
            tokens_T=ints(sum(feeds.values(), [])),
            positions_T=ints(positions),
            slots_T=ints(slots),
            query_start_B1=ints(np.cumsum([0, *lengths])),
            context_B=ints([self.length[name] for name in feeds]),
            block_table_BP=table[[names.index(name) for name in feeds]],
            logits_at_R=np.arange(sum(lengths), dtype=np.int32),
            views=Views(ints(first), ints(block), ints(seen), ints(shift), table),
        )
        self.logits.append(self.model.forward(batch, self.kv))


def play(table: ThreadCaches) -> None:
    """A prompt, two writers who see each other, a third joins, orders change, chunks differ."""
    rng = np.random.default_rng(0)

    def draw(count):
        return rng.integers(0, table.model.config.vocab, count).tolist()

    table.write({"p": draw(7)}, {"p": []})
    two = {"a": ["p", "b"], "b": ["p", "a"]}
    table.write({"a": draw(3), "b": draw(1)}, two)
    for _ in range(6):
        table.write({"a": draw(1), "b": draw(1)}, two)
    table.write({"a": draw(2), "c": draw(1)}, {"a": ["b", "c", "p"], "c": ["p", "a", "b"]})
    three = {"a": ["p", "b", "c"], "b": ["c", "p", "a"], "c": ["p", "a", "b"]}
    for _ in range(3):
        table.write({"a": draw(1), "b": draw(1), "c": draw(1)}, three)
