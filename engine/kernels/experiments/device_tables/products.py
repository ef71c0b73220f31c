"""Products of a transformer's layers: 16-bit ones by cuBLAS, 8-bit ones with x narrowed before.

Weights of six layers take turns, so that the last cache keeps them only where six fit, as in the
tables that the cost model was fitted to. Shape letters: M rows, N outputs, K inputs.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from engine.kernels.experiments.device_tables.timing import seconds

LAYERS = 6
SHAPES = (  # (N, K) of dense layers, of layers that ranks share, and of a vocabulary
    (1024, 8192), (2048, 7168), (4096, 4096), (6144, 4096), (4096, 14336), (28672, 4096),
    (10240, 8192), (8192, 8192), (8192, 28672), (8192, 1024), (12288, 12288), (5120, 25600),
    (2560, 2560), (65536, 8192),
)  # fmt: skip
ROWS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SMALL, FEW = ((64, 32), (32, 64)), (1, 8)
NARROW = torch.float8_e4m3fn
CAPABLE = (8, 9)  # the first that multiplies float8


def rows(device: str) -> Iterator[Mapping[str, object]]:
    """Products in bfloat16."""
    for told, x_MK, weights in _cases(device):
        calls = [partial(torch.nn.functional.linear, x_MK, weight) for weight in weights]
        kernel = "torch.nn.functional.linear"
        yield {**told, "dtype": "bfloat16", "us": seconds(calls, device) * 1e6, "kernel": kernel}


def narrow_rows(device: str) -> Iterator[Mapping[str, object]]:
    """Products in float8, one scale a tensor: x is narrowed, then multiplied."""
    if device == "cuda" and torch.cuda.get_device_capability() < CAPABLE:
        return
    one = torch.ones((), device=device)
    for told, x_MK, weights in _cases(device):
        if told["m"] % 16:
            continue  # the library takes rows in sixteens
        calls = [partial(_scaled, x_MK, weight.to(NARROW), one) for weight in weights]
        kernel = "torch._scaled_mm"
        yield {**told, "dtype": "fp8", "us": seconds(calls, device) * 1e6, "kernel": kernel}


def _scaled(x_MK: Tensor, weight_NK: Tensor, one: Tensor) -> Tensor:
    narrow_MK = x_MK.to(NARROW)
    return torch._scaled_mm(
        narrow_MK, weight_NK.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
    )


def _cases(device: str) -> Iterator[tuple[dict[str, int], Tensor, list[Tensor]]]:
    shapes, counts = (SHAPES, ROWS) if device == "cuda" else (SMALL, FEW)
    draw = torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device, dtype=torch.bfloat16, generator=draw)

    for n, k in shapes:
        weights = [normal(n, k) for _ in range(LAYERS)]
        for m in counts:
            yield {"m": m, "n": n, "k": k}, normal(m, k), weights
