"""KV cache: what a model caches for each token, and the paged memory that holds it."""

import math

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.matmul.pack import aligned
from engine.models.tensors.cache_spec import CacheSpec


class PagedKV:
    """`tensors[layer][name]` of shape [pages, page_size, heads, dim], allocated once; and beside
    them `states[layer][name]` of shape [states, …], one for each sequence or kept prefix.

    Behind the pages that are handed out stand those of the spec's prefix, which the model fills.
    Raises BadInput where a prefix does not fill its pages.
    """

    def __init__(
        self, spec: CacheSpec, pages: int, page_size: int, device: str = "cpu", states: int = 0
    ) -> None:
        self.spec = spec
        self.pages = pages
        self.page_size = page_size
        self.filled = not spec.prefix
        dtype = getattr(torch, spec.dtype)
        if spec.prefix % page_size:
            raise BadInput(
                f"page_size {page_size}: the model's prefixes have {spec.prefix} tokens, which it "
                "must divide"
            )
        rows = pages + spec.prefix // page_size
        self.tensors: list[dict[str, Tensor]] = [
            {
                name: zeros((rows, page_size, heads, dim), dtype, device)
                for name, heads, dim in layer
            }
            for layer in spec.entries
        ]
        self.states: list[dict[str, Tensor]] = [
            {name: zeros((states, *shape), torch.float32, device) for name, shape in layer}
            for layer in spec.states
        ]

    @property
    def layers(self) -> list[dict[str, Tensor]]:
        """What each layer reads and writes: pages of tokens or of states."""
        if not self.states:
            return self.tensors
        return [own or held for own, held in zip(self.tensors, self.states, strict=True)]

    def bytes(self) -> int:
        """Bytes all pages take."""
        return self.pages * self.page_size * self.spec.bytes_per_token()


def zeros(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
    """Zeros that take a processor's memory, and the time to clear it, as they are first touched.

    Most runs touch few of their pages; torch writes zeros to all of them at once.
    """
    if device != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    raw = aligned(math.prod(shape) * dtype.itemsize, np.uint8)  # by calloc
    return torch.from_numpy(raw).view(dtype).view(shape)
