"""A model that imitates serial searches of Countdown alone: what spawned threads are held against.

It goes on from the model that learnt both, of whose examples one in four is a serial search.
"""

from typing import ClassVar

from tokenizers import Tokenizer

from engine.recipes.countdown.examples import KINDS, example
from engine.recipes.from_examples.countdown import RECIPE as BOTH
from engine.recipes.from_examples.countdown import Countdown
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.loop.settings import Training

UNSEEN = 1 << 20  # the first problem: those before it were learnt from


class CountdownSerial(Countdown):
    """The same problems, searched in one context."""

    start: ClassVar[str] = BOTH.name
    searches: ClassVar = ("serial",)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        return example(KINDS * (UNSEEN + number), split, self.training.context)


RECIPE = CountdownSerial(
    name="countdown-imitated-serial",
    about="A very small Llama that searches for Countdown's answers in one context",
    hidden=128,
    layers=4,
    heads=4,
    kv_heads=2,
    head_dim=32,
    width=320,
    training=Training(
        steps=240, warmup=20, decay=160, rate=1.5e-3, tokens=4096, context=256, long_context=256,
        weight_decay=0.05, report=20, evaluate=120, checkpoint=20,
    ),
)  # fmt: skip
