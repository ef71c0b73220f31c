"""Trees of drafts, row by row (numba): what each node sees, and the path of a tree that held.

A row's drafts lie behind its known tokens in the order they were drafted, each after its parent.
Attention reads a node's ancestors by their places, in the order of the path: the ancestor mask as a
list, so that a node's sums are those of plain decoding, bit for bit.
Shape letters: R rows, W tokens of a row, P pages of a row, D rows that decode, K drafts of a row,
N drafts of all rows, Q sequences of a batch, S samples (one for each row and one after each draft).
"""

import numpy as np

from engine.kernels.compiled import checked, inner


@checked
def look_up(
    tokens_RW: np.ndarray,
    rows_D: np.ndarray,
    known_R: np.ndarray,
    shortest: int,
    longest: int,
    branches: int,
    drafts_DK: np.ndarray,
    parents_DK: np.ndarray,
) -> None:
    """Fill a prefix tree of what followed a row's last tokens at up to `branches` places.

    Places where more of the last tokens stand come first, later ones among equals; each may bring
    an equal share of what is left. Drafts are -1 beyond what is found.
    """
    K = drafts_DK.shape[1]
    drafts_DK[:] = -1
    for d in range(len(rows_D)):
        row, known = tokens_RW[rows_D[d]], known_R[rows_D[d]]
        count = brought = 0
        for length in range(min(longest, known - 1), shortest - 1, -1):
            for end in range(known - 2, length - 2, -1):
                if brought == branches or count == K:
                    break
                here = 0
                while here <= min(length, end) and row[end - here] == row[known - 1 - here]:
                    here += 1
                if here != length and (here < length or length < longest):
                    continue  # not as many, or more: its turn was before
                share, node, before = -(-(K - count) // (branches - brought)), -1, count
                for i in range(end + 1, known):
                    if count - before == share:
                        break
                    child = -1
                    for other in range(count):
                        if parents_DK[d, other] == node and drafts_DK[d, other] == row[i]:
                            child = other
                    if child < 0:
                        child, count = count, count + 1
                        drafts_DK[d, child], parents_DK[d, child] = row[i], node
                    node = child
                brought += count > before


@checked
def depths(parents_N: np.ndarray, drafts_D: np.ndarray, depth_S: np.ndarray) -> int:
    """Fill how many drafts each sample comes after: 0 at a row's own, then those of each node.

    Returns the first node whose parent does not come before it, -1 where there is none.
    """
    s = n = 0
    for d in range(len(drafts_D)):
        depth_S[s] = 0
        for i in range(drafts_D[d]):
            parent = parents_N[n + i]
            if parent < -1 or parent >= i:
                return n + i
            depth_S[s + i + 1] = depth_S[s + parent + 1] + 1
        s, n = s + drafts_D[d] + 1, n + drafts_D[d]
    return -1


@checked
def twins(
    tokens_RW: np.ndarray,
    rows_D: np.ndarray,
    known_R: np.ndarray,
    parents_N: np.ndarray,
    drafts_D: np.ndarray,
) -> int:
    """The first row with two like drafts after one token, -1 where there is none."""
    n = 0
    for d in range(len(rows_D)):
        row = tokens_RW[rows_D[d], known_R[rows_D[d]] :]
        for i in range(drafts_D[d]):
            for other in range(i):
                if parents_N[n + i] == parents_N[n + other] and row[i] == row[other]:
                    return rows_D[d]
        n += drafts_D[d]
    return -1


@checked
def seen(
    tables_RP: np.ndarray,
    row_Q: np.ndarray,
    known_Q: np.ndarray,
    node_Q: np.ndarray,
    first_Q: np.ndarray,
    parents_N: np.ndarray,
    page_size: int,
    slots_QW: np.ndarray,
    context_Q: np.ndarray,
) -> None:
    """Fill the places of what each sequence sees, in order, and how many there are.

    A row's first `known_Q` tokens, then the ancestors of its draft `node_Q` and that draft itself;
    none where it is -1. `first_Q`: where the row's parents begin.
    """
    for q in range(len(row_Q)):
        table, known = tables_RP[row_Q[q]], known_Q[q]
        for at in range(0, known, page_size):
            slot = table[at // page_size] * page_size
            for i in range(at, min(at + page_size, known)):
                slots_QW[q, i] = slot + i - at
        depth, node = 0, node_Q[q]
        while node >= 0:
            depth, node = depth + 1, parents_N[first_Q[q] + node]
        context_Q[q], node = known + depth, node_Q[q]
        while node >= 0:
            depth -= 1
            place = known + node
            slots_QW[q, known + depth] = table[place // page_size] * page_size + place % page_size
            node = parents_N[first_Q[q] + node]


@inner
def _walk(drafts, parents, tokens, order, slots, table, known, page_size, moves_N2, moves):
    """Put the path that `tokens` repeat first in `order`; how many drafts it has, its last one and
    how many keys have to move, after the `moves` there are."""
    held, node, child, count = 0, -1, 0, len(parents)
    while child < count:
        child = node + 1
        while child < count and (parents[child] != node or drafts[child] != tokens[node + 1]):
            child += 1
        if child < count:
            if child != held:
                for way, place in enumerate((known + child, known + held)):
                    slots[way] = table[place // page_size] * page_size + place % page_size
                moves_N2[moves, 0], moves_N2[moves, 1] = slots[0], slots[1]
                moves += 1
            order[held], held, node = child, held + 1, child
    return held, node, moves


@inner
def _branches(parents, branch, order, at):
    """Number branches beside the path, and put each from where it leaves down its first children
    into `order`."""
    number, count = 0, len(parents)
    for i in range(count):
        node = i
        number += branch[node] < 0
        while node >= 0 and branch[node] < 0:
            branch[node], order[at], at = number, node, at + 1
            child = node + 1
            while child < count and parents[child] != node:
                child += 1
            node = child if child < count else -1


@checked
def straighten(
    tokens_RW: np.ndarray,
    tables_RP: np.ndarray,
    rows_D: np.ndarray,
    known_R: np.ndarray,
    parents_N: np.ndarray,
    drafts_D: np.ndarray,
    tokens_S: np.ndarray,
    lag: int,
    page_size: int,
    held_D: np.ndarray,
    cached_D: np.ndarray,
    order_S: np.ndarray,
    branch_S: np.ndarray,
    moves_N2: np.ndarray,
) -> int:
    """Put the path that the target's `tokens_S` repeat in front of each row's other drafts.

    Fills how many drafts hold, how many of those are in every cache (a leaf is not in that of a
    model that drafts, `lag`), which draft went to each place (the last sample of a row: itself),
    the branch it is told on (0: the path), and the (from, to) slots of keys that are not in place;
    returns their number.
    """
    s = n = moves = 0
    order = np.empty(drafts_D.max() if len(drafts_D) else 0, np.int64)
    words, slots = np.empty((2, len(order)), np.int32), np.empty(2, np.int32)
    for d in range(len(rows_D)):
        count, row, known = drafts_D[d], rows_D[d], known_R[rows_D[d]]
        drafts, parents = tokens_RW[row, known:], parents_N[n : n + count]
        branch, said = branch_S[s : s + count + 1], tokens_S[s : s + count + 1]
        held, last, moves = _walk(
            drafts, parents, said, order, slots, tables_RP[row], known, page_size, moves_N2, moves
        )
        leaf = True
        for i in range(count):
            leaf = leaf and parents[i] != last
        held_D[d], cached_D[d] = held, held - lag if held > 0 and leaf else held
        branch[:] = -1
        for i in range(held):
            branch[order[i]] = 0
        _branches(parents, branch, order, held)
        for i in range(count):
            words[0, i], words[1, i] = drafts[order[i]], branch[order[i]]
        for i in range(count):
            drafts[i], branch[i], order_S[s + i] = words[0, i], words[1, i], s + order[i]
        branch[count], order_S[s + count] = 0, s + count
        s, n = s + count + 1, n + count
    return moves
