"""Plans as text and as PyTorch's schedule files, both ways."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from torch.distributed.pipelining import schedules as torch_schedules

from engine.core.errors import BadInput
from engine.training.plan.actions import Action, Kind, Plan, action, plan, read
from engine.training.plan.csv_file import from_csv, to_csv
from tests.engine.training.plan.plans import LOOSE, MADE, lowered, made, plans


def test_an_action_is_written_as_stage_kind_and_microbatch():
    assert action("2F0") == Action(2, Kind.F, 0)
    assert action("13SEND_B7") == Action(13, Kind.SEND_B, 7)
    assert str(action("0REDUCE_GRAD")) == "0REDUCE_GRAD"


@pytest.mark.parametrize("word", ["F0", "2X0", "2F", "2STEP1", "", "2F0B1"])
def test_a_word_that_is_no_action_is_refused_with_an_example(word):
    with pytest.raises(BadInput, match="action .*: .*"):
        action(word)


@LOOSE
@given(plans())
def test_text_reads_back_equal(one):
    assert read(str(one)) == one
    assert read(str(lowered(one))) == lowered(one)


@LOOSE
@given(plans())
def test_a_schedule_file_reads_back_equal(one):
    assert from_csv(to_csv(one)) == one
    assert from_csv(to_csv(lowered(one))) == lowered(one)


def test_text_names_the_line_of_a_word_it_cannot_read():
    with pytest.raises(BadInput, match="line 3.*0Q1"):
        read("0F0 0B0  # the first rank\n\n1F0 0Q1")
    with pytest.raises(BadInput, match="empty"):
        read("# nothing")


def test_a_rank_with_nothing_to_do_is_a_dash():
    idle = plan([[Action(0, Kind.F, 0)], []])
    assert read(str(idle)) == idle


def test_padding_and_pairs_of_a_foreign_file_are_read_as_their_actions():
    assert str(from_csv(",0F0,,(0F1;0B0)OVERLAP_F_B,0B1\n")) == "0F0 0F1 0B0 0B1"
    with pytest.raises(BadInput, match="row 1, cell 2"):
        from_csv("0F0,zero\n")


def test_the_optimiser_stays_here():
    assert to_csv(plan([[Action(0, Kind.F, 0), Action(0, Kind.STEP)]])) == "0F0\r\n"


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("size", [(2, 4), (4, 8)])
def test_pytorch_takes_our_plans(kind, size):
    """Its own reader, order check and dry run of transfers find nothing wrong."""
    one = made(kind, *size)
    theirs = rows(one)
    ranks = torch_schedules._validate_schedule(theirs, len(one.ranks), one.stages, one.microbatches)
    assert ranks == one.rank_of
    torch_schedules._simulate_comms_compute(rows(lowered(one)), ranks.__getitem__, one.stages)


def rows(one: Plan) -> dict[int, list]:
    lines = to_csv(one).splitlines()
    read_one = torch_schedules._Action.from_str
    return {rank: [read_one(cell) for cell in line.split(",")] for rank, line in enumerate(lines)}


def test_what_a_plan_knows_of_itself():
    one = made("zb_v", 3, 5)
    assert (one.stages, one.chunks, one.microbatches, len(one.ranks)) == (6, 2, 5, 3)
    assert one.rank_of == {0: 0, 1: 1, 2: 2, 3: 2, 4: 1, 5: 0}
    assert not one.lowered and lowered(one).lowered
    assert len(one) == 6 * 5 * 3


@pytest.mark.parametrize("size", [(2, 4), (4, 8), (4, 3), (3, 7)])
def test_zb_v_is_the_order_pytorch_has(size):
    p, m = size
    theirs = torch_schedules.ScheduleZBVZeroBubble._calculate_single_rank_operations
    asked = SimpleNamespace(pp_group_size=p, num_stages=2 * p, _n_microbatches=m)
    assert from_csv(foreign(theirs, asked, p)) == made("zb_v", p, m)


@pytest.mark.parametrize("size", [(2, 4), (4, 8), (4, 4)])
def test_interleaving_is_the_order_pytorch_has(size):
    p, m = size
    theirs = torch_schedules.ScheduleInterleaved1F1B._calculate_single_rank_operations
    asked = SimpleNamespace(
        n_local_stages=2, microbatches_per_round=p, pp_group_size=p, _n_microbatches=m
    )
    assert from_csv(foreign(theirs, asked, p)) == made("interleaved_1f1b", p, m)


def foreign(of_rank, asked, ranks: int) -> str:
    """PyTorch's own order as the file it would write, padding included."""
    lines = [of_rank(asked, rank) for rank in range(ranks)]
    return "\n".join(",".join("" if a is None else str(a) for a in line) for line in lines)
