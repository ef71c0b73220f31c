"""What became of each drafted token, read off the order in which a verification tells them: drafts
that held, those refused, at last the target's own."""

import numpy as np

SAID, HELD, REFUSED, ROLLED_BACK = range(4)  # said by the target itself; drafts, by what came


def groups(lane: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of one lane after another, in time order [N], and which of those begin what came at
    one moment [N]."""
    order = np.argsort(lane, kind="stable")
    lanes, times = lane[order], time[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (lanes[1:] != lanes[:-1]) | (times[1:] != times[:-1])
    return order, begins


def parts(
    lane: np.ndarray, time: np.ndarray, accepted: np.ndarray, branch: np.ndarray
) -> np.ndarray:
    """uint8 [N]: SAID, or of a draft whether it held, was refused, or followed a refused one on its
    branch and was rolled back with it, unjudged. A draft that ended its request counts as said."""
    order, begins = groups(lane, time)
    said, on = accepted[order] > 0, branch[order]
    last = np.append(begins[1:], True)[: len(order)]
    found = np.where(said, np.where(last, SAID, HELD), REFUSED)
    found[1:][~begins[1:] & ~said[1:] & ~said[:-1] & (on[1:] == on[:-1])] = ROLLED_BACK
    out = np.zeros(len(order), np.uint8)
    out[order] = found
    return out


def verified(
    lane: np.ndarray, time: np.ndarray, accepted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each verification of a request that had drafts: when (seconds), and tokens it came to."""
    order, begins = groups(lane, time)
    first = np.flatnonzero(begins)
    if not len(first):
        return np.zeros(0), np.zeros(0)
    said = np.add.reduceat((accepted[order] > 0).astype(np.int64), first)
    many = (np.diff(np.append(first, len(order))) > 1) & (said > 0)
    when = time[order][first][many]
    by_time = np.argsort(when, kind="stable")
    return when[by_time], said[many][by_time].astype(np.float64)
