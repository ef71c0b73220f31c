"""A model that judges, from what two traces have written so far, whether their answers will agree.

It learns from traces of another shipped model about questions a bit larger than that one was
taught, where it is right four times in five and mostly repeats itself.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tokenizers import Tokenizer
from torch import Tensor

from engine.core.config import knob
from engine.reasoning.pruning.judges import OTHER, SAME
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.focal import focal
from engine.recipes.judge_scores import samples, scores
from engine.recipes.task_tokenizer import task_tokenizer
from engine.recipes.trace_pairs import Traced, asked, beside, drawn
from engine.tasks.part_sums import PartSums
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.loop.settings import Training

NUMBERS = 1 << 24  # of examples in a step, more than are used


class JudgeAgreement(ExampleRecipe):
    """Yes or no after every token, learnt by focal loss from evenly drawn classes."""

    traced: Traced = knob(Traced(), "Whose traces are judged")
    questions: int = knob(384, "Questions of the train side", low=1, high=1 << 20)
    held_out: int = knob(32, "Questions of the test side, for the loss", low=1, high=1 << 20)
    read: int = knob(72, "Tokens of each trace that are read", low=1, high=4096, unit="tokens")
    skip: int = knob(8, "Tokens after which it is not asked yet", low=0, high=4096, unit="tokens")
    gamma: float = knob(2.0, "How much less sure verdicts count; 0: not", low=0.0, high=10.0)

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer(PartSums.words, special=(SAME, OTHER))

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        each = self.questions if split == "train" else self.held_out
        step, place = divmod(number, NUMBERS)
        rows = self.training.rows(0)
        question, traces = asked(self.traced, split, (step * rows + place) % each)
        one, two = drawn(traces, Random(f"pair {split} {number}"))
        prompt, a, b = (tokenizer.encode(t).ids for t in (question, one.text, two.text))
        (verdict,) = tokenizer.encode(SAME if one.answer == two.answer else OTHER).ids
        return beside(prompt, a[: self.read], b[: self.read], verdict, self.skip)

    def nats(self, logits_LV: Tensor, target_L: Tensor) -> Tensor:
        return focal(logits_LV, target_L, self.gamma)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        return scores(folder, self.traced, fast)

    def samples(self, folder: Path) -> Sequence[str]:
        return samples(folder, self.traced)


RECIPE = JudgeAgreement(
    name="agreement-100k",
    about="A very small Llama that judges whether two unfinished sums will come to the same answer",
    hidden=64,
    layers=2,
    heads=4,
    kv_heads=4,
    head_dim=16,
    width=176,
    training=Training(
        steps=700, warmup=50, decay=300, rate=3e-3, tokens=3680, context=184, long_context=184,
        weight_decay=0.05, precision="float32", report=20, evaluate=200, checkpoint=100,
    ),
)  # fmt: skip
