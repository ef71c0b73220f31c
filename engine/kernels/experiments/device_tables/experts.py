"""Layers of experts by torch's grouped products: rows sorted by expert, multiplied, gated, summed.

Every expert is asked as often as every other. Routes are given, as in the tables that the cost
model was fitted to; what sorts them is in the time. Shape letters: T tokens, K experts of each, E
experts, H hidden, I inner, R = T · K rows.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import silu

from engine.kernels.experiments.device_tables.products import CAPABLE, narrowed
from engine.kernels.experiments.device_tables.timing import Refused, Shape, timed

LAYERS = (  # H, I, K, E: Qwen3 30B, gpt-oss 120B, Qwen3 235B, Mixtral
    (2048, 768, 8, 128), (2880, 2880, 4, 128), (4096, 1536, 8, 128), (4096, 14336, 2, 8),
)  # fmt: skip
TOKENS = (1, 8, 32, 128, 512, 2048, 8192, 16384)
SMALL, FEW = ((32, 16, 2, 4),), (1, 8)


class Layer(NamedTuple):
    """Weights of a layer; in 8 bits with a scale an output."""

    up_EJH: Tensor  # gates before values: J = 2 I
    down_EHI: Tensor
    scales: tuple[Tensor, Tensor] | None  # EJ, EH


def rows(device: str) -> Iterator[Shape | Refused]:
    """Layers in bfloat16, and in float8 with a scale a row where the device multiplies it."""
    narrow = device == "cuda" and torch.cuda.get_device_capability() >= CAPABLE
    draw = torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device, dtype=torch.bfloat16, generator=draw)

    shapes, counts = (SMALL, FEW) if device == "cpu" else (LAYERS, TOKENS)
    for H, I, K, E in shapes:
        wide = Layer(normal(E, 2 * I, H), normal(E, H, I), None)
        layers = {"bfloat16": wide, **({"fp8": in_8_bits(wide)} if narrow else {})}
        sizes = {"hidden": H, "inter": I, "topk": K, "experts": E, "moe_tp": 1, "moe_ep": 1}
        for (dtype, layer), T in ((each, count) for each in layers.items() for count in counts):
            asked_R = torch.arange(T * K, device=device) % E
            part_TK = torch.full((T, K), 1.0 / K, device=device, dtype=torch.bfloat16)
            call = partial(experts, normal(T, H), asked_R, part_TK, layer)
            told = {"dtype": dtype, **sizes, "distribution": "balanced", "tokens": T}
            yield timed(told, "torch._grouped_mm", [call], device)


def in_8_bits(wide: Layer) -> Layer:
    """The same weights narrowed."""
    found = []
    for weight in (wide.up_EJH, wide.down_EHI):
        E, N, M = weight.shape
        narrow, scale = narrowed(weight.view(E * N, M))
        found.append((narrow.view(E, N, M), scale.view(E, N)))
    (up, by_up), (down, by_down) = found
    return Layer(up, down, (by_up, by_down))


def experts(x_TH: Tensor, asked_R: Tensor, part_TK: Tensor, layer: Layer) -> Tensor:
    """y_TH: of each token, the experts `asked_R` (its own one after another) by their parts."""
    (T, K), E = part_TK.shape, len(layer.up_EJH)
    sorted_R, order_R = asked_R.sort()
    end_E = torch.searchsorted(sorted_R, torch.arange(E, device=x_TH.device), right=True)
    end_E = end_E.to(torch.int32)
    scales = layer.scales or (None, None)
    both_RJ = _product(x_TH[order_R // K], layer.up_EJH, scales[0], end_E)
    gate_RI, value_RI = both_RJ.chunk(2, -1)
    out_RH = _product(silu(gate_RI) * value_RI, layer.down_EHI, scales[1], end_E)
    back_RH = torch.empty_like(out_RH)
    back_RH[order_R] = out_RH
    return (back_RH.view(T, K, -1) * part_TK[..., None]).sum(1)


def _product(x_RM: Tensor, weight_ENM: Tensor, by_EN: Tensor | None, end_E: Tensor) -> Tensor:
    """Each expert's rows by its weights."""
    if by_EN is None:
        return torch._grouped_mm(x_RM, weight_ENM.transpose(1, 2), offs=end_E)
    narrow_RM, scale_R1 = narrowed(x_RM)
    return torch._scaled_grouped_mm(
        narrow_RM, weight_ENM.transpose(1, 2), scale_R1.view(-1), by_EN, offs=end_E,
        out_dtype=torch.bfloat16, use_fast_accum=True,
    )  # fmt: skip
