"""KV storage: paged tensors on the device and of the host tier, and copies between them."""

import numpy as np
import torch

from engine.models.kv import CacheSpec, PagedKV


class Storage:
    """Page tensors of the pool and of the host tier, and the copies between them.

    One page more than the pool has is allocated: number `scratch`, where tokens computed for nobody
    (padding) write.
    """

    def __init__(
        self, spec: CacheSpec, pages: int, page_size: int, host_pages: int, device: str = "cpu"
    ) -> None:
        self.kv = PagedKV(spec, pages + 1, page_size, device)
        self.host = PagedKV(spec, host_pages, page_size, "cpu")
        self.scratch = pages

    def swap_out(self, pairs: np.ndarray) -> None:
        """Copy (page, host page) pairs to the host."""
        self._move(self.kv, self.host, pairs)

    def swap_in(self, pairs: np.ndarray) -> None:
        """Copy (host page, page) pairs back."""
        self._move(self.host, self.kv, pairs)

    def copy(self, pairs: np.ndarray) -> None:
        """Copy (source page, target page) pairs on the device."""
        self._move(self.kv, self.kv, pairs)

    @staticmethod
    def _move(source: PagedKV, target: PagedKV, pairs: np.ndarray) -> None:
        if not len(pairs):
            return
        from_, to = (torch.from_numpy(pairs[:, i].astype(np.int64)) for i in (0, 1))
        for read, write in zip(source.tensors, target.tensors, strict=True):
            for name, tensor in read.items():
                device = write[name].device
                write[name][to.to(device)] = tensor[from_.to(tensor.device)].to(device)
