"""What a step tells of feed-forwards of two sizes: how many tokens took which in every layer, and
beside the log what each token of each request took."""

from collections.abc import Iterator, MutableMapping, Sequence

import numpy as np

from engine.core.events import AnyEvent, Blob, Route
from engine.inference.requests.step import Result, Step
from engine.models.duo.shape import LETTERS

TAKEN = "modules/"  # of blobs: request / first position, int8 [tokens, layers] of `LETTERS`


def told_modules(
    step: Step, result: Result, names: Sequence[str], now: float,
    blobs: MutableMapping[str, np.ndarray],
) -> Iterator[AnyEvent]:  # fmt: skip
    """Events of a step, in order; none where no layer has two. `names`: of requests by row."""
    if (routes_TL := result.routes_TL) is None:
        return
    own = int(step.queries_B.sum())
    for layer, taken_T in enumerate(routes_TL[:own].T):
        yield Route(now, f"layer {layer}", np.bincount(taken_T, minlength=len(LETTERS)).tolist())
    ends_B = np.cumsum(step.queries_B)
    told = step.rows_B.tolist(), step.starts_B.tolist(), step.queries_B.tolist(), ends_B.tolist()
    for row, first, count, end in zip(*told, strict=True):
        ref = f"{TAKEN}{names[row]}/{first}"
        blobs[ref] = routes_TL[end - count : end]
        yield Blob(now, ref, ref, list(blobs[ref].shape))
