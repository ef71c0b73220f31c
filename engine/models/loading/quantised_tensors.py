"""Quantised tensors of a checkpoint: GPTQ, AWQ and compressed-tensors, read as codes and scales.

A linear layer `X.weight` lies there as several tensors: `X.qweight`, `X.qzeros`, `X.scales` (GPTQ,
AWQ), `X.weight_packed` and `X.weight_scale`, or `X.weight` in I8 or F8_E4M3 with its scale
(compressed-tensors). Activations stay floats, also where a checkpoint would round them.
Shape letters: N outputs, K inputs, G groups, E codes of a 32-bit word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.weight import Quantised
from engine.models.loading.safetensors_file import Stored

WIDEST = 1 << 30  # inputs that share a scale
WIDTHS = (2, 4, 8)  # bits of a code that words of 32 hold whole
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # output that the i-th code of a word belongs to
EIGHT_BITS = {"I8": "int8", "F8_E4M3": "e4m3", "F8_E5M2": "e5m2"}


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """A quantised tensor in a file: what `Stored` is for a plain one."""

    path: Path
    name: str
    shape: tuple[int, ...]
    parts: Mapping[str, Stored]
    settings: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        """Bytes of it in the file."""
        return sum(part.bytes for part in self.parts.values())

    def codes(self) -> Quantised:
        """The tensor as codes and scales. Raises BadInput where its parts do not fit."""
        found = self._codes()
        if found.shape != self.shape:
            raise self._bad(f"holds {list(found.shape)} codes; config.json asks {list(self.shape)}")
        rows, groups = self.shape[0], -(-self.shape[1] // found.group)
        if found.scales_NG.shape != (rows, groups) or not np.isfinite(found.scales_NG).all():
            raise self._bad("has scales of another shape, or that are no numbers")
        if found.zeros_NG is not None and found.zeros_NG.shape != (rows, groups):
            raise self._bad("has zeros of another shape than its scales")
        if not np.isfinite(found.format.values[found.codes_NK]).all():
            raise self._bad("holds codes that are no numbers (NaN)")
        return found

    def read(self) -> Tensor:
        """The tensor as float32."""
        return self.codes().dequantised()

    def _bad(self, what: str) -> BadInput:
        return BadInput(f"{self.path}: tensor {self.name!r} {what}; quantise it again")

    def _part(self, name: str) -> Any:
        if name not in self.parts:
            raise self._bad(f"has no {name!r} beside its codes")
        return self.parts[name].raw()

    def _codes(self) -> Quantised:
        if "qweight" in self.parts:
            return self._awq() if self.settings["quant_method"] == "awq" else self._gptq()
        if "weight_packed" in self.parts:
            return self._packed()
        of = format_of(EIGHT_BITS[self.parts["weight"].dtype])
        codes_NK = self._part("weight").view(np.uint8)
        if codes_NK.ndim != 2:
            raise self._bad("has no two dimensions")
        return self._scaled(of.name, codes_NK)

    def _scaled(self, name: str, codes_NK: np.ndarray) -> Quantised:
        """With the scales of compressed-tensors: one, one by row, or by group."""
        if "weight_zero_point" in self.parts and self._part("weight_zero_point").any():
            raise self._bad("has zero points; symmetric ones are read")
        scales = np.asarray(self._part("weight_scale"), np.float32)
        scales = scales.reshape(-1, 1) if scales.ndim < 2 else scales
        K = codes_NK.shape[1]
        if len(scales) not in (1, len(codes_NK)) or scales.shape[1] == 0 or K % scales.shape[1]:
            raise self._bad("has scales of another shape")
        scales_NG = np.broadcast_to(scales, (len(codes_NK), scales.shape[1]))
        group = K // scales.shape[1]
        return Quantised(format_of(name), codes_NK, np.ascontiguousarray(scales_NG), None, group)

    def _packed(self) -> Quantised:
        words = self._part("weight_packed")
        bits = 32 * words.shape[-1] // self.shape[1] if words.ndim == 2 else 0
        if bits not in WIDTHS:
            raise self._bad(f"has codes of {bits} bits; 2, 4 and 8 are read")
        codes_NK = opened(words, bits)
        return self._scaled(f"int{bits}", turned(codes_NK, bits))

    def _bits(self) -> int:
        bits = self.settings.get("bits", self.settings.get("w_bit"))
        if bits not in WIDTHS:
            raise self._bad(f"has codes of {str(bits)[:20]} bits; 2, 4 and 8 are read")
        return int(bits)

    def _group(self) -> int:
        group = self.settings.get("group_size", self.settings.get("q_group_size", -1))
        if type(group) is not int or group == 0 or not -1 <= group <= WIDEST:
            raise self._bad(f"has groups of {str(group)[:20]}")
        return self.shape[1] if group == -1 else group

    def _gptq(self) -> Quantised:
        bits, group = self._bits(), self._group()
        index = np.arange(self.shape[1]) // group
        if "g_idx" in self.parts and not np.array_equal(self._part("g_idx"), index):
            raise self._bad("has groups out of order (desc_act); give one without")
        codes_NK = opened(np.ascontiguousarray(self._part("qweight").T), bits)
        zeros_GN = opened(self._part("qzeros"), bits).astype(np.float32)
        zeros_GN += 0 if self.settings.get("checkpoint_format") == "gptq_v2" else 1
        return self._signed(codes_NK, zeros_GN, bits, group)

    def _awq(self) -> Quantised:
        bits, group = self._bits(), self._group()
        if bits != 4:
            raise self._bad(f"has AWQ codes of {bits} bits; 4 are read")
        back = np.argsort(AWQ_ORDER)

        def ordered(words: np.ndarray) -> np.ndarray:
            codes = opened(words, bits)
            return codes.reshape(len(codes), -1, 8)[..., back].reshape(len(codes), -1)

        codes_NK = np.ascontiguousarray(ordered(self._part("qweight")).T)
        zeros_GN = ordered(self._part("qzeros")).astype(np.float32)
        return self._signed(codes_NK, zeros_GN, bits, group)

    def _signed(
        self, codes_NK: np.ndarray, zeros_GN: np.ndarray, bits: int, group: int
    ) -> Quantised:
        """Codes from nought on become two's complement, their zeros with them."""
        half = 2 ** (bits - 1)
        scales_NG = np.ascontiguousarray(np.asarray(self._part("scales"), np.float32).T)
        zeros_NG = np.ascontiguousarray(zeros_GN.T) - np.float32(half)
        codes_NK = turned(codes_NK, bits)
        if scales_NG.ndim == 2 and zeros_NG.shape != scales_NG.shape:
            raise self._bad("has zeros of another shape than its scales")
        zeros = zeros_NG if zeros_NG.any() else None
        return Quantised(format_of(f"int{bits}"), codes_NK, scales_NG, zeros, group)


def turned(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes from nought on as two's complement, and back: their highest bit the other way."""
    return codes ^ np.uint8(2 ** (bits - 1))


def opened(words: np.ndarray, bits: int) -> np.ndarray:
    """uint8 codes along the last axis of 32-bit words, the lowest bits first."""
    if words.ndim != 2 or words.dtype != np.int32:
        raise BadInput("quantised tensors: codes are words of 32 bits in two dimensions")
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    found = words.view(np.uint32)[..., None] >> shifts & np.uint32(2**bits - 1)
    return found.astype(np.uint8).reshape(len(words), words.shape[1] * len(shifts))


def closed(codes: np.ndarray, bits: int) -> np.ndarray:
    """What `opened` opens: int32 words of codes whose number words divide."""
    each = codes.reshape(len(codes), -1, 32 // bits).astype(np.uint32)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return np.bitwise_or.reduce(each << shifts, axis=-1).view(np.int32)


PARTS = (
    "qweight", "qzeros", "scales", "g_idx", "weight_packed", "weight_scale", "weight_zero_point",
    "weight",
)  # fmt: skip


def stored_codes(
    held: Mapping[str, Stored], name: str, shape: tuple[int, ...], settings: Mapping[str, Any]
) -> StoredCodes | None:
    """The quantised tensor of that name; None where it lies there as plain numbers, or not."""
    root = name.removesuffix("weight")
    if root == name or len(shape) != 2:
        return None
    parts = {part: held[root + part] for part in PARTS if root + part in held}
    plain = parts.get("weight")
    if plain is not None and plain.dtype not in EIGHT_BITS:
        return None
    first = next((parts[p] for p in ("qweight", "weight_packed", "weight") if p in parts), None)
    return None if first is None else StoredCodes(first.path, name, shape, parts, settings)


def gptq_tensors(name: str, weight: Quantised) -> dict[str, Tensor]:
    """A linear layer's tensors as GPTQ checkpoints hold them; its scales must be float16's."""
    bits, root = weight.format.bits, name.removesuffix("weight")
    half = 2 ** (bits - 1)
    zeros_NG = np.zeros_like(weight.scales_NG) if weight.zeros_NG is None else weight.zeros_NG
    stored_GN = ((zeros_NG.T + half - 1) % 2**bits).astype(np.uint8)
    codes_KN = turned(weight.codes_NK, bits).T
    return {
        f"{root}qweight": torch.from_numpy(
            np.ascontiguousarray(closed(np.ascontiguousarray(codes_KN.T), bits).T)
        ),
        f"{root}qzeros": torch.from_numpy(closed(np.ascontiguousarray(stored_GN), bits)),
        f"{root}scales": torch.from_numpy(np.ascontiguousarray(weight.scales_NG.T)).half(),
        f"{root}g_idx": torch.arange(weight.shape[1], dtype=torch.int32) // weight.group,
    }
