"""Where a rank's tensors lie: the choice, what it says where it cannot be, and that no collective
of a step on a mesh is given a tensor that lies elsewhere.

No GPU is needed for that: on torch's device `meta` tensors have shapes and no numbers, and whatever
was made without a word about its device lies elsewhere. What runs on GPUs in truth is the last
test's alone, which is skipped without two.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from engine.core.config import update
from engine.core.errors import BadInput
from engine.distributed import device
from engine.distributed.device import device_of, require_devices
from engine.distributed.launch import launch, place_from
from engine.distributed.rank import ALONE, Rank
from engine.distributed.transport import Arriving, Shape
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.rank_main import begun, train, work
from engine.training.parallel.truth import errors, of_place
from tests.engine.distributed.works import pids

OWN = torch.device("meta")


def test_processors_are_there_for_any_number_of_ranks() -> None:
    assert device_of("cpu", 7, 64) == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_a_run_is_refused_before_it_starts() -> None:
    with pytest.raises(BadInput, match="device cuda: torch sees no GPU with NCCL") as found:
        launch(pids, 2, device="cuda")
    assert "\n" not in str(found.value)


def test_fewer_gpus_than_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    require_devices("cuda", 2)
    with pytest.raises(BadInput, match="4 ranks on this machine, which has 2 of the GPUs"):
        require_devices("cuda", 4)


def test_each_rank_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = gpus(monkeypatch, 4)
    assert [device_of("cuda", local, 4).index for local in range(4)] == taken == [0, 1, 2, 3]


def test_torchrun_says_which_of_the_machine_s_ranks_one_is() -> None:
    told = {"RANK": "5", "WORLD_SIZE": "8", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    place = place_from({**told, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"})
    assert (place.local, place.here, place.device) == (1, 4, "cpu")


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """As if this machine had so many; which were taken."""
    taken: list[int] = []
    monkeypatch.setattr(device.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device.dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(device.torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(device.torch.cuda, "set_device", taken.append)
    return taken


class Done:
    def wait(self) -> None:
        pass


class Group:
    """A group that does nothing but note where the tensors it was given lie."""

    def __init__(self, seen: list[torch.device]) -> None:
        self.seen = seen

    def allreduce(self, tensors: Sequence[Tensor], options: Any) -> Done:
        return self._note(*tensors)

    def _allgather_base(self, found: Tensor, part: Tensor) -> Done:
        return self._note(found, part)

    def alltoall_base(self, found: Tensor, whole: Tensor, *splits: Any) -> Done:
        return self._note(found, whole)

    def _note(self, *tensors: Tensor) -> Done:
        self.seen += [tensor.device for tensor in tensors]
        return Done()


class Meeting:
    """Gives out such groups."""

    device = OWN

    def __init__(self) -> None:
        self.seen: list[torch.device] = []

    def count(self, name: str) -> int:
        return 0

    def collective(self, name: str, rank: int, ranks: int) -> Group:
        return Group(self.seen)


class Transport:
    """Messages that are always there, of the shape that is waited for."""

    rank, ranks = 0, 2

    def __init__(self) -> None:
        self.sent: list[torch.device] = []

    def now(self) -> float:
        return 0.0

    def send(self, target: int, tensors: Sequence[Tensor], task: str = "") -> None:
        self.sent += [tensor.device for tensor in tensors]

    def receive(self, source: int, shapes: Sequence[Shape], task: str = "") -> Arriving:
        return Arriving(source, 0, shapes, torch.empty(0), torch.empty(0), None, task)

    def take(self, arriving: Arriving) -> list[Tensor]:
        return [torch.empty(each.sizes, dtype=each.dtype, device=OWN) for each in arriving.shapes]


SETTINGS = {
    "matrices": {"mesh.tensor": 2, "sequence_parallel": True},
    "latents": {"mesh.tensor": 2, "model.family": "deepseek_v2", "model.layers": 1},
    "learnt positions": {"mesh.tensor": 2, "model.family": "gpt2"},
    "caps and windows": {"mesh.tensor": 2, "model.family": "gemma2", "model.tied": True},
    "sequences": {"mesh.context": 2},
    "heads of sequences": {"mesh.context": 2, "attention": "all_to_all"},
    "replicas": {"mesh.data": 2},
    "moments dealt": {"mesh.data": 2, "zero": "optimizer"},
    "stages": {"mesh.pipeline": 2, "microbatches": 2, "schedule": "zb_h1", "model.tied": True},
}


@pytest.fixture
def numberless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a number is told one."""
    monkeypatch.setattr(torch.Tensor, "item", lambda self: 1.0)
    monkeypatch.setattr(torch.Tensor, "__float__", lambda self: 1.0)
    noughts = "cpu", lambda self: torch.zeros(self.shape, dtype=self.dtype)
    monkeypatch.setattr(torch.Tensor, *noughts)


@pytest.mark.parametrize("name", SETTINGS)
def test_all_that_ranks_give_one_another_lies_on_their_device(name: str, numberless: None) -> None:
    config = update(MeshTrainingConfig(), SETTINGS[name])
    meeting, transport = Meeting(), Transport()
    rank = Rank(transport, ALONE, meeting)  # type: ignore[arg-type]
    run = begun(rank, config)
    run.gradients(config.ids(0))
    run.clip(run.norm()[0], 0.5)
    run.update(1e-3)
    held = list(run.trained.state().values())
    assert {each.device for each in held} == {OWN}
    given = meeting.seen + transport.sent
    assert len(given) >= 3 and set(given) == {OWN}


def test_what_a_rank_leaves_behind_comes_from_its_device(numberless: None) -> None:
    config = update(MeshTrainingConfig(), SETTINGS["matrices"])
    rank = Rank(Transport(), ALONE, Meeting())  # type: ignore[arg-type]
    train(rank, config)
    left = {name.split("/")[0] for name in rank.record.arrays}
    assert {"losses", "gradient", "weight", "held"} <= left


def test_a_tensor_that_lies_elsewhere_would_show(
    numberless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "engine.training.parallel.mesh_run.torch.zeros"
    made = torch.zeros
    monkeypatch.setattr(where, lambda *sizes, device=None, **kinds: made(*sizes, **kinds))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta"):
        test_all_that_ranks_give_one_another_lies_on_their_device("matrices", None)


@pytest.mark.skipif(
    not (torch.cuda.is_available() and dist.is_nccl_available() and torch.cuda.device_count() > 1),
    reason="needs two GPUs",
)
@pytest.mark.parametrize("name", SETTINGS)
def test_two_gpus_find_what_one_process_finds(name: str) -> None:
    config = update(MeshTrainingConfig(), {"learning.eps": 1e-4, **SETTINGS[name]})
    records = launch(work, 2, [config], limit=300, device="cuda")
    found = errors(config, [of_place(record, 0) for record in records])
    assert 0 < max(found.values()) <= 1e-4
