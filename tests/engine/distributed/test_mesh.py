"""Ranks on a mesh: who is whose neighbour, what collectives give and leave in the log."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Move, Span
from engine.distributed.faults import RankLost
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.mesh import MeshShape, fitted
from tests.engine.distributed import works

SHAPE = MeshShape(data=2, tensor=2)
ROWS = 8  # of 3 numbers, float32


@pytest.fixture(scope="module")
def records():
    return launch(works.collectives, 4, ROWS, limit=300)


def test_tensor_ranks_are_neighbours_and_every_rank_has_a_place_of_its_own():
    shape = MeshShape(data=2, pipeline=3, context=2, tensor=2)
    assert shape.ranks == 24
    assert shape.members(0, ["tensor"]) == [0, 1]
    assert shape.members(5, ["context"]) == [5, 7]
    assert shape.members(0, ["pipeline"]) == [0, 4, 8]
    assert shape.members(13, ["data"]) == [1, 13]
    assert shape.members(1, ["data", "context"]) == [1, 3, 13, 15]
    places = [tuple(shape.place(rank).values()) for rank in range(24)]
    assert len(set(places)) == 24
    assert places[23] == (1, 2, 1, 1)


def test_a_mesh_takes_what_is_left_for_data_or_says_what_would_divide():
    assert fitted(8, context=2, tensor=2) == MeshShape(data=2, context=2, tensor=2)
    with pytest.raises(BadInput, match=r"pp1 × cp1 × tp3: 3 ranks do not divide 8; start 6 or 9"):
        fitted(8, tensor=3)
    with pytest.raises(BadInput, match=r"tp3: 3 ranks do not divide 2; start 3, or change it"):
        fitted(2, tensor=3)
    with pytest.raises(BadInput, match="data.*4096"):
        fitted(100_000)


def test_a_mesh_of_another_size_than_the_ranks_says_so():
    with pytest.raises(BadInput, match="mesh dp3 × pp1 × cp1 × tp1: has 3 places for 2 ranks"):
        launch(works.wrong_mesh, 2, MeshShape(data=3), limit=300)


def test_collectives_give_what_they_say(records):
    whole = [np.arange(ROWS * 3, dtype=np.float32).reshape(ROWS, 3) * (r + 1) for r in range(4)]
    for record in records:
        r = record.rank
        pair = SHAPE.members(r, ["tensor"])
        at = pair.index(r)
        total = whole[pair[0]] + whole[pair[1]]
        assert (record.array("all_reduce") == total).all()
        assert (record.array("largest") == whole[pair[1]]).all()
        assert (record.array("all_gather") == np.hstack([whole[p] for p in pair])).all()
        assert (record.array("reduce_scatter") == total[ROWS // 2 * at :][: ROWS // 2]).all()
        assert (record.array("later") == sum(whole)).all()
        assert record.array("told") == 10 * SHAPE.members(r, ["data"])[1 - r // 2]


def test_every_collective_is_a_span_and_its_bytes_by_link_are_in_the_log(records):
    events = merged(records)
    assert [e.time for e in events] == sorted(e.time for e in events)
    size = ROWS * 3 * 4
    spans = [e for e in events if isinstance(e, Span) and e.lane == "rank 1"]
    found = {(s.name, "axis=tp" in s.tag): s.bytes for s in spans}
    assert found["all_reduce", True] == size  # 2(n - 1)/n of the tensor
    assert found["all_gather", True] == size  # (n - 1)/n of the result, which is twice as large
    assert found["reduce_scatter", True] == size / 2
    moves = [e for e in events if isinstance(e, Move)]
    by_link = {(m.source, m.target) for m in moves if "all_four" in m.tag}
    assert by_link == {(f"rank {r}", f"rank {(r - 1) % 4}") for r in range(4)}
    assert {m.bytes for m in moves if "all_four" in m.tag} == {2 * size * 3 / 4}
    assert all(m.start <= m.time for m in moves)


def test_of_ranks_at_a_collective_the_one_that_failed_is_named():
    with pytest.raises(RankLost, match="rank 1: ValueError: no such thing while in forward"):
        launch(works.fail_beside_a_collective, 3, limit=300)
