"""A model taught to think about a ledger's entries as they come in, and in no other order.

It goes on from the model that learnt every order, by as much as the one that reads first does.
"""

from typing import ClassVar

from engine.recipes.from_examples.read_then_think import TRAINING, ReadThenThink
from engine.recipes.stream_examples import Order


class ThinkAtOnce(ReadThenThink):
    """Every thought as soon as its entry is there; the ledgers are the same ones."""

    order: ClassVar[Order | None] = "at once"
    policies: ClassVar = ("streaming",)


RECIPE = ThinkAtOnce(
    name="ledger-streaming-700k",
    about="A very small Llama that thinks about a ledger's entries as they come in",
    hidden=128,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=32,
    width=384,
    training=TRAINING,
)
