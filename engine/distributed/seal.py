"""Message seal: number and checksum behind a message's bytes, by which its receiver knows it whole.

CRC-32 (ISO 3309, as zlib has it) finds every burst of up to 32 bits and all but one in 2^32 of the
rest; the number finds what came twice or in another's place.
"""

import struct
import zlib

import numpy as np
import torch
from torch import Tensor

FORM = struct.Struct("<II")  # number, checksum
SIZE = FORM.size


def sealed(parts: list[Tensor], number: int) -> Tensor:
    """These bytes (uint8) one after another, and the seal of message `number` behind them."""
    flat = torch.cat([*parts, torch.empty(SIZE, dtype=torch.uint8, device=_device(parts))]).cpu()
    data = flat.numpy()
    seal = FORM.pack(number & 0xFFFFFFFF, zlib.crc32(data[:-SIZE].data))
    data[-SIZE:] = np.frombuffer(seal, np.uint8)
    return flat


def fault(flat: Tensor, number: int) -> str:
    """What is wrong with a message that came as number `number`; "" where nothing is."""
    data = flat.numpy()
    found, checksum = FORM.unpack(data[-SIZE:].tobytes())
    if zlib.crc32(data[:-SIZE].data) != checksum:
        return "is not what was sent"
    if found != number & 0xFFFFFFFF:
        return f"is message {found}, sent twice or out of order"
    return ""


def _device(parts: list[Tensor]) -> torch.device:
    return parts[0].device if parts else torch.device("cpu")
