"""A model that adds independent sums up, one after the other or forked into threads and joined.

The prompt's last word says which, so that both ways know the same arithmetic. Forked traces are
learnt as tries of the requests they take.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.fork_join_scores import samples, scores
from engine.recipes.task_tokenizer import task_tokenizer
from engine.tasks.part_sums import PartSums, forked, serial
from engine.tasks.task import Split
from engine.training.data.packing import Example, Unit, trie
from engine.training.losses.language import Training

EOS = 1
PARTS = (2, 3, 4, 4)  # taught in turn


class ForkAndJoin(ExampleRecipe):
    """Two to four sums of two to four digits, half of them forked."""

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer(PartSums.words)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        drawn = PartSums(parts=PARTS[number // 2 % len(PARTS)]).problem(split, number)
        return trie(units(tokenizer, (serial, forked)[number % 2](drawn)))

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        return {name: Score(*found) for name, found in scores(folder, fast).items()}

    def samples(self, folder: Path) -> Sequence[str]:
        return samples(folder)


def units(tokenizer: Tokenizer, texts: Sequence[tuple[str, str]]) -> list[Unit]:
    """Requests as tokens, as any server would read them; the last one learns to end."""
    found = []
    for place, (read, said) in enumerate(texts):
        context, completion = tokenizer.encode_batch([read, said])
        end = [EOS] if place == len(texts) - 1 else []
        found.append(Unit(context.ids, [*completion.ids, *end]))
    return found


RECIPE = ForkAndJoin(
    name="part-sums-500k",
    about="A very small Llama that works on independent sums one after the other or in threads",
    hidden=128,
    layers=3,
    heads=4,
    kv_heads=2,
    head_dim=32,
    width=320,
    training=Training(
        steps=1600, warmup=100, decay=500, rate=3e-3, tokens=3072, context=384, long_context=384,
        weight_decay=0.05, report=25, evaluate=200, checkpoint=100,
    ),
)  # fmt: skip
