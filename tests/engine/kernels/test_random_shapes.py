"""Torch, numba and Triton agree on random shapes: 500 of each of three kernels with --full.

Triton's kernels are interpreted where there is no GPU. Rows without tokens, single tokens, sizes
that divide nothing, heads in groups and extreme logits are drawn often.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.kernels.matmul import OPERATOR as MATMUL
from engine.kernels.matmul import cases as matmul_cases
from engine.kernels.norm import OPERATOR as NORM
from engine.kernels.norm import cases as norm_cases
from engine.kernels.operator import Case
from engine.kernels.paged_attention import OPERATOR as ATTENTION
from engine.kernels.paged_attention import cases as attention_cases
from engine.kernels.parity import distance, parity, wide

FEW, MANY = 3, 500
EXTREME = 1e4  # by which queries are multiplied: softmax takes one key alone


def matmul(draw: np.random.Generator) -> Case:
    rows, outputs, inputs = (int(draw.choice([0, 1, 2, 3, 16, 17])), *draw.integers(1, 80, 2))
    weight = str(draw.choice(["same", "bfloat16"]))
    return matmul_cases.case(rows, int(outputs), int(inputs), weight)


def norm(draw: np.random.Generator) -> Case:
    return norm_cases.case(int(draw.choice([0, 1, 2, 5])), int(draw.integers(1, 300)))


def attention(draw: np.random.Generator) -> Case:
    kv_heads, share = int(draw.choice([1, 2, 3])), int(draw.choice([1, 2, 4, 7]))
    count = int(draw.integers(1, 4))
    news = [int(draw.choice([0, 1, 1, 1, 2, 9])) for _ in range(count)]
    if draw.random() < 0.5:  # what a decode kernel takes
        news = [min(new, 1) for new in news]
    contexts = [max(1, new) + int(draw.integers(0, 60)) for new in news]
    choices = {} if draw.random() < 0.6 else {"window": int(draw.integers(1, 40)), "softcap": 5.0}
    size, dim = int(draw.choice([1, 7, 16])), int(draw.choice([8, 16, 20, 48]))
    made = attention_cases.case(
        "drawn", share * kv_heads, kv_heads, dim, news, contexts, size=size, **choices
    )
    if draw.random() < 0.8:
        return made
    return Case("extreme", lambda seed, dtype: extreme(made.make(seed, dtype)))


def extreme(given):
    return {**given, "q_THD": given["q_THD"] * EXTREME}


KERNELS = {"matmul": (MATMUL, matmul), "norm": (NORM, norm), "attention": (ATTENTION, attention)}


def drawn(kernel: str, count: int) -> list[Case]:
    _, make = KERNELS[kernel]
    return [
        replace(make(np.random.default_rng([seed, len(kernel)])), name=f"seed {seed}")
        for seed in range(count)
    ]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_variant_agrees_with_torch(kernel, dtype, full):
    """Each variant takes what it can of the shapes, and those of each kind of device take some."""
    operator = KERNELS[kernel][0]
    made = replace(operator, cases=tuple(drawn(kernel, MANY if full else FEW)))
    devices = set()
    for variant in operator.variants().values():
        if dtype not in variant.dtypes or not (variant.device == "cpu" or variant.interpreted):
            continue
        found = parity(made, variant, dtype)
        assert found.holds or not found.cases, (variant.name, found)
        devices |= {variant.device} if found.cases else set()
    assert devices == {"cpu", "cuda"}


def torchs_own(kernel: str, given) -> torch.Tensor:
    """What torch's own operation makes of bfloat16."""
    if kernel == "matmul":
        return F.linear(given["x_MK"], given["weight_NK"].to(given["x_MK"].dtype))
    return F.rms_norm(given["x_TC"], (given["x_TC"].shape[1],), given["weight_C"], given["eps"])


@pytest.mark.parametrize("kernel", ["matmul", "norm"])
def test_in_bfloat16_the_error_is_at_most_twice_torchs(kernel, full):
    operator = KERNELS[kernel][0]
    for case in drawn(kernel, MANY if full else FEW):
        given = case.make(1, torch.bfloat16)
        truth = operator.reference(**wide(given))
        own = distance(torchs_own(kernel, given), truth)
        for variant in operator.variants().values():
            if variant.device == "cpu" and not variant.obstacle(given):
                error = distance(variant.call(**given), truth)
                assert error <= 2 * own + 1e-6, (case.name, variant.name, error, own)
