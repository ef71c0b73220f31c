"""A model taught to think about a ledger only once it has read it whole: batch thinking's own.

It goes on from the model that learnt every order, on ledgers that model has not seen.
"""

from typing import ClassVar

from tokenizers import Tokenizer

from engine.recipes.from_examples.think_while_reading import RECIPE as EVERY
from engine.recipes.from_examples.think_while_reading import ThinkWhileReading
from engine.recipes.stream_examples import Order
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.losses.language import Training

UNSEEN = 1 << 20  # the first example: those before it were learnt from
# Of one order's model and of the other's, so that neither had more of anything.
TRAINING = Training(
    steps=600, warmup=30, decay=400, rate=1e-3, tokens=1504, context=188, long_context=188,
    report=20, evaluate=150, checkpoint=50,
)  # fmt: skip


class ReadThenThink(ThinkWhileReading):
    """Every thought after all of the ledger."""

    start: ClassVar[str] = EVERY.name
    order: ClassVar[Order | None] = "after all"
    policies: ClassVar = ("batch",)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        return super().example(tokenizer, split, UNSEEN + number)


RECIPE = ReadThenThink(
    name="ledger-batch-700k",
    about="A very small Llama that thinks about a ledger once it has read it",
    hidden=128,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=32,
    width=384,
    training=TRAINING,
)
