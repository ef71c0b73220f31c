"""torch.distributed's own default group and device meshes, joined for what torch builds on them.

Connections are bound to loopback as the ranks' own are, which torch's gloo backend would not be.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torch import distributed as dist

from engine.distributed.axis import Axis
from engine.distributed.rank import Rank

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

BACKEND = "ranks_gloo"


def join_torch(rank: Rank) -> None:
    """Make the ranks torch's default group of this process; once is enough."""
    if dist.is_initialized():
        return
    meeting = rank.meeting

    def make(store: dist.Store, at: int, ranks: int, within: timedelta) -> Any:
        return meeting.group_at(store, at, ranks)

    dist.Backend.register_backend(BACKEND, make, devices=["cpu"])
    store = dist.PrefixStore("torch", meeting.store)
    backends = f"cpu:{BACKEND}" if rank.device.type == "cpu" else f"cpu:{BACKEND},cuda:nccl"
    dist.init_process_group(
        backends, store=store, rank=rank.rank, world_size=rank.ranks,
        timeout=meeting.within,
    )  # fmt: skip


def torch_group(rank: Rank, members: Sequence[int]) -> dist.ProcessGroup:
    """A group of torch's own of these ranks, which all ask for it."""
    join_torch(rank)
    made = dist.new_group(list(members), use_local_synchronization=True)
    assert isinstance(made, dist.ProcessGroup)
    return made


def device_mesh(axis: Axis) -> "DeviceMesh":
    """The axis as a mesh of one dimension."""
    from torch.distributed.device_mesh import DeviceMesh

    return DeviceMesh.from_group(torch_group(axis.rank, axis.members), axis.rank.device.type)
