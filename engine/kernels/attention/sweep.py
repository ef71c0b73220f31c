"""How evenly each split shares work out, over the number of heads: counted, nothing is computed."""

from functools import lru_cache, partial

from engine.core.clock import Clock
from engine.core.interleaved import Interleaved, measure
from engine.core.plot import Plot
from engine.core.run import Live
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.attention.items import query_items
from engine.kernels.attention.policies.heads import Heads
from engine.kernels.attention.policies.row_blocks import RowBlocks
from engine.kernels.attention.policy import Split
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import evenness
from engine.kernels.work_queue import first_free

SWEEP = Plot("work split over heads", "heads", "work / (workers × most of one)", log_x=True)
HEADS = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_ITEMS = 6_000  # items worth dealing for a picture


def counted(config: AttentionConfig, split: Split, heads: int, workers: int) -> float:
    """Evenness of a split's items, dealt to `workers` in order of their query-key pairs."""
    return _counted(tuple(config.lengths), config.causal, split, heads, workers)


@lru_cache(maxsize=1024)  # what is done with scores, in which numbers, leaves it as it is
def _counted(
    lengths: tuple[int, ...], causal: bool, split: Split, heads: int, workers: int
) -> float:
    problem = Problem(list(lengths), heads, heads, 1, causal, backward=False, seed=0)
    got = [0.0] * workers
    runs = [[float(item.pairs)] for item in query_items(problem, split)]
    for worker, start, stop in first_free(runs, workers):
        got[worker] += stop - start
    return evenness(got, workers)


def sweep(config: AttentionConfig, workers: int, clock: Clock, live: Live) -> None:
    """A curve for each split."""
    blocks = sum(-(-n // BLOCK) for n in config.lengths)
    over_heads = Interleaved(
        "counting work over heads",
        [n for n in HEADS if n * blocks <= MOST_ITEMS],
        lambda n: {s.kind: partial(counted, config, s, n, workers) for s in (Heads(), RowBlocks())},
        {SWEEP: lambda _, kind, found: found[kind]},
    )
    measure(over_heads, clock, live)
