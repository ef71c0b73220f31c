"""KV cache: what a model caches for each token, and the paged memory that holds it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.config import ModelConfig

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """Per token and layer: named entries of `heads × dim` numbers.

    Attention with keys and values caches ("k", Hkv, D) and ("v", Hkv, D); latent attention caches
    one ("latent", 1, rank + rope): the normalised compressed latent, then the rotated shared key.
    """

    layers: int
    entries: tuple[tuple[str, int, int], ...]
    dtype: str

    def bytes_per_token(self) -> int:
        """Cache bytes one token takes over all layers."""
        numbers = sum(heads * dim for _, heads, dim in self.entries)
        return self.layers * numbers * BYTES[self.dtype]


def cache_spec(config: ModelConfig, dtype: str = "float32") -> CacheSpec:
    """What this architecture caches, in numbers of `dtype`."""
    if config.latent is not None:
        entries = (("latent", 1, config.latent.rank + config.latent.rope),)
        return CacheSpec(config.layers, entries, dtype)
    shape = config.kv_heads, config.head_dim
    return CacheSpec(config.layers, (("k", *shape), ("v", *shape)), dtype)


class PagedKV:
    """`tensors[layer][name]` of shape [pages, page_size, heads, dim], allocated once."""

    def __init__(self, spec: CacheSpec, pages: int, page_size: int, device: str = "cpu") -> None:
        self.spec = spec
        self.pages = pages
        self.page_size = page_size
        dtype = getattr(torch, spec.dtype)
        self.tensors: list[dict[str, Tensor]] = [
            {
                name: torch.zeros(pages, page_size, heads, dim, dtype=dtype, device=device)
                for name, heads, dim in spec.entries
            }
            for _ in range(spec.layers)
        ]

    def bytes(self) -> int:
        """Bytes all pages take."""
        return self.pages * self.page_size * self.spec.bytes_per_token()
