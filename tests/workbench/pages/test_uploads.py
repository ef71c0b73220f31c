"""Uploaded files: any bytes under any name open, or are one line; a full disk is one, too."""

import errno
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from engine.core.errors import BadInput
from tests.malformed.corpus import traces
from tests.malformed.run_files import runs
from workbench.pages.doors.trace import opened
from workbench.pages.shelf import file_field, uploads
from workbench.pages.shelf.file_field import FileField
from workbench.pages.shelf.shelf import NAME, Shelf
from workbench.pages.shelf.uploads import read_uploads

STEMS = ("a", "../../etc/passwd", "/abs", ".hidden", "x" * 5000, "a\0b", "\ud800", "<img src=x>",
         "CON", "a\nb", "%2e%2e", "~", "a/b\\c", "")  # fmt: skip
ENDS = (".run", ".json", ".json.gz", ".csv", ".jsonl", ".JSON", "", ".RUN.json", ".pt", ".gz")
ODD = (None, "text", 5, {}, [], [None], [b"", "x"], b"", [b"[]", b"[]"], [b""] * 70)
TABLES = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
    b"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,-1,1e999\n",
    b'{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [0]}\n',
    b'{"timestamp": NaN, "input_length": 1e30}\n', b"a,b\n" * 9999, b'"' * 9999, b"\xff,\xfe\n",
    b'[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]',
)  # fmt: skip


def one_line(fault):
    text = str(fault.value if hasattr(fault, "value") else fault)
    assert text and "\n" not in text and len(text) < 2000, ascii(text)


def test_any_bytes_under_any_name(tmp_path, full):
    draw, shelf = random.Random(4), Shelf()
    count = 400 if full else 12
    found = [*traces(count, tmp_path, draw), *runs(count, tmp_path, draw)]
    files = [data for _, data in found if len(data) < 1 << 20] + list(TABLES) * 3
    draw.shuffle(files)
    names = set()
    for data in files if full else files[:90]:
        name = draw.choice(STEMS) + draw.choice(ENDS)
        try:
            kept, _ = opened(shelf, data, name)
            names.add(str(kept))
        except BadInput as fault:
            one_line(fault)
        except OSError:
            pytest.fail(ascii(name))
    assert all(len(name) < NAME + 100 for name in shelf.runs)
    assert not list(tmp_path.glob("**/passwd"))


@pytest.mark.parametrize("data", ODD, ids=lambda data: ascii(data)[:20])
def test_what_a_page_never_sends_is_one_line(data):
    for names in (None, "a.json", ["a.json"] * 9, [5, None], "x" * 9000):
        try:
            read_uploads(data, names)
        except BadInput as fault:
            one_line(fault)
        else:
            assert data == [b"[]", b"[]"]  # two ranks of which nothing was traced


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENOENT])
@pytest.mark.parametrize("of", ["folder", "file"])
def test_without_room_an_upload_is_one_line(monkeypatch, number, of):
    def full(*words, **more):
        raise OSError(number, os.strerror(number))

    where = (tempfile, "TemporaryDirectory") if of == "folder" else (Path, "write_bytes")
    monkeypatch.setattr(*where, full)
    for call in (
        lambda: read_uploads(b"x", "a.run"),
        lambda: read_uploads([b"[]", b"[]"], ["a.json", "b.json"]),
        lambda: Shelf().keep_trace(TABLES[0], "a.csv"),
    ):
        with pytest.raises(BadInput, match="cannot be put down here") as fault:
            call()
        one_line(fault)


def test_a_folder_that_was_cleared_away_is_made_again():
    shelf = Shelf()
    first = shelf.keep_trace(TABLES[0], "a.csv")
    shutil.rmtree(first.parent)
    assert shelf.keep_trace(TABLES[0], "a.csv").read_bytes() == TABLES[0]
    assert uploads.NAME >= NAME


def test_a_field_holds_as_many_parts_as_may_be_opened_and_no_number_for_them(monkeypatch):
    monkeypatch.setattr(file_field, "UPLOAD", 1 << 20)
    field, said = FileField(), []
    monkeypatch.setattr(field, "_send_msg", said.append)

    def send(data, chunk=1, of=1):
        part = {"status": "upload_event", "name": "a.run", "mime_type": "", "data": data}
        field._handle_msg(part | {"chunk": chunk, "total_chunks": of})

    for chunk in range(1, 3):
        send(bytes(1 << 18), chunk, 2)
    field._handle_msg({"status": "finished"})
    assert field.value == bytes(1 << 19) and said.pop()["status"] == "finished"
    for chunk in range(1, 6):  # of a file that never ends
        send(bytes(1 << 18), chunk, 1000)
    send(1 << 40)  # which would be a terabyte of zeros
    assert [each["status"] for each in said] == ["error", "error"]
    assert not field._file_buffer and not field._buffer
