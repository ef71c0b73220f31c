"""The block hit ratio of a trace: endless, least recently used, and the offline optimum."""

import os
from pathlib import Path

import pytest

from engine.cache.eviction import FurthestNextUse, LeastRecentlyUsed
from engine.core.errors import BadInput
from engine.inference.workloads.trace import FromTrace
from engine.inference.workloads.traces.hit_ratio import hit_ratio
from engine.inference.workloads.traces.read import load, reuse
from engine.inference.workloads.traces.records import Traced

MOONCAKE = "WORKBENCH_MOONCAKE_SAMPLE"  # the first 2,000 of Mooncake's conversations, where given


def test_an_endless_cache_finds_every_block_met_before():
    trace = load(FromTrace.path("mooncake-like.jsonl"))
    assert hit_ratio(trace.requests, 0, LeastRecentlyUsed()) == reuse(trace)


def test_the_optimum_is_above_least_recently_used_and_both_rise_with_capacity():
    requests = load(FromTrace.path("mooncake-like.jsonl"), count=150).requests
    lru, best = (
        [hit_ratio(requests, size, each()).found for size in (100, 200, 400)]
        for each in (LeastRecentlyUsed, FurthestNextUse)
    )
    assert lru == sorted(lru) and best == sorted(best)
    assert all(a <= b for a, b in zip(lru, best, strict=True))


def test_the_optimum_is_beladys_on_single_blocks():
    order = [0, 1, 2, 0, 3, 1, 2, 0, 3, 1]
    requests = [Traced(float(n), 512, 1, (block,)) for n, block in enumerate(order)]
    assert hit_ratio(requests, 2, FurthestNextUse()).found == belady(order, 2)


def belady(order: list[int], room: int) -> int:
    """Hits of the best choice, by trying every one; the block asked for is kept."""
    best = {(): 0}
    for block in order:
        after: dict[tuple[int, ...], int] = {}
        for kept, hits in best.items():
            found = hits + (block in kept)
            whole = {*kept, block}
            others = whole - {block}
            options = [whole] if len(whole) <= room else [whole - {one} for one in others]
            for option in options:
                key = tuple(sorted(option))
                after[key] = max(after.get(key, 0), found)
        best = after
    return max(best.values())


def test_the_public_sample_has_its_known_ratio():
    if MOONCAKE not in os.environ:
        pytest.skip(f"{MOONCAKE} names no file")
    found = hit_ratio(load(Path(os.environ[MOONCAKE])).requests, 0, LeastRecentlyUsed())
    assert (found.found, found.total) == (54_559 - 38_788, 54_559)
    assert f"{found.ratio:.6f}" == "0.289063"


def test_a_trace_without_blocks_is_refused():
    with pytest.raises(BadInput, match="no hash_ids"):
        hit_ratio(load(FromTrace.path("azure-like.csv"), count=3).requests, 0, LeastRecentlyUsed())
