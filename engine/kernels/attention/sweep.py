"""How evenly each split shares work out, over the number of heads: counted, nothing is computed."""

from engine.core.clock import Clock
from engine.core.plot import Plot
from engine.core.run import Live
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.attention.items import query_items
from engine.kernels.attention.policies.heads import Heads
from engine.kernels.attention.policies.row_blocks import RowBlocks
from engine.kernels.attention.policy import Split
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import evenness
from engine.kernels.work_queue import first_free

SWEEP = Plot("work split over heads", "heads", "work / (workers × most of one)", log_x=True)
HEADS = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_ITEMS = 6_000  # items worth dealing for a picture


def counted(config: AttentionConfig, split: Split, heads: int, workers: int) -> float:
    """Evenness of a split's items, dealt to `workers` in order of their query-key pairs."""
    problem = config.model_copy(update={"kv_heads": heads, "share": 1}).problem()
    got = [0.0] * workers
    runs = [[float(item.pairs)] for item in query_items(problem, split)]
    for worker, start, stop in first_free(runs, workers):
        got[worker] += stop - start
    return evenness(got, workers)


def sweep(config: AttentionConfig, workers: int, clock: Clock, live: Live) -> None:
    """A curve for each split."""
    blocks = sum(-(-n // BLOCK) for n in config.lengths)
    heads = [n for n in HEADS if n * blocks <= MOST_ITEMS]
    for split in (Heads(), RowBlocks()):
        found = [counted(config, split, n, workers) for n in heads]
        live.curve(clock.now(), SWEEP, split.kind, list(zip(heads, found, strict=True)))
