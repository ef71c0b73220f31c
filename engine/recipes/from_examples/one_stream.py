"""A single stream that keeps a sum and takes turns: what four streams are held against, trained as
long as they are on nothing else."""

from engine.core.config import update
from engine.recipes.from_examples.side_by_side import RECIPE as STREAMS

RECIPE = update(
    STREAMS,
    {
        "name": "running-sum-turns-400k",
        "about": "A very small Llama that reads, thinks and answers in turns, in one stream",
        "beside": 0.0,
        "training.precision": "float32",
    },
)
