"""A normalizer's table of characters: SentencePiece's double-array trie, and the texts they become.

Layout: the trie's bytes, preceded by their number (4 bytes, little-endian), then texts that end in
NUL. A unit of the trie (darts-clone, `darts.h`) holds its label in bits 0-7, in bit 8 whether a
text ends at it, and the distance to its children in bits 10-30, times 256 where bit 9 is set; with
bit 31 it is no step but a place among the texts. The library follows it without looking, and takes
the first unit for a step whatever its bit 31 says.
"""

import numpy as np

LEAF, FAR, PLACE, PAGE = 1 << 8, 1 << 9, 1 << 31, 255


def is_table(table: bytes) -> bool:
    """Whether every step of the trie stays in it, and every place is one where a text begins."""
    size = int.from_bytes(table[:4], "little")
    texts = table[4 + size :]
    try:
        texts.decode()
    except UnicodeDecodeError:
        return False
    if not 4 <= size <= len(table) - 4 or size % 4:
        return False
    units = np.frombuffer(table, "<u4", size // 4, 4).astype(np.int64)
    if units[0] >= PLACE:
        return False
    steps = np.flatnonzero(units < PLACE)
    held = units[steps]
    to = steps ^ ((held >> 10) << ((held & FAR) >> 6))
    if ((to | PAGE) >= len(units)).any():  # whatever byte comes next
        return False
    places = units[to[(held & LEAF) > 0]] & (PLACE - 1)
    letters = np.frombuffer(texts, np.uint8)
    return bool((places < len(letters)).all() and (letters[places] & 0xC0 != 0x80).all())


def longest_change(table: bytes) -> int:
    """Bytes of the longest text that it has for some characters."""
    size = int.from_bytes(table[:4], "little")
    return max(map(len, table[4 + size :].split(b"\0")), default=0)
