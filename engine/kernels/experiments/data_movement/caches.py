"""A cache hierarchy fed with address streams: private L1 and L2 for each core, one shared L3.

Set-associative, least recently used, write-back, write-allocate, not inclusive; cores take turns,
one access each. No coherence: the kernels' cores share no line that is written.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.kernels.compiled import checked
from engine.kernels.experiments.data_movement.facts import facts

L1_MISS, L2_MISS, L3_MISS, DRAM_WRITE, PREFETCHED, ACCESSES = range(6)


@checked
def _touch(tags_SW, line, dirty):
    """Bring `line` to the front of its set. (was there, line written back or -1)."""
    row = tags_SW[line % tags_SW.shape[0]]
    ways = row.shape[0]
    found = -1
    for w in range(ways):
        if row[w] >> 1 == line:
            found = w
            break
    if found == 0:
        row[0] |= dirty
        return True, -1
    entry = row[found] | dirty if found > 0 else 2 * line + dirty
    last = found if found > 0 else ways - 1
    gone = -1
    if found < 0 and row[last] >= 0 and row[last] & 1:
        gone = row[last] >> 1
    for w in range(last, 0, -1):
        row[w] = row[w - 1]
    row[0] = entry
    return found >= 0, gone


@checked
def _written(tags_SW, line):
    """Mark `line` as written where it lies, leaving its place; False where it does not."""
    row = tags_SW[line % tags_SW.shape[0]]
    for w in range(row.shape[0]):
        if row[w] >> 1 == line:
            row[w] |= 1
            return True
    return False


@checked
def _beyond(line, dirty, core, l2_CSW, l3_SW, counts, demand):
    """Fetch a line that L1 lacks into L2, from L3 or from memory."""
    hit, gone = _touch(l2_CSW[core], line, dirty)
    if gone >= 0 and not _written(l3_SW, gone):
        counts[core, DRAM_WRITE] += 1
    if hit:
        return
    if demand:
        counts[core, L2_MISS] += 1
    hit, gone = _touch(l3_SW, line, 0)
    if gone >= 0:
        counts[core, DRAM_WRITE] += 1
    if not hit:
        counts[core, L3_MISS if demand else PREFETCHED] += 1


@checked
def simulate(stream, ends_C, shift, l1_CSW, l2_CSW, l3_SW, heads_CE, degree, counts):
    """Run the cores' streams (core c's ends at ends[c]) through the caches, filling `counts`.

    `heads` [cores, entries]: the line each prefetch stream expects next; `degree` lines are fetched
    into L2 when one is met. `counts` [cores, 6]: misses of L1, L2, L3, lines written to memory,
    lines prefetched from memory, accesses.
    """
    cores, entries = ends_C.shape[0], heads_CE.shape[1]
    at = np.zeros(cores, np.int64)
    at[1:] = ends_C[:-1]
    turn = np.zeros(cores, np.int64)
    left = cores
    while left:
        left = 0
        for core in range(cores):
            if at[core] == ends_C[core]:
                continue
            left += 1
            entry = stream[at[core]]
            at[core] += 1
            counts[core, ACCESSES] += 1
            line, dirty = entry >> (shift + 1), entry & 1
            front = l1_CSW[core, line % l1_CSW.shape[1]]
            if front[0] >> 1 == line:
                front[0] |= dirty
                continue
            hit, gone = _touch(l1_CSW[core], line, dirty)
            if gone >= 0 and not _written(l2_CSW[core], gone) and not _written(l3_SW, gone):
                counts[core, DRAM_WRITE] += 1
            if hit:
                continue
            counts[core, L1_MISS] += 1
            _beyond(line, 0, core, l2_CSW, l3_SW, counts, True)
            if degree:
                met = -1
                for e in range(entries):
                    if heads_CE[core, e] == line:
                        met = e
                        break
                if met < 0:
                    met = turn[core]
                    turn[core] = (met + 1) % entries
                else:
                    for ahead in range(1, degree + 1):
                        _beyond(line + ahead, 0, core, l2_CSW, l3_SW, counts, False)
                heads_CE[core, met] = line + 1


class Hierarchy(Config):
    """Sizes of the caches and the prefetcher; the rest is the paper's host."""

    l1_kib: float = knob(32.0, "L1 of each core", low=0.5, high=1024.0, unit="KiB", log=True)
    l2_kib: float = knob(256.0, "L2 of each core", low=0.5, high=16384.0, unit="KiB", log=True)
    l3_kib: float = knob(
        8192.0, "L3 for all cores", low=8.0, high=2.0**20, unit="KiB", log=True, called="L3 cache"
    )
    prefetch: int = knob(0, "Lines fetched ahead when a stream is met", low=0, high=8)
    streams: int = knob(16, "Streams a core's prefetcher follows", low=1, high=64, group="more")


@dataclass(frozen=True)
class Misses:
    """Totals over cores, and `counts` [cores, 6] in the order of the constants above."""

    counts: np.ndarray

    def total(self, which: int) -> int:
        return int(self.counts[:, which].sum())

    @property
    def lfmr(self) -> float:
        """Last-to-first miss ratio: misses of L3 over misses of L1."""
        return self.total(L3_MISS) / max(self.total(L1_MISS), 1)


def _cache(kib: float, ways: int, scale: int, copies: int) -> np.ndarray:
    """Empty tags [copies, sets, ways] of a cache shrunk by `scale`. Raises BadInput."""
    lines = int(kib * 1024 / scale) // facts()["hierarchy"]["line"]
    if lines < ways:
        raise BadInput(
            f"caches: {kib:g} KiB shrunk {scale} times hold {lines} lines, fewer than {ways} ways; "
            "choose a smaller scale"
        )
    return np.full((copies, lines // ways, ways), -2, np.int64)


def misses(stream: np.ndarray, ends_C: np.ndarray, shape: Hierarchy, scale: int = 1) -> Misses:
    """Misses of the cores' streams (see `recorded`) in caches of `shape`, shrunk by `scale`."""
    known = facts()["hierarchy"]
    cores = len(ends_C)
    counts = np.zeros((cores, 6), np.int64)
    simulate(
        stream,
        np.asarray(ends_C, np.int64),
        int(known["line"]).bit_length() - 1,
        _cache(shape.l1_kib, known["l1_ways"], scale, cores),
        _cache(shape.l2_kib, known["l2_ways"], scale, cores),
        _cache(shape.l3_kib, known["l3_ways"], scale, 1)[0],
        np.full((cores, shape.streams), -1, np.int64),
        shape.prefetch,
        counts,
    )
    return Misses(counts)
