"""A greedy order of a zero-bubble V: passes of two chunks a rank, dealt by given pass times.

Chunk 0 goes down the ranks and chunk 1 up again, so that a microbatch's passes on a rank follow one
another as F0, F1, I1, I0. Ranks take turns: each does the backward and then the forward that is
next there, and fills a wait before it with weights' backwards, those of the past first; a wait too
short for one is filled all the same once the rank has waited as long as any. After Qi et al., arXiv
2401.10241, section 4, and the order its authors publish with it.

Shape letters: p ranks, m microbatches. Passes are counted by step: 0 F0, 1 F1, 2 I1, 3 I0.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import checked, inner

F, I, W = 0, 1, 2  # as `times` has them and as `kinds` are written
UNDONE = -1.0


class Hand(NamedTuple):
    """What has been dealt; all arrays are written in place."""

    kinds: np.ndarray  # int8 [p, 6 m]: F, I or W
    chunks: np.ndarray  # int8 [p, 6 m]
    turns: np.ndarray  # int32 [p, 6 m]: microbatches
    dealt: np.ndarray  # int64 [p]
    done: np.ndarray  # int64 [4, p]: passes of each step
    stop: np.ndarray  # float64 [4, p, m]: when they end; UNDONE before
    weights: np.ndarray  # int64 [p, 2 m]: turn * 4 + step of 2 and 3 in order: weights follow
    weighed: np.ndarray  # int64 [p]: of them, those done
    now: np.ndarray  # float64 [p]
    held: np.ndarray  # float64 [p]: activations
    waited: np.ndarray  # float64 [p]: since the first pass


def hand(p: int, m: int) -> Hand:
    """Nothing dealt yet."""
    made = np.zeros((p, 6 * m), np.int8), np.zeros((p, 6 * m), np.int8)
    numbers = np.zeros(p, np.int64), np.zeros((4, p), np.int64), np.full((4, p, m), UNDONE)
    waits = np.zeros((p, 2 * m), np.int64), np.zeros(p, np.int64)
    return Hand(
        *made, np.zeros((p, 6 * m), np.int32), *numbers, *waits,
        np.zeros(p), np.zeros(p), np.zeros(p),
    )  # fmt: skip


@inner
def arrival(stop: np.ndarray, step: int, rank: int, turn: int, transfer: float) -> float:
    """When what this pass needs from another rank is there; UNDONE: not yet dealt, or none."""
    before = rank - 1 if step in (0, 2) else rank + 1
    if before < 0 or before >= stop.shape[1] or stop[step, before, turn] == UNDONE:
        return UNDONE
    return stop[step, before, turn] + transfer


@inner
def write(hand: Hand, rank: int, kind: int, chunk: int, turn: int) -> None:
    n = hand.dealt[rank]
    hand.kinds[rank, n], hand.chunks[rank, n], hand.turns[rank, n] = kind, chunk, turn
    hand.dealt[rank] = n + 1


@inner
def put_weights(hand: Hand, rank: int, times: np.ndarray, sizes: np.ndarray) -> None:
    """The oldest backward for weights that is left."""
    at = hand.weighed[rank]
    turn, step = hand.weights[rank, at] // 4, hand.weights[rank, at] % 4
    write(hand, rank, W, 3 - step, turn)
    hand.weighed[rank] = at + 1
    hand.now[rank] += times[W]
    hand.held[rank] += sizes[W]


@inner
def put(
    hand: Hand, rank: int, step: int, times: np.ndarray, sizes: np.ndarray, transfer: float,
    limit: float,
) -> bool:  # fmt: skip
    """The next pass of this step; False where it cannot be."""
    turn, kind = hand.done[step, rank], F if step < I + 1 else I
    if turn >= hand.stop.shape[2] or hand.held[rank] + sizes[kind] > limit + 1e-9:
        return False
    if step > 0 and hand.stop[step - 1, rank, turn] == UNDONE:
        return False
    there = arrival(hand.stop, step, rank, turn, transfer)
    outer = (rank > 0) if step in (0, 2) else (rank < hand.stop.shape[1] - 1)
    if outer and there == UNDONE:
        return False
    start = max(hand.now[rank], there)
    if hand.done[0, rank] > 0:
        hand.waited[rank] += start - hand.now[rank]
    hand.now[rank] = hand.stop[step, rank, turn] = start + times[kind]
    hand.held[rank] += sizes[kind]
    write(hand, rank, kind, step if step < I + 1 else 3 - step, turn)
    if kind == I:
        hand.weights[rank, hand.done[2, rank] + hand.done[3, rank]] = turn * 4 + step
    hand.done[step, rank] = turn + 1
    return True


@inner
def left(hand: Hand, rank: int) -> int:
    """Backwards for weights that wait."""
    return hand.done[2, rank] + hand.done[3, rank] - hand.weighed[rank]


@inner
def fill(
    hand: Hand, rank: int, step: int, times: np.ndarray, sizes: np.ndarray, transfer: float,
    short: bool, allowed: np.ndarray,
) -> None:  # fmt: skip
    """Weights into the wait before a pass: all that fit, then one that is too long (`short`)
    where the rank would else wait more than any has, or than it is `allowed` to."""
    turn = hand.done[step, rank]
    there = arrival(hand.stop, step, rank, turn, transfer)
    while left(hand, rank) and there != UNDONE and there >= hand.now[rank] + times[W]:
        put_weights(hand, rank, times, sizes)
    most = max(hand.waited.max(), allowed.max() - allowed[rank])
    if short and left(hand, rank) and there - hand.now[rank] > most - hand.waited[rank]:
        put_weights(hand, rank, times, sizes)


@inner
def make_room(
    hand: Hand, rank: int, size: float, times: np.ndarray, sizes: np.ndarray, limit: float
) -> None:
    """Weights until `size` more activations fit."""
    while hand.held[rank] + size > limit + 1e-9 and left(hand, rank):
        put_weights(hand, rank, times, sizes)


@inner
def warm_up(
    hand: Hand, times: np.ndarray, sizes: np.ndarray, transfer: float, limit: float
) -> bool:
    """Forwards until the first backward: what fits while a rank waits for its first F1, then F0
    and F1 in turns until no rank has done less than the one before it."""
    p, m = hand.stop.shape[1], hand.stop.shape[2]
    for rank in range(p):
        if not put(hand, rank, 0, times, sizes, transfer, limit):
            return False
    for rank in range(p - 1, -1, -1):
        if rank < p - 1:
            there = hand.stop[1, rank + 1, 0] + transfer
            while (
                hand.held[rank] + sizes[F] * (2 + 2 * rank) <= limit + 1e-9
                and hand.now[rank] + times[F] <= there
                and hand.done[0, rank] < m
            ):
                for before in range(rank + 1):
                    if not put(hand, before, 0, times, sizes, transfer, limit):
                        return False
        if not put(hand, rank, 1, times, sizes, transfer, limit):
            return False
    step = 0
    for rank in range(1, p):
        while (
            hand.done[0, rank] + hand.done[1, rank]
            < hand.done[0, rank - 1] + hand.done[1, rank - 1]
            or hand.done[1, rank] <= hand.done[1, rank - 1] < m
        ):
            for after in range(p - 1, rank - 1, -1):
                if hand.done[step, after] < m and not put(
                    hand, after, step, times, sizes, transfer, limit
                ):
                    return False
            step = 1 - step
    return True


@inner
def backward(hand: Hand, rank: int) -> int:
    """The step of the backward that is next: I0 once I1 is ahead and what it needs is there, or is
    about to be because no I1 is left."""
    done, p, m = hand.done, hand.stop.shape[1], hand.stop.shape[2]
    if done[3, rank] >= done[2, rank]:
        return 2
    if rank == p - 1 or done[2, rank] >= m:
        return 3
    return 3 if hand.stop[3, rank + 1, done[3, rank]] != UNDONE else 2


@inner
def forward(hand: Hand, rank: int) -> int:
    """The step of the forward that is next; -1 where none can be."""
    done, p, m = hand.done, hand.stop.shape[1], hand.stop.shape[2]
    if done[1, rank] >= m:
        return -1
    if done[1, rank] >= done[0, rank]:
        return 0
    if rank == p - 1 or hand.stop[1, rank + 1, done[1, rank]] != UNDONE:
        return 1
    if done[0, rank] < m and (rank == 0 or hand.stop[0, rank - 1, done[0, rank]] != UNDONE):
        return 0
    return -1


@checked
def deal_v(
    hand: Hand, times: np.ndarray, sizes: np.ndarray, transfer: float, limit: float,
    short: np.ndarray, allowed: np.ndarray,
) -> bool:  # fmt: skip
    """Deal every pass; False where it gets stuck.

    `times`: seconds of F, I, W of a chunk; `sizes`: activations that each adds (I and W: takes
    away); `limit`: of them at most; `short` [2]: whether waits too short for a W are filled before
    a forward, before a backward; `allowed` [p]: how long each rank may wait, below 0: unknown.
    """
    p, m = hand.stop.shape[1], hand.stop.shape[2]
    if not warm_up(hand, times, sizes, transfer, limit):
        return False
    next_p = np.zeros(p, np.int64)
    for _ in range(2 * m):
        for rank in range(p):
            make_room(hand, rank, sizes[I], times, sizes, limit)
            next_p[rank] = backward(hand, rank)
        for step in (3, 2):  # I0 runs up the ranks, I1 down
            for place in range(p):
                rank = p - 1 - place if step == 3 else place
                if next_p[rank] != step:
                    continue
                fill(hand, rank, step, times, sizes, transfer, step == 3 or short[1], allowed)
                if not put(hand, rank, step, times, sizes, transfer, limit):
                    return False
        for rank in range(p):
            step = forward(hand, rank)
            if step < 0:
                continue
            make_room(hand, rank, sizes[F], times, sizes, limit)
            fill(hand, rank, step, times, sizes, transfer, short[0], allowed)
            if not put(hand, rank, step, times, sizes, transfer, limit):
                return False
    for rank in range(p):
        while left(hand, rank):
            put_weights(hand, rank, times, sizes)
        if hand.dealt[rank] < 6 * m:
            return False
    return True
