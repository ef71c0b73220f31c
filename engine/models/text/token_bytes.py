"""Bytes of tokens that are parts of characters: byte-level letters (GPT-2's), or `<0xE2>`."""

import re
from typing import Any

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
SHOWN = {*range(33, 127), *range(161, 173), *range(174, 256)}  # bytes that stand for themselves
HIDDEN = (byte for byte in range(256) if byte not in SHOWN)
LETTERS = {chr(byte): byte for byte in SHOWN} | {chr(256 + n): b for n, b in enumerate(HIDDEN)}
BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def said(tokenizer: Any, token: int) -> str | bytes:
    """What a token reads as alone; its bytes where it is but a part of a character."""
    text, rules = str(tokenizer.decode([token])), getattr(tokenizer, "rules", None)
    if UNKNOWN not in text or rules is None:
        return text
    return _bytes(rules.id_to_token(token) or "") or text


def _bytes(name: str) -> bytes | None:
    """Of the token of this name; None where the name does not tell."""
    if (found := BYTE.fullmatch(name)) is not None:
        return bytes.fromhex(found[1])
    return bytes(map(LETTERS.__getitem__, name)) if set(name) <= LETTERS.keys() else None
