"""Zero-bubble orders found by list scheduling: passes dealt in time order under a memory limit.

One candidate is a rule for when a rank runs ahead and how long weights may wait; `deal` plays a
rule through, and whoever searches keeps the best. After Qi et al., arXiv 2401.10241, section 3.1:
forwards until the limit, then one forward one backward, weights into the gaps.
"""

import numpy as np

from engine.kernels.compiled import checked, inner

NEVER = np.inf
F, I, W = 0, 1, 2  # in the order that `deal` writes


@inner
def choose(
    now: float,
    forward: float,
    backward: float,
    waiting: int,
    late: int,
    shallow: bool,
    room: bool,
    more: bool,
    gap: float,
) -> tuple[int, float]:
    """(the pass to do now or -1, when the next F or I may begin).

    `forward`, `backward`: when what they need is there; `waiting`: weights not yet done, `late` of
    which may wait while there are `more` forwards; `shallow`: it may run further ahead.
    """
    allowed = forward if shallow and room else NEVER
    nearest = min(allowed, backward)
    if more and (waiting > late or (waiting > 0 and shallow and not room and backward > now)):
        return W, nearest
    if nearest <= now:
        return (F if allowed <= now else I), nearest
    if waiting > 0 and nearest - now >= gap:
        return W, nearest
    return -1, nearest


@checked
def deal(
    ranks: int, microbatches: int, times: np.ndarray, transfer: float, limit: float, kept: float,
    ahead: np.ndarray, late: np.ndarray, gap: float, most: float,
    kinds: np.ndarray, turns: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Deal every pass; fill `kinds` and `turns` [ranks, 3 m] (pass and microbatch) in each order.

    `times`: seconds of F, I, W. Rank r keeps at most ahead[r] microbatches between F and I, lets at
    most late[r] weights wait while forwards remain, and fills a wait of at least `gap` · W with a
    W. Gives the longest time any rank takes from its first pass to its last, and when the last pass
    ends; infinite where the rule gets stuck, or once a rank is sure to take longer than `most`.
    """
    m = microbatches
    arrived = np.full((2, ranks, m), NEVER)  # when what an F or an I needs is there
    arrived[0, 0] = 0.0
    done = np.zeros((ranks, 3), np.int64)
    now, begun = np.zeros(ranks), np.full(ranks, NEVER)
    wakes = np.full(ranks, NEVER)  # when a rank looks again; NEVER: something has to arrive first
    wakes[0] = 0.0
    rest = np.full(ranks, m * times.sum())  # seconds of passes that a rank still has to do
    left = 3 * ranks * m
    while left:
        r = np.argmin(wakes)
        t = wakes[r]
        if t == NEVER:
            return NEVER, NEVER
        f, i, w = done[r]
        forward = arrived[0, r, f] if f < m else NEVER
        backward = arrived[1, r, i] if i < f else NEVER
        room = (f - i) + kept * (i - w) + 1.0 <= limit + 1e-9
        chosen, nearest = choose(
            t, forward, backward, i - w, late[r], f - i < ahead[r], room, f < m, gap * times[W]
        )
        if chosen < 0:
            wakes[r] = nearest
            continue
        n = f + i + w
        kinds[r, n], turns[r, n] = chosen, done[r, chosen]
        begun[r] = min(begun[r], t)
        stop = t + times[chosen]
        now[r] = wakes[r] = stop
        done[r, chosen] += 1
        left -= 1
        rest[r] -= times[chosen]
        if stop - begun[r] + rest[r] > most:
            return NEVER, NEVER
        if n + 1 == 3 * m:
            wakes[r] = NEVER
        q = r + 1 if chosen == F else r - 1
        if chosen == F and r == ranks - 1:
            arrived[1, r, f] = stop
        elif chosen != W and 0 <= q < ranks:
            there = stop + transfer
            arrived[chosen, q, done[r, chosen] - 1] = there
            if done[q].sum() < 3 * m and wakes[q] > max(there, now[q]):
                wakes[q] = max(there, now[q])
    return (now - begun).max(), now.max()
