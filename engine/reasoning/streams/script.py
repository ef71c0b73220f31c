"""Several streams of tokens over one model: which token may see which, at which positions, as data.

In come tokens by stream and the rule of a system; out comes a `Script`: what a trainer, a forward
from scratch and a perturbation need. The caches that do the same step by step are in
`caches`. Shape letters: N tokens, S streams, R rows of time, J thoughts, L tokens read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.core.names import suggest


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """Tokens of all streams with their explicit mask and positions, in any order."""

    tokens_N: np.ndarray  # int64
    stream_N: np.ndarray
    index_N: np.ndarray  # place in its stream
    positions_N: np.ndarray
    visible_NN: np.ndarray  # bool: row sees column


def who_sees(text: str, names: Sequence[str]) -> np.ndarray:
    """sees_SS[reader, other] from text such as `think: read; say: ask think`.

    Every stream sees itself. Raises BadInput for a name that is no stream's.
    """
    sees_SS = np.eye(len(names), dtype=bool)
    for part in filter(None, (part.strip() for part in text.split(";"))):
        reader, _, others = part.partition(":")
        for name in (reader.strip(), *others.split()):
            if name not in names:
                raise BadInput(f"sees: {name!r} is no stream; {suggest(name, names)}")
            sees_SS[names.index(reader.strip()), names.index(name)] = True
    return sees_SS


def in_rows(tokens_RS: np.ndarray, sees_SS: np.ndarray) -> Script:
    """One token of every stream in each row of time (arXiv 2605.12460), laid row by row.

    A token sees its own stream up to itself and of the streams it may see all earlier rows, never
    its own row; each stream counts its own positions.
    """
    rows, streams = tokens_RS.shape
    row_N = np.repeat(np.arange(rows), streams)
    stream_N = np.tile(np.arange(streams), rows)
    earlier_NN = row_N[:, None] > row_N
    itself_NN = np.eye(len(row_N), dtype=bool)
    visible_NN = earlier_NN & sees_SS[stream_N[:, None], stream_N] | itself_NN
    return Script(tokens_RS.reshape(-1).astype(np.int64), stream_N, row_N, row_N, visible_NN)


def while_reading(
    read: Sequence[int], think: Sequence[int], upto: Sequence[int], apart: int
) -> Script:
    """What is read, then what is thought of it; thought j sees the first `upto[j]` tokens read.

    What is read never sees a thought, so it can be computed before or beside it. Thoughts count
    from `apart` on, however much is read: arrivals shift nothing. Raises BadInput where what is
    read would reach into the positions of thoughts.
    """
    if len(read) > apart:
        raise BadInput(
            f"{len(read)} tokens to read and thoughts from position {apart}: keep them further "
            "apart or read less"
        )
    count = len(read) + len(think)
    stream_N = np.repeat([0, 1], [len(read), len(think)])
    index_N = np.concatenate([np.arange(len(read)), np.arange(len(think))])
    visible_NN = np.tri(count, dtype=bool)
    seen_JL = np.arange(len(read)) < np.asarray(upto, np.int64)[:, None]
    visible_NN[len(read) :, : len(read)] = seen_JL
    tokens_N = np.array([*read, *think], np.int64)
    return Script(tokens_N, stream_N, index_N, index_N + apart * stream_N, visible_NN)


def reach(visible_NN: np.ndarray, layers: int) -> np.ndarray:
    """Whether a token's logits may depend on another token: what it sees, through each layer.

    Attention passes on what others have seen in the layer below, so what may be seen indirectly
    grows with depth.
    """
    step_NN = visible_NN.astype(np.float32)
    reach_NN = np.eye(len(step_NN), dtype=np.float32)
    for _ in range(layers):
        reach_NN = np.minimum(step_NN @ reach_NN, 1)
    return reach_NN > 0
