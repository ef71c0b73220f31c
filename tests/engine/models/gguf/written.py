"""GGUF files made for a test: metadata, and tensors in blocks as llama.cpp quantises them."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    """A value behind the number of its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    kind = {str: 8, float: 6}.get(type(value[0]), 5)
    form = "<f" if kind == 6 else "<i"
    each = map(_string, value) if kind == 8 else (struct.pack(form, one) for one in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(each)


def write(
    path: Path, metadata: dict[str, Any], tensors: dict[str, tuple[str, np.ndarray]]
) -> None:  # fmt: skip
    """`tensors`: a kind and float32 numbers, or uint8 [..., N, B, bytes of a block], by name."""
    head, body, widths = b"", b"", {"Q4_K": 256, "Q6_K": 256}
    for name, (kind, given) in tensors.items():
        blocks = given if given.dtype == np.uint8 else encoded(kind, given)
        sides = list(given.shape)
        if given.dtype == np.uint8:
            sides = [*given.shape[:-2], given.shape[-2] * widths.get(kind, 32)]
        head += _string(name) + struct.pack("<I", len(sides))
        head += b"".join(struct.pack("<Q", side) for side in reversed(sides))
        head += struct.pack("<IQ", KINDS[kind], len(body))
        body += blocks.tobytes()
        body += bytes(-len(body) % 32)
    keys = b"".join(_string(key) + _value(value) for key, value in metadata.items())
    whole = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + keys + head
    path.write_bytes(whole + bytes(-len(whole) % 32) + body)


def encoded(kind: str, weight: np.ndarray) -> np.ndarray:
    """Blocks of a kind that hold numbers near these."""
    if kind in ("F32", "F16"):
        return weight.astype(np.float32 if kind == "F32" else np.float16)
    groups = weight.reshape(len(weight), -1, 32)
    largest = np.abs(groups).max(-1, keepdims=True)
    scale = (largest / (127 if kind == "Q8_0" else 7)).astype(np.float16)
    codes = np.rint(groups / np.maximum(scale.astype(np.float32), 1e-9)).astype(np.int8)
    if kind == "Q4_0":
        nibbles = (codes + 8).clip(0, 15).astype(np.uint8)
        codes = nibbles[..., :16] | nibbles[..., 16:] << 4
    return np.concatenate([scale.view(np.uint8), codes.view(np.uint8)], axis=-1)


def random_blocks(kind: str, outputs: int, blocks: int, seed: int = 0) -> np.ndarray:
    """uint8 [N, B, bytes]: any codes, scales that are small numbers; some groups have none."""
    draw = np.random.default_rng(seed)
    width = {"Q8_0": 34, "Q4_0": 18, "Q4_K": 144, "Q6_K": 210}[kind]
    raw = draw.integers(0, 256, (outputs, blocks, width), dtype=np.uint8)
    halves = draw.normal(0, 1e-4, (outputs, blocks, 2)).astype(np.float16).view(np.uint8)
    if kind == "Q6_K":
        raw[..., 208:] = halves[..., :2]
    else:
        raw[..., :2] = halves[..., :2]
    if kind == "Q4_K":
        raw[..., 2:4] = halves[..., 2:]
        raw[0, 0, 4:8] = raw[0, 0, 12:16] = 0
        raw[1, 0, 4:16] = 0
    return raw
