"""GGUF blocks of few bits as codes, scales and zeros: Q8_0, Q4_0, Q4_K and Q6_K, exactly.

Layouts: ggml-common.h (block_q8_0, block_q4_0, block_q4_K, block_q6_K). Shape letters: N outputs,
K inputs, B blocks of a row, G groups of a row.
"""

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.weight import Quantised
from engine.models.gguf.header import Blocks

FLOATS = {"F32": np.float32, "F16": np.float16}


def numbers(of: Blocks) -> Tensor:
    """The tensor as numbers: floats in their own type, blocks as float32."""
    if of.kind == "BF16":
        raw = np.frombuffer(of.data(), np.int16).copy()
        return torch.from_numpy(raw).view(torch.bfloat16).reshape(of.shape)
    if of.kind in FLOATS:
        return torch.from_numpy(np.frombuffer(of.data(), FLOATS[of.kind]).copy()).reshape(of.shape)
    found = codes(of)
    if found is None:
        raise BadInput(
            f"{of.path}: tensor {of.name!r} of shape {list(of.shape)} is of {of.kind} blocks; "
            "only matrices are read of blocks: convert it to F32"
        )
    return found.dequantised()


def codes(of: Blocks) -> Quantised | None:
    """The matrix as codes; None where it is floats. Raises BadInput for scales that are none."""
    if of.kind not in READERS or len(of.shape) != 2:
        return None
    raw = np.frombuffer(of.data(), np.uint8).reshape(of.shape[0], -1, WIDTHS[of.kind])
    with np.errstate(over="ignore", invalid="ignore"):
        found = READERS[of.kind](raw)
    given = found.scales_NG, found.zeros_NG
    if not all(np.isfinite(each).all() for each in given if each is not None):
        raise BadInput(f"{of.path}: tensor {of.name!r} has scales that are no numbers; restore it")
    return found


def _half(raw: np.ndarray) -> np.ndarray:
    """float32 of the float16 in the last axis of two bytes."""
    return np.ascontiguousarray(raw).view(np.float16)[..., 0].astype(np.float32)


def _rows(by_block: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(by_block.reshape(len(by_block), -1))


def _q8_0(raw: np.ndarray) -> Quantised:
    """32 int8 behind a scale."""
    return Quantised(format_of("int8"), _rows(raw[..., 2:]), _half(raw[..., :2]), None, 32)


def _nibbles(raw: np.ndarray) -> np.ndarray:
    """The low halves of the bytes of the last axis, then the high ones."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def _q4_0(raw: np.ndarray) -> Quantised:
    """32 codes around 8 behind a scale: low halves of 16 bytes first."""
    found = _rows(_nibbles(raw[..., 2:]) ^ 8)
    return Quantised(format_of("int4"), found, _half(raw[..., :2]), None, 32)


def _q4_k(raw: np.ndarray) -> Quantised:
    """Eight groups of 32 under two scales: d · scale · code - dmin · least, 6 bits each."""
    packed = raw[..., 4:16]
    low, mid, high = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scale = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], axis=-1)
    least = np.concatenate([mid & 63, (high >> 4) | (mid >> 6) << 4], axis=-1)
    d, dmin = _half(raw[..., :2])[..., None], _half(raw[..., 2:4])[..., None]
    scales, mins = d * scale.astype(np.float32), dmin * least.astype(np.float32)
    found = _nibbles(raw[..., 16:].reshape(*raw.shape[:2], 4, 32)).reshape(*raw.shape[:2], 8, 32)
    # A group without a scale is one number: nought less one, times that.
    flat = scales == 0
    found = np.where(flat[..., None], 8, found).astype(np.uint8)
    scales = np.where(flat, mins, scales).astype(np.float32)
    zeros = np.where(flat, np.float32(1), mins / np.where(flat, 1, scales) - np.float32(8))
    return Quantised(
        format_of("int4"), _rows(found ^ 8), _rows(scales), _rows(zeros.astype(np.float32)), 32
    )


def _q6_k(raw: np.ndarray) -> Quantised:
    """Sixteen groups of 16: four low bits and two high ones around 32, an int8 scale each, and one
    for all."""
    low = _nibbles(raw[..., :128].reshape(*raw.shape[:2], 2, 64))
    high = raw[..., 128:192].reshape(*raw.shape[:2], 2, 1, 32)
    high = high >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    found = low | high.reshape(low.shape) << 4
    scale = np.ascontiguousarray(raw[..., 192:208]).view(np.int8).astype(np.float32)
    scales = _half(raw[..., 208:])[..., None] * scale
    return Quantised(format_of("int6"), _rows(found ^ 32), _rows(scales), None, 16)


READERS = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_K": _q4_k, "Q6_K": _q6_k}
WIDTHS = {"Q8_0": 34, "Q4_0": 18, "Q4_K": 144, "Q6_K": 210}
