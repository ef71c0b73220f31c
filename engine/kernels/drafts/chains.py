"""Chains of drafts of a batch, row by row (numba): how many each may have, and which hold.

Shape letters: R rows, W tokens of a row, D rows that decode, K tokens drafted, S samples (one for
each row and one after each of its drafts, in a row), N pages.
"""

import numpy as np

from engine.kernels.compiled import checked


@checked
def short(
    rows_D: np.ndarray,
    known_R: np.ndarray,
    pages_R: np.ndarray,
    page_size: int,
    short_N: np.ndarray,
) -> int:
    """Pages that rows are short of for the tokens that they know; fills `short_N` with the row of
    each, as far as there are places."""
    count = 0
    for d in range(len(rows_D)):
        row = rows_D[d]
        for _ in range((known_R[row] + page_size - 1) // page_size - pages_R[row]):
            if count < len(short_N):
                short_N[count] = row
            count += 1
    return count


@checked
def plan(
    tokens_RW: np.ndarray,
    rows_D: np.ndarray,
    known_R: np.ndarray,
    limit_R: np.ndarray,
    alone_R: np.ndarray,
    pages_R: np.ndarray,
    found_DK: np.ndarray,
    found: bool,
    left: int,
    free: int,
    page_size: int,
    drafts_D: np.ndarray,
    short_N: np.ndarray,
) -> tuple[int, int]:
    """Fill how many tokens each row drafts, and `short_N` with the row of each page that is short
    for them; how many both are in all.

    At most `left` drafts in all, on at most `free` pages, none past a row's limit and none of rows
    that go `alone`. Where they were `found`, no more than that, and they are written down after the
    row's known tokens.
    """
    total = pages = 0
    for d in range(len(rows_D)):
        row = rows_D[d]
        known = known_R[row]
        count = max(0, min(found_DK.shape[1], limit_R[row] - known - 1, left - total))
        if alone_R[row]:
            count = 0
        if found:
            here = 0
            while here < count and found_DK[d, here] >= 0:
                here += 1
            count = here
        short = (known + count + page_size - 1) // page_size - pages_R[row]
        if short > free:
            count, short = max(0, min(count, pages_R[row] * page_size - known)), 0
        for _ in range(short):
            short_N[pages] = row
            pages += 1
        free -= max(short, 0)
        total += count
        drafts_D[d] = count
        if found:
            for i in range(count):
                tokens_RW[row, known + i] = found_DK[d, i]
    return total, pages


@checked
def behind(
    rows_D: np.ndarray, known_R: np.ndarray, starts_B: np.ndarray, queries_B: np.ndarray
) -> int:
    """Fill the new tokens of sequences that decode, which come first: all that they know and have
    not cached; how many all sequences have."""
    total = 0
    for d in range(len(rows_D)):
        queries_B[d] = known_R[rows_D[d]] - starts_B[d]
    for b in range(len(queries_B)):
        total += queries_B[b]
    return total


@checked
def samples(
    rows_X: np.ndarray,
    from_X: np.ndarray,
    drafts_B: np.ndarray,
    decodes: int,
    queries_B: np.ndarray,
    rows_S: np.ndarray,
    from_S: np.ndarray,
    ahead_S: np.ndarray,
) -> None:
    """Fill which row each sample is of, from which sequence, after how many drafts: one for each of
    `rows_X`, of which the first `decodes` have drafts, and one for each of those. Drafts are new
    tokens of their sequences."""
    s = 0
    for x in range(len(rows_X)):
        count = drafts_B[x] if x < decodes else 0
        if x < decodes:
            queries_B[x] += count
        for ahead in range(count + 1):
            rows_S[s], from_S[s], ahead_S[s] = rows_X[x], from_X[x], ahead
            s += 1


@checked
def accept(
    tokens_RW: np.ndarray,
    rows_D: np.ndarray,
    known_R: np.ndarray,
    cached_R: np.ndarray,
    pages_R: np.ndarray,
    drafts_D: np.ndarray,
    hold_D: np.ndarray,
    cache_D: np.ndarray,
    tokens_S: np.ndarray,
    due_R: np.ndarray,
    ends_R: np.ndarray,
    ends_V: np.ndarray,
    lag: int,
    together: bool,
    page_size: int,
    first_D: np.ndarray,
    kept_D: np.ndarray,
    over_D: np.ndarray,
    special_D: np.ndarray,
    drafts_S: np.ndarray,
) -> int:
    """Rows go on after the drafts that the target's `tokens_S` repeat, and one token more.

    Fills each row's first sample, how many drafts it kept, how many pages it has beyond its known
    tokens (returned: their sum), whether it is to be looked at (`due_R` tokens are known, or one
    that it took ends its answer), and the draft after each sample. Of a row the first `hold_D`
    drafts may hold, and the keys of the first `cache_D` of them but the last `lag` lie in place,
    those of others are computed again. `together`, a mistake: all keep as many as the one that kept
    most.
    """
    s = most = 0
    for d in range(len(rows_D)):
        row, count, held = rows_D[d], drafts_D[d], True
        first_D[d], kept_D[d] = s, 0
        for i in range(count):
            drafts_S[s + i] = tokens_RW[row, known_R[row] + i]
            held = held and i < hold_D[d] and drafts_S[s + i] == tokens_S[s + i]
            kept_D[d] += held
        drafts_S[s + count] = 0
        most = max(most, kept_D[d])
        s += count + 1
    over = 0
    for d in range(len(rows_D)):
        row, count, s = rows_D[d], drafts_D[d], first_D[d]
        if together:
            kept_D[d] = min(most, count)
        kept, known = kept_D[d], known_R[row]
        tokens_RW[row, known + kept] = tokens_S[s + kept]
        cached_R[row] = known + min(kept, max(cache_D[d] - lag, 0))
        known_R[row] = known + kept + 1
        over_D[d] = max(0, pages_R[row] - (known + kept + page_size) // page_size)
        over += over_D[d]
        special = known_R[row] >= due_R[row]
        if ends_R[row]:
            for i in range(kept + 1):
                special = special or ends_V[tokens_S[s + i]]
        special_D[d] = special
    return over


@checked
def told(
    rows_T: np.ndarray,
    first_T: np.ndarray,
    drafts_T: np.ndarray,
    kept_T: np.ndarray,
    special_T: np.ndarray,
    drafts_S: np.ndarray,
    doubts_S: np.ndarray,
    tokens_S: np.ndarray,
    sure_S: np.ndarray,
    rows_S: np.ndarray,
    refused_S: np.ndarray,
    plain_S: np.ndarray,
) -> None:
    """Put into tokens_S and sure_S what is told: each taker's drafts, then its own token.

    The token is the sample after the drafts kept; of those refused `doubts_S` are told. Fills also
    whose each is, which are refused, and which are of takers that are not `special_T`.
    """
    for t in range(len(rows_T)):
        first, last = first_T[t], first_T[t] + drafts_T[t]
        token, sure = tokens_S[first + kept_T[t]], sure_S[first + kept_T[t]]
        for s in range(first, last + 1):
            rows_S[s], plain_S[s] = rows_T[t], not special_T[t]
            refused_S[s] = s < last and s >= first + kept_T[t]
            if s < last:
                tokens_S[s] = drafts_S[s]
            if refused_S[s]:
                sure_S[s] = doubts_S[s]
        tokens_S[last], sure_S[last] = token, sure


@checked
def give_back(
    tables_RP: np.ndarray,
    rows_D: np.ndarray,
    pages_R: np.ndarray,
    filled_R: np.ndarray,
    over_D: np.ndarray,
    page_size: int,
    rows_N: np.ndarray,
    pages_N: np.ndarray,
    starts_N: np.ndarray,
) -> None:
    """Take the last `over_D` pages from each row's table; fill whose they were, which and where."""
    n = 0
    for d in range(len(rows_D)):
        row = rows_D[d]
        pages_R[row] -= over_D[d]
        filled_R[row] = pages_R[row] * page_size if over_D[d] else filled_R[row]
        for i in range(over_D[d]):
            at = pages_R[row] + i
            rows_N[n], pages_N[n], starts_N[n] = row, tables_RP[row, at], at * page_size
            tables_RP[row, at] = -1
            n += 1
