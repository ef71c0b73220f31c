"""A file to learn from as one stream of token ids: `.npy`, raw `.bin`, or text of any other name.

Number files are mapped, not read, so they may be larger than memory. Text is encoded by a model
folder's tokenizer, with an end-of-text token after it where the folder names one.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.core.errors import BadInput
from engine.core.limits import read_bytes, regular, require_regular
from engine.models.text.tokenizer import Tokenizer

PIECE = 1 << 20  # characters encoded at a time, cut at line ends
AT_ONCE = os.cpu_count() or 1  # pieces between two looks at whether to stop
BLOCK = 1 << 22  # ids looked at in one go
WHOLE = 1 << 26  # bytes up to which a digest reads everything
SAMPLES = 64  # blocks of a longer file that a digest reads
LOOKED_AT = 1 << 12  # ids by which 16 and 32 bits are told apart


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Token ids, and how the file was read, for a person."""

    ids: np.ndarray
    said: str

    @property
    def digest(self) -> str:
        """SHA-256 by which the same tokens are known again; of a long file, over a sample."""
        found = hashlib.sha256(f"{len(self.ids)} {self.ids.dtype.str}".encode())
        if self.ids.nbytes <= WHOLE:
            found.update(np.ascontiguousarray(self.ids).data)
            return found.hexdigest()
        for start in np.linspace(0, len(self.ids) - LOOKED_AT, SAMPLES).astype(np.int64):
            found.update(np.ascontiguousarray(self.ids[start : start + LOOKED_AT]).data)
        return found.hexdigest()


def read_tokens(path: str | Path, vocab: int, model: Path | None) -> TokenFile:
    """The tokens of `path` for a model of `vocab` ids, whose folder `model` may hold a tokenizer.

    Raises BadInput where the file cannot be read, is no token file or has ids the model lacks.
    """
    place = Path(path).expanduser()
    require_regular(place, "give tokens (.npy, .bin) or a text")
    if place.suffix == ".npy":
        found = _npy(place)
    elif place.suffix == ".bin":
        found = _bin(place, vocab)
    else:
        found = _text(place, model)
    _check(place, found, vocab)
    return found


def _npy(path: Path) -> TokenFile:
    regular(path, "token_bytes")
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as fault:
        raise BadInput(f"{path}: not a .npy file of numbers ({str(fault)[:80]})") from None
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu":
        shape = getattr(ids, "shape", ())
        raise BadInput(
            f"{path}: holds {getattr(ids, 'dtype', 'several arrays')} of shape {list(shape)}; "
            "a token file is one row of whole numbers"
        )
    return TokenFile(ids, f"{len(ids):,} tokens, {ids.dtype}")


def _bin(path: Path, vocab: int) -> TokenFile:
    """Raw little-endian ids: 32 bits for a large vocabulary, or where every second 16 are 0."""
    size = regular(path, "token_bytes").stat().st_size
    if size % 2 or not size:
        raise BadInput(f"{path}: {size} bytes are no row of 16- or 32-bit token ids")
    ids = np.memmap(path, "<u2", "r")
    upper = ids[1 : 2 * LOOKED_AT : 2]
    wide = size % 4 == 0 and (vocab > 1 << 16 or (len(upper) > 1 and not upper.any()))
    if wide:
        ids = np.memmap(path, "<u4", "r")
    return TokenFile(ids, f"{len(ids):,} tokens, read as {'uint32' if wide else 'uint16'}")


def _text(path: Path, model: Path | None) -> TokenFile:
    if model is None:
        raise BadInput(f"{path}: a text, but the model has no folder with a tokenizer.json")
    tokenizer = Tokenizer(model)
    try:
        text = read_bytes(path, "text_bytes").decode("utf-8")
    except UnicodeDecodeError as fault:
        raise BadInput(
            f"{path}: not UTF-8 text ({fault.reason} at {fault.start}); token ids come in files "
            "named .npy, or .bin of 16 or 32 bits each"
        ) from None
    pieces, ids = _pieces(text), []
    # The library hears of no interrupt within a batch.
    for first in range(0, len(pieces), AT_ONCE):
        few = tokenizer.encode_all(pieces[first : first + AT_ONCE])
        ids += [np.asarray(piece, np.int64) for piece in few]
    whole = np.concatenate([*ids, np.asarray(tokenizer.eos[:1], np.int64)])
    narrow = np.uint16 if tokenizer.vocab <= 1 << 16 else np.uint32
    said = f"{len(whole):,} tokens of {len(text):,} characters by {model.name}'s tokenizer"
    return TokenFile(whole.astype(narrow), said)


def _pieces(text: str) -> list[str]:
    found, start = [], 0
    while start < len(text):
        end = text.rfind("\n", start, start + PIECE) + 1
        end = end if end > start else min(len(text), start + PIECE)
        end = len(text) if len(text) - start <= PIECE else end
        found.append(text[start:end])
        start = end
    return found


def _check(path: Path, found: TokenFile, vocab: int) -> None:
    for start in range(0, len(found.ids), BLOCK):
        block = found.ids[start : start + BLOCK]
        wrong = (block >= vocab) | (block < 0)
        if wrong.any():
            at = int(wrong.argmax())
            raise BadInput(
                f"{path}: token {start + at} is {block[at]}, the model has ids up to {vocab - 1} "
                f"({found.said}); give the model that it was made for, or its text as .txt"
            )
