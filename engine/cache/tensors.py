"""KV storage: paged tensors on the device and of the host tier, and copies between them."""

import numpy as np
import torch

from engine.models.kv import CacheSpec, PagedKV

Layers = list[dict[str, torch.Tensor]]


class Storage:
    """Page tensors of the pool and of the host tier, and the copies between them.

    One page more than the pool has is allocated: number `scratch`, where tokens computed for nobody
    (padding) write.
    """

    def __init__(
        self, spec: CacheSpec, pages: int, page_size: int, host_pages: int, device: str = "cpu",
        running: int = 0,
    ) -> None:  # fmt: skip
        """`running`: sequences that keep a recurrent state at once, and states kept of prefixes."""
        self.kv = PagedKV(spec, pages + 1, page_size, device, 2 * running)
        self.host = PagedKV(spec, host_pages, page_size, "cpu", running if host_pages else 0)
        self.scratch = pages

    def swap_out(self, pairs: np.ndarray) -> None:
        """Copy (page, host page) pairs to the host."""
        self._move(self.kv.tensors, self.host.tensors, pairs)

    def swap_in(self, pairs: np.ndarray) -> None:
        """Copy (host page, page) pairs back."""
        self._move(self.host.tensors, self.kv.tensors, pairs)

    def copy(self, pairs: np.ndarray) -> None:
        """Copy (source page, target page) pairs on the device."""
        self._move(self.kv.tensors, self.kv.tensors, pairs)

    def move_tokens(self, pairs: np.ndarray) -> None:
        """Copy the tokens at (source slot, target slot) pairs on the device; all are read first."""
        if not len(pairs):
            return
        from_, to = (torch.from_numpy(pairs[:, i].astype(np.int64)) for i in (0, 1))
        for layer in self.kv.tensors:
            for tensor in layer.values():
                slots = tensor.flatten(0, 1)
                slots[to.to(tensor.device)] = slots[from_.to(tensor.device)]

    def move_states(self, out: np.ndarray, back: np.ndarray) -> None:
        """Copy (state page, host page) pairs to the host, then (host page, state page) back."""
        self._move(self.kv.states, self.host.states, out)
        self._move(self.host.states, self.kv.states, back)

    def realign(self, tables_BP: np.ndarray, tokens_B: np.ndarray, off: int = 0) -> None:
        """Copy what sequences hold into a rectangle, right-aligned and padded, and back.

        What a batch without pages does when its rows grow by different lengths. `off`, a mistake:
        the shorter rows land so many tokens from where they belong.
        """
        size, longest = self.kv.page_size, int(tokens_B.max())
        sequence_N = np.repeat(np.arange(len(tokens_B)), tokens_B)
        first_B = np.cumsum(tokens_B) - tokens_B
        at_N = np.arange(len(sequence_N)) - first_B[sequence_N]
        page_N = torch.from_numpy(tables_BP[sequence_N, at_N // size].astype(np.int64))
        place_N = torch.from_numpy(at_N % size)
        row_N = torch.from_numpy(sequence_N)
        pad_N = (longest - tokens_B)[sequence_N]
        to_N = torch.from_numpy(at_N + pad_N)
        from_N = torch.from_numpy(np.maximum(at_N + pad_N - off * (pad_N > 0), 0))
        for layer in self.kv.tensors:
            for tensor in layer.values():
                rectangle = tensor.new_zeros(len(tokens_B), longest, *tensor.shape[2:])
                rectangle[row_N, to_N] = tensor[page_N, place_N]
                tensor[page_N, place_N] = rectangle[row_N, from_N]

    @staticmethod
    def _move(source: Layers, target: Layers, pairs: np.ndarray) -> None:
        if not len(pairs):
            return
        from_, to = (torch.from_numpy(pairs[:, i].astype(np.int64)) for i in (0, 1))
        for read, write in zip(source, target, strict=True):
            for name, tensor in read.items():
                device = write[name].device
                write[name][to.to(device)] = tensor[from_.to(tensor.device)].to(device)
