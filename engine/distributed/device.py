"""Which device a rank's tensors lie on, and the group that moves them: chosen here alone.

`cpu` takes gloo, `cuda` a GPU for each rank of a machine and NCCL for what several ranks do
together. Messages from one rank to another go through host memory over gloo on either: two NCCL
sends that meet would wait for each other.
"""

from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist

from engine.core.errors import BadInput

DeviceKind = Literal["cpu", "cuda"]


def require_devices(kind: DeviceKind, here: int) -> None:
    """Raises BadInput where this machine has no device for each of its `here` ranks."""
    if kind == "cpu":
        return
    if not torch.cuda.is_available() or not dist.is_nccl_available():
        raise BadInput(
            "device cuda: torch sees no GPU with NCCL on this machine; take device cpu, or a "
            "machine with NVIDIA GPUs and torch built for them"
        )
    found = torch.cuda.device_count()
    if here > found:
        raise BadInput(
            f"device cuda: {here} ranks on this machine, which has {found} of the GPUs, one for "
            f"each; start at most {found} ranks here, or take device cpu"
        )


def device_of(kind: DeviceKind, local: int, here: int) -> torch.device:
    """Of the machine's `local`-th rank of `here`, set as this process's own."""
    require_devices(kind, here)
    if kind == "cpu":
        return torch.device("cpu")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def settle(device: torch.device) -> None:
    """Until what was asked of the device is done: NCCL's waits hold the device, not the process."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def nccl_group(store: dist.Store, rank: int, ranks: int, within: timedelta) -> Any:
    """A group of GPUs; a collective that takes longer than `within` fails."""
    make = dist.ProcessGroupNCCL
    options = make.Options()
    options._timeout = within
    return make(store, rank, ranks, options)
