"""KV cache: what a model caches for each token, and the paged memory that holds it.

Sizing a cache is asked by those who hold none, so that torch is loaded with the first one.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from engine.core.errors import BadInput
from engine.kernels.recurrent.sizes import state_shapes
from engine.models.config import ModelConfig

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "float8_e4m3fn": 1}


Entry = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """Per token and layer: named entries of `heads × dim` numbers.

    Attention with keys and values caches ("k", Hkv, D) and ("v", Hkv, D); latent attention caches
    one ("latent", 1, rank + rope): the normalised compressed latent, then the rotated shared key;
    and ("index", 1, size), the key of an index of tokens, where there is one.
    Parallel streams cache the heads of every stream, a stream's of a page side by side.
    Per sequence and layer: `states`, named arrays where a layer keeps a recurrent one, in float32
    or, beside entries in float64, in that.
    """

    entries: tuple[tuple[Entry, ...], ...]  # by layer
    dtype: str
    prefix: int = 0  # tokens that every sequence begins with, kept once in pages of their own
    states: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()  # by layer, or nowhere any

    def bytes_per_token(self) -> int:
        """Cache bytes one token takes over all layers."""
        numbers = sum(heads * dim for layer in self.entries for _, heads, dim in layer)
        return numbers * BYTES[self.dtype]

    def bytes_per_state(self) -> int:
        """Bytes of one sequence's recurrent state over all layers, however long it is."""
        numbers = sum(math.prod(shape) for layer in self.states for _, shape in layer)
        return numbers * BYTES[self.state_dtype]

    @property
    def state_dtype(self) -> str:
        """Numbers of recurrent states: they add up over a whole sequence."""
        return "float64" if self.dtype == "float64" else "float32"


def cache_spec(config: ModelConfig, dtype: str = "float32") -> CacheSpec:
    """What this architecture caches, in numbers of `dtype`."""
    layers = range(config.layers)
    states = tuple(_states(config, layer) for layer in layers) if any(config.recurrent) else ()
    prefix = config.streams.prefix if config.streams else 0
    return CacheSpec(tuple(_entries(config, layer) for layer in layers), dtype, prefix, states)


def _entries(config: ModelConfig, layer: int) -> tuple[Entry, ...]:
    if not config.attends(layer) or config.source(layer) != layer:
        return ()
    if config.latent is not None:
        latent = ("latent", 1, config.latent.rank + config.latent.rope)
        return (latent,) if config.index is None else (latent, ("index", 1, config.index.size))
    streams, own = config.streams, config.at(layer)
    shape = own.kv_heads * (streams.count if streams else 1), own.head_dim
    return (("k", *shape), ("v", *shape))


def _states(config: ModelConfig, layer: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    if config.recurrence is None or not config.keeps_state(layer):
        return ()
    return state_shapes(config.recurrence)


def in_fp8(spec: CacheSpec, config: ModelConfig) -> CacheSpec:
    """The cache in e4m3 (OCP 8-bit floating point, 1.0). Raises BadInput for latents."""
    if config.latent is not None:
        raise BadInput(
            f"kv_cache_dtype fp8_e4m3: {config.architecture} caches latents, which stay in the "
            "weights' numbers; leave it at auto"
        )
    return replace(spec, dtype="float8_e4m3fn")


class PagedKV:
    """`tensors[layer][name]` of shape [pages, page_size, heads, dim], allocated once; and beside
    them `states[layer][name]` of shape [states, …], one for each sequence or kept prefix.

    Behind the pages that are handed out stand those of the spec's prefix, which the model fills.
    Raises BadInput where a prefix does not fill its pages.
    """

    def __init__(
        self, spec: CacheSpec, pages: int, page_size: int, device: str = "cpu", states: int = 0
    ) -> None:
        import torch

        self.spec = spec
        self.pages = pages
        self.page_size = page_size
        self.filled = not spec.prefix
        dtype, sums = getattr(torch, spec.dtype), getattr(torch, spec.state_dtype)
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
            {name: zeros((states, *shape), sums, device) for name, shape in layer}
            for layer in spec.states
        ]

    @property
    def layers(self) -> "list[dict[str, Tensor]]":
        """What each layer reads and writes: pages of tokens or of states."""
        if not self.states:
            return self.tensors
        return [own or held for own, held in zip(self.tensors, self.states, strict=True)]

    def bytes(self) -> int:
        """Bytes all pages take."""
        return self.pages * self.page_size * self.spec.bytes_per_token()


def zeros(shape: tuple[int, ...], dtype: "torch.dtype", device: str) -> "Tensor":
    """Zeros that take a processor's memory, and the time to clear it, as they are first touched.

    Most runs touch few of their pages; torch writes zeros to all of them at once.
    """
    import torch

    from engine.kernels.matmul.pack import aligned

    if device != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    raw = aligned(math.prod(shape) * dtype.itemsize, np.uint8)  # by calloc
    return torch.from_numpy(raw).view(dtype).view(shape)
