"""A rank that is killed or stopped anywhere ends the run, is named, and costs no loss.

Every phase is tried, on one rank or the other: the run ends with one line that names both, no
process is left, and the run that goes on from the checkpoint finds the same losses bit for bit.
With --full every pair of them, and also four ranks.
"""

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Move, Span
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.distributed.faults import RankLost, hung, read_fault
from engine.distributed.mesh import MeshShape
from engine.training.loop.settings import Training
from engine.training.parallel.sharding_config import ShardingConfig
from engine.training.trainer.config import TrainerConfig
from engine.training.trainer.run import run
from tests.engine.distributed.test_launch import alive
from tests.engine.training.tiny import tiny, trainer

PHASES = ("forward", "backward", "collective", "optimiser", "checkpoint", "checkpoint write")
STEP = 5  # of 8; a checkpoint is due at its end, and there was one two steps before
TWO = ShardingConfig(mesh=MeshShape(data=2))
REPLICAS = "parallel.mesh.data"
SHORT = Training(
    steps=8, warmup=1, decay=2, rate=1e-2, tokens=64, context=8, long_context=8, report=1,
    evaluate=8, checkpoint=2, precision="float32",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def server() -> None:
    """A server of processes that has loaded the trainer, whatever was launched before."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model and tokens for it."""
    return tiny(tmp_path_factory.mktemp("faults"), "llama-2", num_hidden_layers=1)


def config(place: Path, out: str, **changes: object) -> TrainerConfig:
    return trainer(place, out, SHORT, {"parallel": TWO, **changes})


def losses(log: Log) -> dict[int, float]:
    """Loss by steps done."""
    steps = [int(span.tag.partition(":")[2]) for span in log.of(Span) if span.name == "steps"]
    values = [level.value for level in log.of(Level) if level.name == "loss"]
    return dict(zip(steps, values, strict=True))


def failed(config: TrainerConfig) -> tuple[Log, BadInput, list[int]]:
    """The log of a run that goes wrong, what was told, and the processes it had."""
    seen: set[int] = set()
    log = Log()
    live = Live(log)
    look = live.poll

    def poll(now: float) -> list:
        seen.update(p.pid for p in multiprocessing.active_children() if p.pid)
        return look(now)

    live.poll = poll  # type: ignore[method-assign]
    with pytest.raises(BadInput) as found:
        run(config, live)
    return log, found.value, sorted(seen)


def whole(place: Path, ranks: int) -> Log:
    return Run.execute(run, config(place, f"whole-{ranks}", **{REPLICAS: ranks})).log


@pytest.fixture(scope="module")
def of_two(place: Path) -> Log:
    """The run of two ranks that nothing happens to; its checkpoint is in whole-2."""
    return whole(place, 2)


@pytest.fixture(scope="module")
def undisturbed(of_two: Log) -> dict[int, float]:
    """Its losses."""
    found = losses(of_two)
    assert sorted(found) == list(range(1, 9))
    return found


@pytest.fixture(scope="module")
def four_undisturbed(place: Path) -> dict[int, float]:
    """The same of four ranks."""
    return losses(whole(place, 4))


def pairs(ranks: int) -> Iterator[tuple[str, int]]:
    for phase in PHASES:
        yield from ((phase, rank) for rank in range(ranks))


def killed_and_resumed(place: Path, phase: str, rank: int, ranks: int) -> dict[int, float]:
    """The losses before and after a kill; checks everything else on the way."""
    out = f"{ranks}-{rank}-{phase.replace(' ', '-')}"
    struck = config(place, out, fault=f"{rank}:{phase}:{STEP}", **{REPLICAS: ranks})
    log, fault, pids = failed(struck)
    assert f"rank {rank}: was killed by SIGKILL while in {phase} of step {STEP}" in str(fault)
    assert isinstance(fault, RankLost) and fault.rank == rank and "\n" not in str(fault)
    assert len(pids) == ranks and not [pid for pid in pids if alive(pid)]
    (mark,) = (mark for mark in log.of(Mark) if mark.name == "lost")
    assert mark.lane == f"rank {rank}"
    first = losses(log)
    done = Run.execute(run, update(struck, {"fault": ""})).log
    marks = {mark.name: mark.text for mark in done.of(Mark)}
    # The first rank needs nobody for its last update and its file: it may have got anywhere there.
    late = rank > 0 and phase in ("optimiser", "checkpoint")
    assert marks["resume"].split()[2] in (("4", "6") if late else ("4",))
    assert "fallback" not in marks
    return first | losses(done)


OF_TWO = [
    pytest.param(phase, rank, marks=[] if PHASES.index(phase) % 2 == rank else [pytest.mark.slow])
    for phase, rank in pairs(2)
]  # of each phase one rank, by turns; with --full both


@pytest.mark.parametrize(("phase", "rank"), OF_TWO)
def test_a_rank_killed_anywhere_costs_no_loss(
    phase: str, rank: int, place: Path, undisturbed: dict[int, float]
) -> None:
    assert killed_and_resumed(place, phase, rank, 2) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "rank"), [*pairs(4)])
def test_of_four_ranks_too(
    phase: str, rank: int, place: Path, four_undisturbed: dict[int, float]
) -> None:
    assert killed_and_resumed(place, phase, rank, 4) == four_undisturbed


def hangs(place: Path, phase: str, rank: int, limit: float) -> None:
    struck = config(place, f"stop-{rank}-{phase}", fault=f"{rank}:{phase}:{STEP}:stop")
    log, fault, pids = failed(update(struck, {"limit": limit}))
    assert isinstance(fault, RankLost) and fault.rank == rank
    assert f"rank {rank}: hangs, no sign of life for" in str(fault)
    assert f"in {phase} of step {STEP}" in str(fault)
    assert len(pids) == 2 and not [pid for pid in pids if alive(pid)]


@pytest.mark.parametrize(("phase", "rank"), [("collective", 1)])
def test_a_stopped_rank_is_found_out(phase: str, rank: int, place: Path) -> None:
    hangs(place, phase, rank, 10)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("phase", PHASES)
def test_a_rank_stopped_anywhere_is_found_out(phase: str, rank: int, place: Path) -> None:
    hangs(place, phase, rank, 4)


def test_two_ranks_find_what_one_finds(place: Path, undisturbed: dict[int, float]) -> None:
    alone = losses(Run.execute(run, config(place, "alone", **{REPLICAS: 1})).log)
    assert alone == pytest.approx(undisturbed, rel=1e-5)


def test_a_run_of_ranks_tells_what_each_did_and_sent(of_two: Log) -> None:
    log = of_two
    times = [event.time for event in log]
    assert times == sorted(times)
    spans = {(span.lane, span.name) for span in log.of(Span)}
    told = {"F", "B", "all_reduce", "optimiser", "checkpoint", "validation"}
    assert {(f"rank {rank}", name) for rank in (0, 1) for name in told} <= spans
    sent = {level.lane: level.value for level in log.of(Level) if level.name == "bytes_sent"}
    moves = log.of(Move)
    assert {move.source for move in moves} == set(sent) == {"rank 0", "rank 1"}
    for lane, counted in sent.items():
        assert sum(move.bytes for move in moves if move.source == lane) == counted


def test_asked_to_stop_ranks_save_and_the_rest_has_the_same_losses(
    place: Path, undisturbed: dict[int, float]
) -> None:
    long = config(place, "asked", **{"training.checkpoint": 1000})
    started = Run.start(run, long)
    assert started.live is not None
    while started.state != "closed" and not started.log.of(Level):
        time.sleep(0.01)
    started.stop()
    started.wait(300)
    assert started.state == "closed"
    done = Run.execute(run, long).log
    assert losses(started.log) | losses(done) == undisturbed


def test_another_mesh_is_refused_in_one_line(place: Path, of_two: Log) -> None:
    with pytest.raises(BadInput, match="of ranks on a mesh, and this run is one process"):
        Run.execute(run, config(place, "whole-2", **{REPLICAS: 1}))
    with pytest.raises(BadInput, match=r"made with rate = 0.01, this run has 0.02"):
        Run.execute(run, config(place, "whole-2", **{"training.rate": 0.02}))
    with pytest.raises(BadInput, match="3 replicas of 1 .*: a step of 64 tokens has 8 windows"):
        Run.execute(run, config(place, "whole-2", **{REPLICAS: 3}))


def test_who_shows_no_sign_of_life_is_blamed_before_who_works() -> None:
    waiting = "waiting for rank 1 (gradients) in collective"
    told = hung(["in forward", waiting], 4, [0.2, 3.9])
    assert told.rank == 1 and "no sign of life for 3.9 s while waiting" in str(told)
    assert hung(["in forward", waiting], 4, [0.2, 0.1]).rank == 0
    assert "deadlock" in str(hung([waiting, waiting], 4, [0.2, 0.1]))


def test_a_fault_is_read_from_the_command_line() -> None:
    fault = read_fault("1:checkpoint write:12:stop")
    assert (fault.rank, fault.phase, fault.step, fault.how) == (1, "checkpoint write", 12, "stop")
    assert read_fault("0:forward:3").how == "kill"
    for wrong in ("", "1:forward", "x:forward:1", "1:forward:stop"):
        with pytest.raises(BadInput, match="RANK:PHASE:STEP"):
            read_fault(wrong)
