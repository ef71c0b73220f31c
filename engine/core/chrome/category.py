"""Categories of a trace's spans: what an accelerator spends its time on, told by kind and name."""

import re

COMPUTE, COMMUNICATION, MEMORY, HOST = "compute", "communication", "memory", "host"
CATEGORIES = (COMPUTE, COMMUNICATION, MEMORY, HOST)
ON_DEVICE = (COMPUTE, COMMUNICATION, MEMORY)
SYNC = "cuda_sync"  # the kind of a stream's waiting, which PyTorch's profiler writes in its lane
NO_STREAM = "stream=none"  # the tag of such a span that is no stream's
WAITING = ("Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync")  # and what it says
# Kernels of the collective libraries, and those that serving engines write for the same purpose.
COLLECTIVE = re.compile(
    r"nccl|rccl|hccl|oneccl|nvshmem|deep_ep|cross_device_reduce"
    r"|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)


def category(kind: str, name: str) -> str:
    """The category of a span of that kind (`cat` of the format, as PyTorch's profiler and its like
    write it) and name."""
    if kind.endswith(("kernel", "Kernel")):  # older profilers begin them with a capital
        return COMMUNICATION if COLLECTIVE.search(name) else COMPUTE
    # Copies and fills by the device's own engines: gpu_memcpy, gpu_memset, and as older ones say.
    return MEMORY if kind.startswith("gpu_mem") or kind in ("Memcpy", "Memset") else HOST
