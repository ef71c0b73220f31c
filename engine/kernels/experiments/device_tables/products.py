"""Products of a transformer's layers: 16-bit ones by cuBLAS, 8-bit ones with x narrowed before.

Weights of six layers take turns, so that the last cache keeps them only where six fit, as in the
tables that the cost model was fitted to. Shape letters: M rows, N outputs, K inputs.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
import triton
from torch import Tensor

from engine.kernels.experiments.device_tables.timing import Refused, Shape, timed
from engine.kernels.triton_source import kernels

LAYERS = 6
SHAPES = (  # (N, K) of dense layers, of layers that ranks share, and of a vocabulary
    (1024, 8192), (2048, 7168), (4096, 4096), (6144, 4096), (4096, 14336), (28672, 4096),
    (10240, 8192), (8192, 8192), (8192, 28672), (8192, 1024), (12288, 12288), (5120, 25600),
    (2560, 2560), (65536, 8192),
)  # fmt: skip
ROWS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SMALL, FEW = ((64, 32), (32, 64)), (1, 8)
NARROW = torch.float8_e4m3fn
LARGEST = torch.finfo(NARROW).max
WIDE = 4096  # numbers of a row that a program holds at once
CAPABLE = (8, 9)  # the first that multiplies float8
ROWWISE, TENSORWISE = "scaled_by_rows", "scaled_by_tensors"


def rows(device: str) -> Iterator[Shape | Refused]:
    """Products in bfloat16."""
    for told, x_MK, weights in _cases(device):
        calls = [partial(torch.nn.functional.linear, x_MK, weight) for weight in weights]
        yield timed({**told, "dtype": "bfloat16"}, "torch.nn.functional.linear", calls, device)


def narrow_rows(device: str) -> Iterator[Shape | Refused]:
    """Products in float8 of weights with a scale an output and of x with one a row, as engines
    serve them, and with one scale a tensor, known before."""
    if device == "cuda" and torch.cuda.get_device_capability() < CAPABLE:
        return
    one = torch.ones((), device=device)
    for told, x_MK, weights in _cases(device):
        shape: Mapping[str, object] = {**told, "dtype": "fp8"}
        narrow = [narrowed(weight) for weight in weights]
        calls = [partial(by_rows, x_MK, *weight) for weight in narrow]
        yield timed(shape, ROWWISE, calls, device)
        alike = [partial(_by_tensors, x_MK, weight, one) for weight, _ in narrow]
        yield timed(shape, TENSORWISE, alike, device)


def narrowed(x_MK: Tensor) -> tuple[Tensor, Tensor]:
    """x in 8 bits, and the scale (M, 1) by which each of its rows was divided."""
    (M, K), fine = x_MK.shape, x_MK.contiguous()
    narrow_MK = torch.empty(M, K, dtype=NARROW, device=x_MK.device)
    scale_M1 = torch.empty(M, 1, dtype=torch.float32, device=x_MK.device)
    module = kernels(f"{__package__}.narrowing_triton", not x_MK.is_cuda)
    block = min(WIDE, triton.next_power_of_2(K))
    module.narrow_rows[(M,)](fine, narrow_MK, scale_M1, K, LARGEST, BLOCK=block, num_warps=8)
    return narrow_MK, scale_M1


def by_rows(x_MK: Tensor, weight_NK: Tensor, scale_N1: Tensor) -> Tensor:
    """x · Wᵀ in bfloat16, of weights narrowed by rows."""
    narrow_MK, scale_M1 = narrowed(x_MK)
    return torch._scaled_mm(
        narrow_MK, weight_NK.T, scale_a=scale_M1, scale_b=scale_N1.T, out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )  # fmt: skip


def _by_tensors(x_MK: Tensor, weight_NK: Tensor, one: Tensor) -> Tensor:
    return torch._scaled_mm(
        x_MK.to(NARROW), weight_NK.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
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
