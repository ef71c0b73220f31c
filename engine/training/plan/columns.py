"""A plan as columns, and what each action waits for: the form that clocks and checkers walk.

Actions are numbered rank by rank in their order. An action waits for the one before it on its rank
and, where `waits` names one, for an action elsewhere; a receive and its send are one another's
`partner`.
"""

from dataclasses import dataclass

import numpy as np

from engine.training.plan.actions import KINDS, NONE, Kind, Plan

CODES: dict[Kind, int] = {kind: code for code, kind in enumerate(KINDS.values())}
NOBODY = -1
F, B, I, W = (CODES[kind] for kind in (Kind.F, Kind.B, Kind.I, Kind.W))
SEND_F, RECV_F, SEND_B, RECV_B = (
    CODES[kind] for kind in (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
)


@dataclass(frozen=True)
class Columns:
    """One entry for each action. `first`: where each rank's actions begin, and the total."""

    first: np.ndarray  # int64 [ranks + 1]
    rank: np.ndarray  # int64
    stage: np.ndarray  # int64
    kind: np.ndarray  # int64, as CODES says
    microbatch: np.ndarray  # int64, NONE where it is of none
    waits: np.ndarray  # int64, the action elsewhere that it needs; NOBODY
    partner: np.ndarray  # int64, the other end of a transfer; NOBODY

    @property
    def last_stage(self) -> int:
        return int(self.stage.max(initial=0))


def columns(given: Plan) -> Columns:
    """The columns of a plan. Of actions that stand twice, the later one is waited for."""
    counts = [len(rank) for rank in given.ranks]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = [each for rank in given.ranks for each in rank]
    stage = np.array([each.stage for each in flat], np.int64)
    kind = np.array([CODES[each.kind] for each in flat], np.int64)
    microbatch = np.array([each.microbatch for each in flat], np.int64)
    rank = np.repeat(np.arange(len(counts)), counts)
    place = _places(stage, kind, microbatch)
    return Columns(
        first, rank, stage, kind, microbatch, _waits(place, stage, kind, microbatch, rank),
        _partners(place, stage, kind, microbatch),
    )  # fmt: skip


def _places(stage: np.ndarray, kind: np.ndarray, microbatch: np.ndarray) -> np.ndarray:
    """[kinds, stages + 2, microbatches + 1] -> number of that action. The stages are moved by one,
    so that those before the first and after the last are there, with nothing in them."""
    shape = (len(CODES), int(stage.max(initial=0)) + 3, int(microbatch.max(initial=0)) + 2)
    place = np.full(shape, NOBODY, np.int64)
    place[kind, stage + 1, microbatch] = np.arange(len(stage))
    return place


def _waits(
    place: np.ndarray, stage: np.ndarray, kind: np.ndarray, microbatch: np.ndarray, rank: np.ndarray
) -> np.ndarray:
    """The pass beside it that a pass needs; NOBODY where a receive stands for it."""
    waits = np.full(len(stage), NOBODY, np.int64)
    forward = kind == F
    waits[forward] = place[F, stage[forward], microbatch[forward]]
    backward = (kind == B) | (kind == I)
    after, of = stage[backward] + 2, microbatch[backward]
    waits[backward] = np.where(place[B, after, of] >= 0, place[B, after, of], place[I, after, of])
    for passes, receive in ((forward, RECV_F), (backward, RECV_B)):
        got = place[receive, stage + 1, microbatch] >= 0
        waits[passes & got] = NOBODY
    waits[microbatch == NONE] = NOBODY
    return waits


def _partners(
    place: np.ndarray, stage: np.ndarray, kind: np.ndarray, microbatch: np.ndarray
) -> np.ndarray:
    partner = np.full(len(stage), NOBODY, np.int64)
    for code, other, step in (
        (SEND_F, RECV_F, 1),
        (RECV_F, SEND_F, -1),
        (SEND_B, RECV_B, -1),
        (RECV_B, SEND_B, 1),
    ):
        mine = kind == code
        partner[mine] = place[other, stage[mine] + 1 + step, microbatch[mine]]
    return partner
