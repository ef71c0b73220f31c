"""Token files of every kind come in as one stream; what is none is one line."""

import os
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.training.data import token_file
from engine.training.data.token_file import read_tokens
from engine.training.data.windows import cuts, windows

IDS = np.arange(5000) % 97
MODEL = dataset("models/stdlib-draft-1m")


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int64"])
def test_numbers_come_back_as_they_are(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IDS.astype(dtype))
    assert (read_tokens(tmp_path / "a.npy", 97, None).ids == IDS).all()


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_raw_numbers_of_16_and_32_bits_are_told_apart(dtype: str, tmp_path: Path) -> None:
    IDS.astype(dtype).tofile(tmp_path / "a.bin")
    found = read_tokens(tmp_path / "a.bin", 97, None)
    assert (found.ids == IDS).all() and f"uint{8 * np.dtype(dtype).itemsize}" in found.said
    (IDS + 70_000).astype("<u4").tofile(tmp_path / "b.bin")
    assert (read_tokens(tmp_path / "b.bin", 100_000, None).ids == IDS + 70_000).all()


def test_text_is_encoded_by_the_models_own_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.models.text.tokenizer import Tokenizer

    text = "def f(x):\n    return x\n" * 50
    (tmp_path / "a.txt").write_text(text)
    tokenizer = Tokenizer(MODEL)
    found = read_tokens(tmp_path / "a.txt", 4096, MODEL).ids.tolist()
    assert found == [*tokenizer.encode(text, special=False), *tokenizer.eos[:1]]
    monkeypatch.setattr(token_file, "PIECE", 100)
    pieces = token_file._pieces(text)
    assert "".join(pieces) == text and all(len(piece) <= 100 for piece in pieces)
    assert all(piece.endswith("\n") for piece in pieces)
    assert "".join(token_file._pieces("x" * 250)) == "x" * 250


def test_a_digest_knows_tokens_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(ids: np.ndarray) -> str:
        np.save(tmp_path / "a.npy", ids)
        return read_tokens(tmp_path / "a.npy", 97, None).digest

    other = IDS.copy()
    other[4990] = 3
    assert digest(IDS) == digest(IDS) != digest(other)
    monkeypatch.setattr(token_file, "WHOLE", 100)
    assert digest(IDS) == digest(IDS) != digest(other)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.npy", np.zeros((3, 3), np.int64), r"of shape \[3, 3\]; a token file is one row"),
        ("a.npy", np.zeros(9), "holds float64"),
        ("a.npy", np.array([1, 2, 99]), "token 2 is 99, the model has ids up to 96"),
        ("a.npy", np.array([1, -2, 9]), "token 1 is -2"),
        ("a.npy", b"no numpy", "not a .npy file"),
        ("a.bin", b"odd", "3 bytes are no row"),
        ("a.bin", b"", "0 bytes are no row"),
        ("a.txt", b"text", "no folder with a tokenizer.json"),
        ("missing.npy", None, "no such file"),
        ("folder.npy", Path.mkdir, "not a plain file but a folder"),
        ("pipe.bin", os.mkfifo, "not a plain file; copy what it gives into one"),
    ],
)
def test_what_is_no_token_file_is_one_line(
    name: str, data: object, says: str, tmp_path: Path
) -> None:
    if isinstance(data, np.ndarray):
        np.save(tmp_path / name, data)
    elif isinstance(data, bytes):
        (tmp_path / name).write_bytes(data)
    elif callable(data):
        data(tmp_path / name)
    with pytest.raises(BadInput, match=says):
        read_tokens(tmp_path / name, 97, None)


def test_a_pickle_in_a_npy_file_is_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="not a .npy file"):
        read_tokens(tmp_path / "a.npy", 97, None)


def test_text_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_tokens(tmp_path / "a.txt", 4096, MODEL)


@pytest.mark.parametrize("name", ["a.npy", "a.bin"])
def test_a_file_that_is_cut_while_it_is_learnt_from_is_a_line_and_no_signal(
    name: str, tmp_path: Path
) -> None:
    path, ids = tmp_path / name, np.tile(IDS, 20).astype("<u2")
    np.save(path, ids) if path.suffix == ".npy" else ids.tofile(path)
    stream = read_tokens(path, 97, None).ids[: len(ids) - 100]
    assert windows(stream, 0, 0, 4, 8).shape == (4, 9)
    with path.open("r+b") as file:
        file.truncate(200)
    for use in (lambda: windows(stream, 0, 0, 4, 8), lambda: list(cuts(stream, 8))):
        with pytest.raises(BadInput, match=f"{name}: shorter than when the training began"):
            use()
