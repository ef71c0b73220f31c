"""The time of a fused mixture-of-experts layer: rows grouped by expert, two products for each.

Each expert's rows are padded to whole tiles, and its weights are read once by every tile of rows
that finds them in no cache. Letters: T tokens, E experts, R expert-parallel ranks.
"""

from functools import lru_cache

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.cost.constants import Constants
from engine.hardware.cost.curves import BYTES, Number, Parts, best_rate, heated
from engine.hardware.device import Device

BLOCKS = np.array((16.0, 32.0, 64.0, 128.0))  # rows of a tile that a kernel chooses from
MOST = 0.8  # of the tokens: what the hottest expert of a power law is drawn below
ROUNDS = 20  # of spreading rows
FEW = (0.01, 2.0)  # between these where not every expert gets a row
MATRICES = 3  # gate, up, down


def loads(tokens: int, chosen: int, experts: int, ranks: int, power: float) -> np.ndarray:
    """[E / R] expected rows of the busiest rank's experts, where each token asks `chosen` experts.

    `power` 0: all experts alike. Else experts' popularity follows a power law of that exponent
    between 1 and 0.8 T; the busiest rank holds the most popular one and its share of the others.
    """
    here, rows = experts // ranks, tokens * chosen
    if not power:
        each, over = divmod(rows, experts)
        return np.sort(np.full(experts, each) + (np.arange(experts) < over))[::-1][::ranks][:here]
    at = (np.arange(experts) + 0.5) / experts
    low, high = (1.0, MOST * tokens) if rows > experts else FEW
    law = low ** (1 - power) * (1 - at) + high ** (1 - power) * at
    popular = np.sort(law ** (1 / (1 - power)))[::-1]
    scale = rows / popular.sum()
    for _ in range(ROUNDS):  # what an expert cannot take, no token asking it twice, others do
        wanted = np.minimum(tokens, scale * popular)
        scale *= rows / wanted.sum()
    return np.concatenate([wanted[:1], wanted[1:][:: max(1, ranks)]])[:here]


@lru_cache(maxsize=4096)
def _padded(
    tokens: int, chosen: int, experts: int, ranks: int, power: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Padded rows and tiles by block, experts reached, rows."""
    rows_E = loads(tokens, chosen, experts, ranks, power)
    tiles = np.where(rows_E < 1, rows_E, np.ceil(rows_E / BLOCKS[:, None])).sum(1)
    return tiles * BLOCKS, tiles, float(np.minimum(rows_E, 1).sum()), float(rows_E.sum())


def experts(
    device: Device, found: Constants, hidden: Number, width: Number, chosen: Number,
    experts: Number, tensor: Number, ranks: Number, power: Number, tokens: Number, dtype: str,
) -> Parts:  # fmt: skip
    """One layer on one device of `tensor` x `ranks` that share it, with the slowest rank's load."""
    c, size, slower = found.expert(BYTES[dtype]), BYTES[dtype], found.slower(device)
    if c is None:
        raise BadInput(f"constants {found.slug}: none of experts; take a device's that has them")
    columns = (tokens, chosen, experts, ranks, power)
    told = [
        _padded(int(t), int(k), int(e), int(r), float(p))
        for t, k, e, r, p in zip(*(np.atleast_1d(each) for each in columns), strict=True)
    ]
    padded, tiles = (np.array([each[i] for each in told]) for i in (0, 1))
    hit, mine = (np.array([each[i] for each in told])[:, None] for i in (2, 3))
    rows = mine + c.others * np.maximum(np.atleast_1d(tokens * chosen)[:, None] - mine, 0.0)
    hidden, inner = (np.atleast_1d(x)[:, None] for x in (hidden, np.asarray(width) / tensor))
    weights = MATRICES * hidden * inner
    rate = best_rate(device, dtype, found) * c.rate
    compute = 2 * weights * padded * (1 + c.edge / BLOCKS) / rate
    compute = compute * heated(device, found, c, compute)
    read = size * weights * (hit + c.again * (tiles - hit))
    moved = 2 * rows * (2 * hidden + 3 * inner)
    memory = read / (device.bandwidth * c.bandwidth) + c.passes * moved / device.bandwidth
    begin = slower * (c.launch + c.expert * hit)
    seconds = begin + np.maximum(compute, memory) + c.overlap * np.minimum(compute, memory)
    at = np.arange(len(told)), seconds.argmin(1)
    roofs = {dtype: compute[at], "bandwidth": memory[at], "launch": begin[:, 0]}
    return Parts(seconds[at], roofs)
